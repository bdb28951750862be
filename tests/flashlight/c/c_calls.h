// Helpers of the tests of the C interface.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "flashlight/c.h"

namespace flashlight::test {

// The text of the failure; empty where there was none.
inline std::string error_of(flashlight_status status) {
  if (status == FLASHLIGHT_OK) return "";
  EXPECT_EQ(status, FLASHLIGHT_ERROR);
  return flashlight_last_error();
}
inline void expect_done(flashlight_status status) { ASSERT_EQ(error_of(status), ""); }

inline std::string taken(char* text) {
  std::string copy = text == nullptr ? "" : text;
  flashlight_string_free(text);
  return copy;
}

inline flashlight_scope begun(const flashlight_scope_options* options = nullptr) {
  flashlight_scope scope = nullptr;
  EXPECT_EQ(error_of(flashlight_scope_begin(options, &scope)), "");
  return scope;
}

// x -> program(x), with the result named "y".
using Program = std::function<at::Tensor(const at::Tensor&)>;
inline at::Tensor twice(const at::Tensor& x) { return x + x; }
inline flashlight_scope recorded(at::Tensor x, const Program& program = twice) {
  const flashlight_scope scope = begun();
  expect_done(flashlight_scope_input(scope, &x, "x"));
  at::Tensor y = program(x);
  expect_done(flashlight_scope_output(scope, &y, "y"));
  return scope;
}
inline flashlight_capture captured(const at::Tensor& x, const Program& program = twice) {
  flashlight_capture capture = nullptr;
  expect_done(flashlight_scope_end(recorded(x, program), &capture));
  return capture;
}

inline at::Tensor replayed(flashlight_capture capture, at::Tensor x) {
  flashlight_tensor input = &x, output = nullptr;
  expect_done(flashlight_capture_replay(capture, &input, 1, &output, 1));
  at::Tensor result = output == nullptr ? at::Tensor() : *static_cast<at::Tensor*>(output);
  flashlight_tensor_free(output);
  return result;
}

}  // namespace flashlight::test
