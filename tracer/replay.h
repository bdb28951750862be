// Runs a graph through LibTorch's dispatcher: the same kernels on the same layouts as when it was
// recorded, so the same bits.
//
//   Plan plan(graph, options);
//   std::vector<at::Tensor> outputs = plan.run(inputs);    // in the order of graph.inputs()
//
// Composite operators run as their regions, operations that LibTorch does not have
// (composit::loops) by composit's definition. Operators run below autograd, each with the grad mode
// it was recorded with. In-place operators run in place: on the operand's own buffer if nothing
// else holds it, on a copy with the same strides otherwise. Inputs are written last, when every
// guard has held.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/ir/number_formula.h"

namespace flashlight::tracer {

// A number of the graph that differs from call to call: attribute `key` of a node ("value" of a
// constant: its only element; "scalars[2]": an element of a list).
struct ChangingNumber {
  const composit::Node* node = nullptr;
  std::string key;
  composit::NumberFormula formula;
  // Names in the formula that are numbers of the run: the only element of a value, as it is when
  // the node runs. The others are the caller's.
  std::map<std::string, composit::LazyTensor> reads = {};
};

struct PlanOptions {
  bool grad = false;                                     // of nodes that do not say otherwise
  std::map<std::string, at::Generator> generators = {};  // explicit generators by role
  // Outputs get the strides of their types, for the same bits. A graph that was not recorded says
  // nothing about strides: LibTorch's choice is the faster one.
  bool pin_strides = true;
  // Autograd records the run: what comes of inputs that require a gradient has one. In-place
  // operators run as what they compute.
  bool autograd = false;
  // False: results may have other sizes than their types say, and keep LibTorch's strides.
  bool pin_types = true;
  // Operators run under autograd's keys, in the grad mode of each, as in the program: composites
  // without a body choose their kernels by what requires a gradient. Outputs require none.
  bool as_program = false;
  // UserError where the node has no such number, or what it reads is made later.
  std::vector<ChangingNumber> numbers = {};
  // The graph is a region: what goes in has any strides, and results keep their part in autograd.
  bool region = false;
};

class Plan {
 public:
  // UserError naming the node when LibTorch has no such operator or its schema has other arguments.
  Plan(const composit::Graph& graph, PlanOptions options);
  ~Plan();
  Plan(Plan&&) noexcept;

  // Called after each operator call, in order (regions' nodes, not the composite around them), with
  // its outputs.
  using Observer =
      std::function<void(size_t step, const composit::Node&, const std::vector<at::Tensor>&)>;

  // UserError when a guard fails, with the place it came from; no input is written then.
  // Thread-safe but for what the graph itself shares (generators, mutated inputs).
  // `number_of`: for the names in formulas of PlanOptions::numbers.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs,
                              const Observer& observer = nullptr,
                              const composit::NumberFormula::NumberOf& number_of = nullptr) const;
  // UserError where `run` would turn these inputs down before its first step.
  void expect(const std::vector<at::Tensor>& inputs) const;

  // Number of operator calls of one run.
  size_t size() const;
  // The sources of the operands of call `step`: output `output` of call `step`. Inputs and
  // constants are left out.
  struct Source {
    size_t step;
    size_t output;
  };
  std::vector<Source> sources(size_t step) const;

  struct Impl;  // plan.h

 private:
  std::unique_ptr<Impl> impl_;
};

// The operator, module and line of a node, for messages: "aten::item in encoder.layer.3
// (model.cpp:42)".
std::string place_of(const composit::Node& node);

}  // namespace flashlight::tracer
