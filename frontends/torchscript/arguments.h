// From what a caller gives to what a function of TorchScript takes.
//
//   Bound bound;
//   bound.arguments.push_back(bind_argument(given, parameter.type(), "x", state, bound));
#pragma once

#include <ATen/core/function_schema.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontends/torchscript/state.h"

namespace flashlight::torchscript {

// Values of the graph by the tensors that stand for them among the arguments.
using StandIns = std::unordered_map<const void*, composit::LazyTensor>;

struct Bound {
  StandIns given;                 // other tensors become inputs of the graph
  std::vector<IValue> arguments;  // what the function gets
  std::vector<at::Tensor> tensors;
  composit::LazyTensors values;  // of `tensors`
};

// `given` for a parameter of this type and name: its tensors become values of the graph. UserError
// for a value of another type.
IValue bind_argument(const IValue& given, const c10::TypePtr& type, const std::string& name,
                     State& state, Bound& bound);

// `given` as LibTorch's own interpreter takes it: numbers in the place of their tensors; its own
// copy.
IValue plain_argument(const IValue& given, const c10::TypePtr& type);

// As many arguments as there are parameters, defaults in the place of those that miss at the end.
std::vector<IValue> with_defaults(const std::string& function,
                                  const std::vector<c10::Argument>& parameters,
                                  std::vector<IValue> given);

// The dtype in which floats are computed: that of the tensors given for floats, float64 if there
// are none.
composit::DType floats_of(const std::vector<c10::Argument>& parameters,
                          const std::vector<IValue>& arguments);

// UserError where `known` names something else than a parameter.
void expect_parameters(const std::string& function, const std::vector<c10::Argument>& parameters,
                       const std::map<std::string, IValue>& known);

// Tensors for parameters, one after the other.
class TensorsInOrder {
 public:
  TensorsInOrder(std::string function, const composit::LazyTensors& tensors)
      : function_(std::move(function)), tensors_(tensors) {}
  // For the parameter; its default where there is no tensor left.
  IValue argument(const c10::Argument& parameter);
  // UserError where there are tensors left.
  void expect_end() const;
  const StandIns& stand_ins() const { return stand_ins_; }

 private:
  IValue take(const c10::TypePtr& type, const std::string& name);
  std::string function_;
  const composit::LazyTensors& tensors_;
  size_t next_ = 0;
  StandIns stand_ins_;
};

}  // namespace flashlight::torchscript
