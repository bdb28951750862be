#include "composit/eval/evaluate.h"

#include "composit/eval/guards.h"
#include "composit/eval/loops.h"
#include "composit/ir/print.h"
#include "composit/ops/operations.h"

namespace composit {

Values::Values(std::initializer_list<std::pair<LazyTensor, Array>> values) {
  for (const auto& [tensor, value] : values) set(tensor, value);
}

void Values::set(const LazyTensor& tensor, Array value) {
  values_[tensor.hash()] = std::move(value);
}

const Array& Values::operator[](const LazyTensor& tensor) const {
  if (const Array* value = find(tensor)) return *value;
  throw UserError("[evaluate] there is no value for a tensor of '" + tensor.node->op().str() + "'");
}

namespace {

using Arrays = std::vector<Array>;

// The arrays of one run, by node.
class Interpreter {
 public:
  Interpreter(const Graph& graph, Values* keep) : graph_(graph), keep_(keep) { count_uses(); }

  Arrays run(const Arrays& inputs) {
    bind(inputs);
    for (const NodePtr& node : graph_.nodes()) {
      if (is_input(*node)) {
        expect_bound(*node);
      } else {
        arrays_[node.get()] = located(*node);
      }
      if (keep_ != nullptr) keep_all(node);
      for (const LazyTensor& operand : node->operands())
        if (operand) release(operand);
    }
    Arrays results;
    for (const LazyTensor& output : graph_.outputs()) results.push_back(value(output));
    for (const Mutation& mutation : graph_.mutations()) results.push_back(value(mutation.value));
    return results;
  }

 private:
  void count_uses() {
    const auto use = [&](const LazyTensor& tensor) {
      if (tensor) ++uses_[tensor.node.get()];
    };
    for (const NodePtr& node : graph_.nodes())
      for (const LazyTensor& operand : node->operands()) use(operand);
    for (const LazyTensor& output : graph_.outputs()) use(output);
    for (const Mutation& mutation : graph_.mutations()) use(mutation.value);
  }
  void release(const LazyTensor& operand) {
    if (--uses_[operand.node.get()] == 0) arrays_[operand.node.get()].clear();
  }
  Array value(const LazyTensor& tensor) {
    return tensor ? arrays_[tensor.node.get()].at(tensor.index) : Array();
  }
  void keep_all(const NodePtr& node) {
    const Arrays& arrays = arrays_[node.get()];
    for (uint32_t i = 0; i < arrays.size(); ++i) keep_->set(LazyTensor{node, i}, arrays[i]);
  }

  void bind(const Arrays& inputs) {
    const auto& expected = graph_.inputs();
    if (inputs.size() != expected.size())
      throw UserError("[evaluate] expected " + std::to_string(expected.size()) +
                      " inputs, received " + std::to_string(inputs.size()));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Type& type = expected[i].type();
      if (!inputs[i].defined()) continue;  // an unused input may be missing
      const Type& received = inputs[i].type();
      if (received.dtype != type.dtype || received.sizes != type.sizes)
        throw UserError("[evaluate] input '" + input_name(*expected[i].node) + "': expected " +
                        print(type) + ", received " + print(received));
      arrays_[expected[i].node.get()] = {inputs[i]};
    }
  }
  void expect_bound(const Node& node) {
    if (arrays_[&node].empty())
      throw UserError("[evaluate] input '" + input_name(node) + "' has no value");
  }

  // An error says which line of the program made the node, the innermost that is known.
  Arrays located(const Node& node) {
    try {
      return results_of(node);
    } catch (const UserError& error) {
      const std::string_view source = node.annotation("source"), message = error.what();
      if (source.empty() || message.find(kMadeAt) != std::string_view::npos) throw;
      throw UserError(std::string(message) + kMadeAt + std::string(source) + ")");
    }
  }
  static constexpr const char* kMadeAt = " (made at ";

  Arrays results_of(const Node& node) {
    if (node.op() == ops::kConstant) return {node.attribute("value").as<Array>()};
    Arrays operands;
    for (const LazyTensor& operand : node.operands()) operands.push_back(value(operand));
    if (const Guard* guard = guard_of(node)) {
      check_guard(*guard, node, operands);
      return {};
    }
    const Operation* operation = operation_of(node);
    if (operation != nullptr) {
      const Call call = call_of(node, operation->schema);
      Arrays results = evaluate(*operation, call, places(call, operands));
      if (node.effect() >= 0) expect_pinned(node, results);
      if (results.size() == node.outputs().size()) return results;
    }
    if (const Attribute* body = node.find_run("body"))
      return evaluate(*body->as<Region>(), operands);
    throw UserError("[evaluate] composit has no definition of '" + node.op().str() + "'");
  }
  static void expect_pinned(const Node& node, const Arrays& results) {
    for (size_t i = 0; i < std::min(results.size(), node.outputs().size()); ++i)
      if (results[i].defined() && results[i].type().sizes != node.outputs()[i].sizes)
        throw UserError("[evaluate] '" + node.op().str() + "' gives " + print(results[i].type()) +
                        ", the graph holds for " + print(node.outputs()[i]));
  }
  // Operands are the call's tensors that are there.
  static Arrays places(const Call& call, const Arrays& operands) {
    Arrays values(call.tensors().size());
    for (size_t i = 0; i < values.size(); ++i)
      if (call.tensors()[i].defined()) values[i] = operands.at(call.operand(i));
    return values;
  }

  const Graph& graph_;
  Values* keep_;
  FlatMap<const Node*, size_t> uses_;
  FlatMap<const Node*, Arrays> arrays_;
};

class Reference : public Backend {
 public:
  std::string name() const override { return "reference"; }
  std::string help() const override { return "interprets the definitions of operations"; }
  bool has_code(const Operation& /*operation*/) const override { return true; }

