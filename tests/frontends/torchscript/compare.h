// TorchScript as graphs, against LibTorch's own interpreter on the same text.
//
//   check({{.text = "def f(x: Tensor) -> Tensor:\n    return x * x\n", .arguments = {x}}});
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "frontends/torchscript/place.h"
#include "frontends/torchscript/script.h"

namespace flashlight::test {

struct Case {
  std::string text;  // its last function is called
  // Tensors of float64; of one element, without axes, for parameters that are floats.
  std::vector<c10::IValue> arguments;
  torchscript::Limits limits = {};
  std::string eager = {};  // the same computation as LibTorch can run it, where `text` recurs
  bool gradient = true;    // there is one
  bool autograd = true;    // sees all gradients: it does not where a number of Python carries one
  std::string uses = {};   // an operation that the graph must hold, "composit::scan"
};

// Values and gradients of all cases, by composit's reference and as C++. Values are compared with
// what LibTorch computes for the text, gradients with central differences of that, and with
// autograd's where all arguments are tensors.
void check(const std::vector<Case>& cases);

// Values of one case by the reference alone; what composit, or LibTorch, says where it
// refuses the text.
std::string compare_values(const Case& one);

// The name of the last function of a text.
std::string last_function(const std::string& text);
// A tensor of float64 with random elements, away from 0.
at::Tensor random(const std::vector<int64_t>& sizes, uint64_t seed = 0);
at::Tensor number(double value);
// True if an operation is in the graph or its regions.
bool holds(const composit::Graph& graph, const std::string& operation);

}  // namespace flashlight::test
