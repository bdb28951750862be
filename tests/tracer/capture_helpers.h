// Helpers of the tracer's tests: capture a function, replay it, compare bits.
//
//   auto captured = capture([](auto& in) { return Tensors{in[0] + 1}; }, {x});
//   EXPECT_EQ(difference(captured.replay({x2}), {x2 + 1}), "");
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tracer/publish.h"
#include "tracer/replay.h"
#include "tracer/trace_scope.h"

namespace flashlight::testing {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<Tensors(Tensors&)>;

struct Captured {
  tracer::Published published;
  tracer::Plan plan;

  // `inputs` stand for the user inputs of the capture, in their order; those the graph dropped are
  // skipped. Parameters and buffers are the ones of the capture.
  Tensors replay(const Tensors& inputs) const;
  // Nodes of this operation, those in regions not counted.
  size_t count(const std::string& op) const;
};

// Names the arguments "0", "1", …; `named` are parameters (leaves that require grad) and buffers.
Captured capture(const Function& function, Tensors inputs, const TraceOptions& options = {},
                 const std::vector<std::pair<std::string, at::Tensor>>& named = {});
// The same for what was recorded by hand. No constant may lie in memory that was allocated while
// the scope was recorded, but for numbers of the program.
Captured captured_from(tracer::Recording& recording);

// Captures `function` on `inputs`, replays it on `fresh` and runs it eagerly on `fresh`, with the
// same seed: results and inputs must be the same bits afterwards. The inputs themselves stay as
// they are.
struct Check {
  TraceOptions options = {};
  uint64_t seed = 7;
};
Captured expect_replays(const Function& function, const Tensors& inputs, const Tensors& fresh,
                        const Check& check = {});
// On inputs of the same types with other values.
Captured expect_replays(const Function& function, const Tensors& inputs, const Check& check = {});
// Three ones.
at::Tensor ones();
bool contains(const std::string& text, const std::string& part);
// The same types and memory layout, random values (integers from 0 to 2).
Tensors random_like(const Tensors& tensors, uint64_t seed);
// The message of the UserError that `function` throws; fails when it throws none.
std::string user_error(const std::function<void()>& function);

// The first difference: definedness, dtype, sizes, strides, conj and neg bits, bits of the
// elements. Empty: nothing.
std::string difference(const at::Tensor& a, const at::Tensor& b);
std::string difference(const Tensors& a, const Tensors& b);

// Copies with the same strides, storage around them and aliasing among each other.
Tensors copies(const Tensors& tensors);

}  // namespace flashlight::testing
