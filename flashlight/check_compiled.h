// The errors of compiled code against float64, beside those of the program itself, value by value;
// and what each product in a lower format costs the results.
//
//   const CompiledReport report =
//       check_compiled(captured, {.backend = Mosaic{.products = "bfloat16"}}, x);
//   std::cout << str(report);                // worst first, with lines for `choices`
//
// The values are those that the compiled code writes to memory: layers, with what is fused behind
// them. The graph runs in float64, by LibTorch as the program does ("eager"), and compiled.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flashlight/capture.h"
#include "flashlight/compiled_graph.h"

namespace flashlight {

// Options of check_compiled.
struct CheckCompiledOptions {
  // Compares every node. Each value is memory then, so that nothing is fused: the errors are at
  // least those of the code that `compile` makes. Without it, what the code writes to memory
  // anyway; of backends that do not tell (Backend::written_values), every node.
  bool every_node = false;
  // For so many lowered products, those with the largest errors, the program runs once more in
  // float64 to see what each costs alone.
  size_t alone = 128;
  int64_t memory = int64_t{2} << 30;  // bytes of values that are compared at once, about
};

// What a value is off by, in units of its spread: the standard deviation of its elements in
// float64, or, where all are equal, their magnitude.
struct ErrorOfValue {
  double rms = 0;      // root of the mean square
  double largest = 0;  // infinite where a NaN meets a number
};

// A value of the compiled code.
struct CheckedValue {
  std::string name;      // by which `choices` name it; empty: only every_node makes it memory
  std::string place;     // operator, scope and source line
  std::string product;   // of a product: the dtype that both sides are rounded to
  bool lowered = false;  // which has fewer bits than the program's
  ErrorOfValue compiled, eager;  // against float64
  double rounding = 0;           // rms of float64's value, rounded to the value's dtype
  int64_t elements = 0;          // how many it has
  // The compiled error is larger than the program's own by more than one rounding, a tenth, and
  // chance (three standard deviations for so many elements) explain. Looked at where no product is
  // lowered.
  bool worse = false;
  // What the results are off by if both sides of this product are rounded and all else is float64;
  // of the result for which that is largest. Of lowered products.
  std::optional<ErrorOfValue> alone = {};
};

// The result of check_compiled.
struct CompiledReport {
  std::string backend;                // and its options
  std::vector<CheckedValue> values;   // worst first: by `alone`, else by compiled over eager
  std::vector<CheckedValue> results;  // of the program, then what it writes to its inputs
  size_t nodes = 0;     // nodes with floating-point values; those without a row here are fused away
  size_t lowered = 0;   // products in a lower format
  size_t products = 0;  // all of them
  std::string error;    // what the backend or a run refused; empty otherwise
  std::vector<std::string> notes;  // what could not be measured, and why

  // Nothing failed, and no value is `worse`.
  bool ok() const;
  explicit operator bool() const { return ok(); }  // the same
  int exit_code() const { return ok() ? 0 : 1; }   // 0, or 1
};

// `arguments`: tensors of a call, as a flat list. Nothing of the program's is written. UserError
// where a look has found a difference, numbers follow the calls, and for programs that draw random
// numbers, which float64 would draw others of.
CompiledReport check_compiled_flat(const CaptureBase& captured, const CompileSettings& settings,
                                   const std::vector<at::Tensor>& arguments,
                                   const CheckCompiledOptions& options = {});

// On the arguments of a call.
template <class Result, class... Arguments, class... Values>
CompiledReport check_compiled(const Capture<Result(Arguments...)>& captured,
                              const CompileSettings& settings, Values&&... values) {
  return check_compiled_flat(captured, settings,
                             captured.flatten_arguments(std::forward<Values>(values)...).tensors);
}

// Lines for the option `choices` that keep the most expensive lowered products in the program's
// format, the best first; at most so many. Each has as a comment what the results are estimated to
// be off by with it and those above: errors of products add as independent ones do.
std::vector<std::string> choices_of(const CompiledReport& report, size_t most = 8);

// A table for people.
std::string str(const CompiledReport& report);

}  // namespace flashlight
