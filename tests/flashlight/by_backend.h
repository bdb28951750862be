// Tests of compiled code, once for each backend, against LibTorch.
//
//   class Compile : public test::ByBackend {};
//   INSTANTIATE_TEST_SUITE_P(Backends, Compile, test::kBackends, test::name_of_backend);
//   TEST_P(Compile, Doubles) { compile(captured, by_backend("doubles")); }
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <ostream>
#include <string>

#include "flashlight/compile.h"

namespace flashlight::test {

// In float64, where LibTorch and compiled code differ by the order of sums alone.
inline constexpr double kTolerance = 1e-12;

inline testing::AssertionResult close(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.sizes() != expected.sizes() || actual.scalar_type() != expected.scalar_type())
    return testing::AssertionFailure() << actual << "\n!=\n" << expected;
  if (at::allclose(actual, expected, kTolerance, kTolerance)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << actual << "\n!=\n" << expected;
}

inline at::Tensor doubles(at::IntArrayRef sizes) { return at::randn(sizes, torch::kDouble); }
inline at::Tensor leaf(at::IntArrayRef sizes) { return doubles(sizes).requires_grad_(); }

// Both backends give what LibTorch gives; mosaic's sums stay those of the graph.
struct Backend {
  std::string name;
  composit::BackendChoice options;
};
inline void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

class ByBackend : public testing::TestWithParam<Backend> {
 protected:
  static CompileSettings by_backend(const std::string& name = "program") {
    return {.name = name, .backend = GetParam().options};
  }
  static bool is_cpp() { return GetParam().options.name == "cpp"; }
};

inline const auto kBackends = testing::Values(
    Backend{"cpp", Cpp{}}, Backend{"mosaic", Mosaic{.threads = 2, .winograd = false}},
    Backend{"mosaic_reading_anew", Mosaic{.threads = 1, .winograd = false, .freeze = false}});
inline const auto name_of_backend = [](const auto& info) { return info.param.name; };

}  // namespace flashlight::test
