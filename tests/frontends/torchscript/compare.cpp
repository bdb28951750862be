#include "tests/frontends/torchscript/compare.h"

#include <ATen/Functions.h>
#include <ATen/Tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/compilation_unit.h>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/ops/functions.h"
#include "flashlight/cpp/backend.h"
#include "frontends/torchscript/source.h"
#include "frontends/torchscript/structure.h"
#include "tests/agreement.h"
#include "tracer/convert.h"

namespace flashlight::test {
namespace {

using c10::IValue;
using composit::Array;
using composit::Graph;
using composit::LazyTensor;
using composit::LazyTensors;
using Arrays = std::vector<Array>;
using Tensors = std::vector<at::Tensor>;

Tensors tensors_of(const IValue& value) {
  Tensors tensors;
  torchscript::for_each_leaf(value, "", [&](const IValue& leaf, const std::string&) {
    if (leaf.isTensor())
      tensors.push_back(leaf.toTensor());
    else if (!leaf.isNone())
      tensors.push_back(at::scalar_tensor(leaf.toScalar(), leaf.isDouble() ? at::kDouble
                                                           : leaf.isInt()  ? at::kLong
                                                                           : at::kBool));
  });
  return tensors;
}

// LibTorch's interpreter on the text.
class Eager {
 public:
  explicit Eager(const Case& one)
      : text_(one.eager.empty() ? one.text : one.eager),
        functions_(torchscript::functions_of(text_, "<text>")),
        function_(functions_.unit->get_function(last_function(text_))) {}

  // `tensors` in the place of those among the arguments of the case.
  Tensors operator()(const Case& one, const Tensors& tensors) {
    size_t next = 0;
    std::vector<IValue> arguments;
    const auto& parameters = function_.getSchema().arguments();
    for (size_t i = 0; i < one.arguments.size(); ++i)
      arguments.push_back(argument(one.arguments[i], parameters[i].type(), tensors, next));
    return tensors_of(function_(std::move(arguments)));
  }

 private:
  static IValue argument(const IValue& given, const c10::TypePtr& type, const Tensors& tensors,
                         size_t& next) {
    if (given.isTensor()) {
      const at::Tensor& tensor = tensors[next++];
      if (type->kind() == c10::TypeKind::FloatType) return tensor.item().toDouble();
      if (type->kind() == c10::TypeKind::IntType) return tensor.item().toLong();
      if (type->kind() == c10::TypeKind::BoolType) return tensor.item().toBool();
      return tensor.clone();  // it may be written
    }
    if (given.isList()) {
      const auto element = type->expectRef<c10::ListType>().getElementType();
      c10::impl::GenericList items(element);
      for (const IValue& item : given.toList().vec())
        items.push_back(argument(item, element, tensors, next));
      return items;
    }
    if (!given.isTuple()) return given;
    std::vector<IValue> items;
    const auto elements = type->expectRef<c10::TupleType>().elements();
    for (size_t i = 0; i < elements.size(); ++i)
      items.push_back(argument(given.toTupleRef().elements()[i], elements[i], tensors, next));
    return c10::ivalue::Tuple::create(std::move(items));
  }

  std::string text_;
  torchscript::Functions functions_;
  torch::jit::Function& function_;
};

// Another number for every element, so that no gradient cancels.
at::Tensor weights_of(const at::Tensor& result) {
  return at::cos(at::arange(result.numel(), result.options())).reshape(result.sizes()) + 0.25;
}

at::Tensor loss_of(const Tensors& results) {
  at::Tensor loss = at::zeros({}, at::kDouble);
  for (const at::Tensor& result : results)
    if (result.is_floating_point()) loss = loss + (result * weights_of(result)).sum();
  return loss;
}

Tensors central_differences(Eager& eager, const Case& one, const Tensors& inputs) {
  constexpr double kStep = 1e-6;
  Tensors gradients;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_floating_point()) continue;
    at::Tensor gradient = at::zeros_like(inputs[i]);
    for (int64_t k = 0; k < inputs[i].numel(); ++k) {
      const auto moved = [&](double step) {
        Tensors changed = inputs;
        changed[i] = inputs[i].clone();
        changed[i].view({-1})[k] += step;
        return loss_of(eager(one, changed)).item().toDouble();
      };
      gradient.view({-1})[k] = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    }
    gradients.push_back(gradient);
  }
  return gradients;
}

// Nothing where an argument is a number.
Tensors autograd(Eager& eager, const Case& one, const Tensors& inputs) {
  Tensors leaves, wanted;
  for (const at::Tensor& input : inputs) {
    if (input.dim() == 0) return {};
    leaves.push_back(input.detach().clone());
    if (input.is_floating_point()) wanted.push_back(leaves.back().requires_grad_());
  }
  const at::Tensor loss = loss_of(eager(one, leaves));
  if (!loss.requires_grad()) return {};
  loss.backward();
  Tensors gradients;
  for (const at::Tensor& leaf : wanted)
    gradients.push_back(leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf));
  return gradients;
}

Graph gradient_of(const Graph& graph, const Tensors& results) {
  composit::LazyTensor loss;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].is_floating_point()) continue;
    const composit::LazyTensor weights(
        composit::constant(tracer::to_array(weights_of(results[i]).contiguous())));
    const composit::LazyTensor term = composit::sum(graph.outputs()[i] * weights);
    loss = loss.defined() ? loss + term : term;
  }
  LazyTensors inputs;
  for (const LazyTensor& input : graph.inputs())
    if (composit::is_floating_point(input.dtype())) inputs.push_back(input);
  return Graph({.inputs = graph.inputs(), .outputs = composit::grad(loss, inputs)});
}