 protected:
  Compiled make(const Graph& graph, const CompileOptions& options) const override {
    expect_definitions(graph);
    return code_of(graph, options.name, [graph](const Arrays& inputs) {
      return Interpreter(graph, nullptr).run(inputs);
    });
  }

 private:
  // Adds what is neither defined nor has a body; of what has regions as arguments, in those.
  static void find_missing(const Graph& graph, std::string& missing) {
    for (const NodePtr& node : graph.nodes()) {
      const bool defined = is_input(*node) || node->op() == ops::kConstant ||
                           guard_of(*node) != nullptr || node->find_run("body") != nullptr ||
                           operation_of(*node) != nullptr;
      if (!defined && missing.find("'" + node->op().str() + "'") == std::string::npos)
        missing += (missing.empty() ? "'" : ", '") + node->op().str() + "'";
      for (const NamedAttribute& attribute : node->attributes())
        if (const auto* region = attribute.value.get_if<Region>()) find_missing(**region, missing);
    }
  }
  static void expect_definitions(const Graph& graph) {
    std::string missing;
    find_missing(graph, missing);
    if (!missing.empty()) throw UserError("[evaluate] composit has no definition of " + missing);
    expect_guards(graph);
  }
  // Checks the guards among the effects, also those inside of composites.
  static void expect_guards(const Graph& graph) {
    for (const NodePtr& node : graph.effects()) {
      // Sizes of one that has a definition depend on values, and were pinned.
      if (guard_of(*node) != nullptr || operation_of(*node) != nullptr) continue;
      const Attribute* body = node->find_run("body");
      if (body == nullptr)
        throw UserError("[evaluate] the graph has effects, '" + node->op().str() +
                        "' the first of them; the reference computes values only");
      expect_guards(*body->as<Region>());
    }
  }
};

// Equal inputs are one input, whatever they hold.
void expect_same_value(const LazyTensor& input, const Array& held, Values& seen) {
  const Array* before = seen.find(input);
  if (before != nullptr && !(*before == held))
    throw UserError("[evaluate] two inputs named '" + input_name(*input.node) +
                    "' hold different values; an input is its name and type");
  if (before == nullptr) seen.set(input, held);
}

// The inputs that `outputs` depend on, and their values.
std::pair<Graph, Arrays> bound(const LazyTensors& outputs, const Values& values) {
  const Graph graph({.outputs = outputs});
  Graph::Parts parts = graph.parts();
  Arrays inputs;
  Values seen;
  for (const NodePtr& node : graph.nodes()) {
    if (!is_input(*node)) continue;
    const LazyTensor tensor{node, 0};
    const Array* found = values.find(tensor);
    if (found == nullptr && node->held().defined()) expect_same_value(tensor, node->held(), seen);
    parts.inputs.push_back(tensor);
    inputs.push_back(found == nullptr ? node->held() : *found);
  }
  return {Graph(std::move(parts)), std::move(inputs)};
}

Arrays evaluate_decomposition(const Operation& operation, const Call& call, const Arrays& values) {
  Values inputs;
  std::vector<ArgumentValue> arguments;
  size_t place = 0;
  const auto fresh = [&](const LazyTensor& tensor) {
    const size_t here = place++;
    // A number the program wrote stays one: it counts little in promotion.
    if (!tensor.defined() || is_wrapped_number(tensor)) return tensor;
    const LazyTensor block = input(
        std::to_string(here), tensor_type(tensor.dtype(), tensor.type().sizes), InputKind::block);
    inputs.set(block, values[here]);
    return block;
  };
  for (size_t i = 0; i < call.size(); ++i) {
    arguments.push_back(call[i]);
    if (call[i].is_tensor()) arguments.back() = fresh(call[i].tensor());
    if (!call[i].is_list()) continue;
    LazyTensors items;
    for (const LazyTensor& item : call[i].tensors()) items.push_back(fresh(item));
    arguments.back() = items;
  }
  LazyTensors outputs;
  for (const LazyTensor& result :
       decompose(operation, Call(operation.schema, std::move(arguments))))
    outputs.push_back(result);
  return evaluate(outputs, inputs);
}

}  // namespace

const Backend& reference() {
  static const Reference backend;
  return backend;
}

std::vector<Array> evaluate(const Graph& graph, const std::vector<Array>& inputs,
                            const Backend& backend) {
  return backend.compile(graph)(inputs);
}

std::vector<Array> evaluate(const LazyTensors& outputs, const Values& inputs,
                            const Backend& backend) {
  const auto [graph, arrays] = bound(outputs, inputs);
  return evaluate(graph, arrays, backend);
}

Values evaluate_all(const LazyTensors& outputs, const Values& inputs) {
  const auto [graph, arrays] = bound(outputs, inputs);
  Values all;
  Interpreter(graph, &all).run(arrays);
  return all;
}

std::vector<Array> evaluate(const Operation& operation, const Call& call,
                            const std::vector<Array>& values) {
  return in_operation(operation.schema, [&]() -> Arrays {
    if (const auto loops = loops_of(operation, call)) {
      Arrays operands(call.operand_types().size());
      for (size_t i = 0; i < values.size(); ++i)
        if (call.tensors()[i].defined()) operands[call.operand(i)] = values[i];
      return evaluate(*loops, operands);
    }
    const RunRegion run = [](const Graph& region, const Arrays& inputs) {
      return evaluate(region, inputs);
    };
    if (operation.row.native)
      return operation.row.native({.call = &call, .values = &values, .run = &run});
    return evaluate_decomposition(operation, call, values);
  });
}

}  // namespace composit
