// What the functions of flashlight/c.h have in common: errors as text, and the values that C gives
// and takes. For the files of this folder only.
//
//   flashlight_status flashlight_capture_graph(flashlight_capture capture, char** text) {
//     return guarded(__func__, [&] {
//       expect_place(text, "text");
//       store_text(print(handles().find<Captured>(capture)->capture.graph()), text);
//     });
//   }
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "composit/ir/error.h"
#include "flashlight/c.h"

namespace flashlight::c {

// In a catch block: notes what was thrown for flashlight_last_error. Errors that name no operation
// get the name of the function.
flashlight_status note_failure(const char* function) noexcept;

// Nothing that `body` throws leaves it.
template <class Body>
flashlight_status guarded(const char* function, Body body) noexcept {
  try {
    body();
    return FLASHLIGHT_OK;
  } catch (...) {
    return note_failure(function);
  }
}

// The functions below throw UserError for what C's callers may get wrong. `what`: "input 0".

// The place where a result is stored.
void expect_place(const void* place, const char* what);
std::string text_from(const char* text, const std::string& what);
bool flag_from(int32_t flag, const char* what);
// Memory that flashlight_string_free frees.
void store_text(const std::string& text, char** place);

// Another reference to the tensor.
at::Tensor tensor_from(flashlight_tensor tensor, const std::string& what);
// `count` has to be `expected`.
std::vector<at::Tensor> tensors_from(const flashlight_tensor* tensors, size_t count,
                                     size_t expected);
// The place for `expected` results.
void expect_outputs(const flashlight_tensor* outputs, size_t count, size_t expected);
// New handles for all, or none where that fails; NULL for undefined ones.
void store_tensors(const std::vector<at::Tensor>& tensors, flashlight_tensor* outputs);

// A struct of options that may be of another version: what the caller's does not have is zero, and
// what this library does not know has to be. `first`: the size it had in the first version.
template <class Options>
Options options_from(const Options* given, size_t first, const char* name) {
  constexpr size_t kMost = 4096;  // more is memory without a value
  Options options{};
  if (given == nullptr) return options;
  size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < first || size > kMost)
    throw composit::UserError("expected options whose struct_size is sizeof(" + std::string(name) +
                              "), received " + std::to_string(size));
  std::memcpy(&options, given, std::min(size, sizeof options));
  const char* bytes = reinterpret_cast<const char*>(given);
  for (size_t i = sizeof options; i < size; ++i)
    if (bytes[i] != 0)
      throw composit::UserError("expected " + std::string(name) + " as version " +
                                std::to_string(FLASHLIGHT_C_VERSION) +
                                " has them, received members of a later version; use a newer "
                                "libflashlight_c");
  return options;
}

}  // namespace flashlight::c
