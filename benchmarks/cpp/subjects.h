// Subjects of `./dev bench cpp`: problems, and the same programs written by hand.
//
//   for (const Subject& subject : subjects(measured_sizes())) {
//     const auto& [problem, objective, gradient] = subject;
//     std::vector<Array> by_hand = call(gradient, problem.gradient, problem.inputs);
//   }
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "examples/objectives/bundle_adjustment.h"
#include "examples/objectives/gmm.h"
#include "examples/objectives/hand_tracking.h"
#include "examples/objectives/lstm.h"
#include "examples/objectives/problem.h"
#include "examples/objectives/sqrl.h"

namespace benchmarks {

// Memory of the inputs and outputs of a graph, in their order.
using Kernel =
    std::function<void(const std::vector<const void*>& inputs, const std::vector<void*>& outputs)>;

struct Subject {
  objectives::Problem problem;
  Kernel objective, gradient;  // by hand; what the graphs of the same names compute
};

struct Sizes {
  std::vector<objectives::GmmSizes> gmm = {};
  std::vector<objectives::LstmSizes> lstm = {};
  std::vector<objectives::BundleSizes> bundle_adjustment = {};
  std::vector<objectives::HandSizes> hand_tracking = {};
  std::vector<objectives::SqrlSizes> sqrl = {};
  std::vector<int64_t> activations = {};
};
// Those of benchmarks/cpp/problems.py.
Sizes measured_sizes();
// A few elements each, for tests.
Sizes small_sizes();

// float32 or float64 for all; if absent, float32 for sqrl and the activations, as torch has them,
// and float64 for ADBench's objectives, as ADBench has them.
std::vector<Subject> subjects(const Sizes& sizes, std::optional<composit::DType> dtype = {});

// The arrays that `kernel`, the work of `graph`, makes of `inputs`.
std::vector<composit::Array> call(const Kernel& kernel, const composit::Graph& graph,
                                  const std::vector<composit::Array>& inputs);

}  // namespace benchmarks