// One case, on its way through all that is compared.
struct Checked {
  explicit Checked(const Case& c) : one(c), eager(c) {
    for (const IValue& argument : one.arguments) flatten_tensors(argument);
    for (const at::Tensor& input : inputs) arrays.push_back(tracer::to_array(input));
    results = eager(one, inputs);
    const auto script = torchscript::compile(one.text, "<text>", one.limits);
    graph = script.graph(last_function(one.text), one.arguments);
    if (one.gradient) gradient = gradient_of(graph, results);
  }
  void flatten_tensors(const IValue& value) {
    torchscript::for_each_leaf(value, "", [&](const IValue& leaf, const std::string&) {
      if (leaf.isTensor()) inputs.push_back(leaf.toTensor());
    });
  }

  void expect(const Arrays& values, const Tensors& expected, const char* by, double times) const {
    ASSERT_EQ(values.size(), expected.size()) << by;
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(composit::test::difference(
                    values[i], tracer::to_array(expected[i].detach().contiguous()), times),
                "")
          << by << ", number " << i;
  }
  void expect_values(const Arrays& values, const char* by) const {
    expect(values, results, by, 16);
  }
  void expect_gradient(const Arrays& values, const char* by) {
    constexpr double kOfDifferences = 1e6;  // 1e-6 and so on: of a step of 1e-6
    expect(values, central_differences(eager, one, inputs), by, kOfDifferences);
    const Tensors exact = one.autograd ? autograd(eager, one, inputs) : Tensors();
    if (!exact.empty()) expect(values, exact, by, 64);
  }

  Case one;
  Eager eager;
  Tensors inputs, results;
  Arrays arrays;
  Graph graph, gradient;
};

}  // namespace

std::string last_function(const std::string& text) {
  const size_t begin =
      text.rfind("\ndef ") == std::string::npos ? text.find("def ") : text.rfind("\ndef ") + 1;
  return text.substr(begin + 4, text.find('(', begin) - begin - 4);
}

at::Tensor random(const std::vector<int64_t>& sizes, uint64_t seed) {
  const int64_t count = c10::multiply_integers(sizes);
  const at::Tensor steps = at::arange(count, at::kDouble) + 1.0 + static_cast<double>(seed);
  return (at::sin(steps * 12.9898) * 1.5 + at::sign(at::sin(steps * 12.9898)) * 0.25)
      .reshape(sizes);
}

at::Tensor number(double value) { return at::scalar_tensor(value, at::kDouble); }

bool holds(const Graph& graph, const std::string& operation) {
  for (const composit::NodePtr& node : graph.nodes()) {
    bool found = node->op().str() == operation;
    composit::for_each_region(
        *node, [&](const composit::Region& region) { found = found || holds(*region, operation); });
    if (found) return true;
  }
  return false;
}

std::string compare_values(const Case& one) {
  Eager eager(one);
  Graph graph;
  try {
    graph = torchscript::compile(one.text, "<text>", one.limits)
                .graph(last_function(one.text), one.arguments);
  } catch (const composit::UserError& refusal) {
    return refusal.what();
  }
  Tensors inputs;
  Arrays arrays;
  for (const IValue& argument : one.arguments)
    if (argument.isTensor()) inputs.push_back(argument.toTensor());
  for (const at::Tensor& input : inputs) arrays.push_back(tracer::to_array(input));
  composit::verify(graph);
  Tensors expected;
  try {
    expected = eager(one, inputs);
  } catch (const std::exception& error) {
    return std::string("LibTorch: ") + error.what();
  }
  const Arrays values = composit::evaluate(graph, arrays);
  EXPECT_GE(values.size(), expected.size());
  for (size_t i = 0; i < std::min(values.size(), expected.size()); ++i)
    EXPECT_EQ(composit::test::difference(values[i],
                                         tracer::to_array(expected[i].detach().contiguous()), 64),
              "")
        << "result " << i << " of\n"
        << composit::print(graph);
  return {};
}

void check(const std::vector<Case>& cases) {
  std::vector<Checked> all;
  std::vector<Graph> graphs;
  std::vector<std::string> names;
  for (const Case& one : cases) {
    SCOPED_TRACE(one.text);
    Checked& checked = all.emplace_back(one);
    graphs.push_back(checked.graph);
    if (one.gradient) graphs.push_back(checked.gradient);
  }
  for (size_t i = 0; i < graphs.size(); ++i) names.push_back("program_" + std::to_string(i));
  const auto compiled = cpp::compile(graphs, names);
  size_t next = 0;
  for (Checked& checked : all) {
    SCOPED_TRACE(checked.one.text + composit::print(checked.graph));
    composit::verify(checked.graph);
    EXPECT_EQ(composit::parse(composit::print(checked.graph)), checked.graph);
    EXPECT_TRUE(checked.one.uses.empty() || holds(checked.graph, checked.one.uses));
    checked.expect_values(composit::evaluate(checked.graph, checked.arrays), "reference");
    checked.expect_values(compiled[next++](checked.arrays), "C++");
    if (!checked.one.gradient) continue;
    checked.expect_gradient(composit::evaluate(checked.gradient, checked.arrays), "reference");
    checked.expect_gradient(compiled[next++](checked.arrays), "C++");
  }
}

}  // namespace flashlight::test
