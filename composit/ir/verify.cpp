#include "composit/ir/verify.h"

#include <algorithm>
#include <functional>
#include <unordered_set>
#include <utility>
#include <variant>

#include "composit/ir/error.h"
#include "composit/ir/overload.h"
#include "composit/ir/print.h"

namespace composit {
namespace {

using Fault = std::optional<std::string>;

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }
std::string numbered(std::string_view what, size_t number) {
  return std::string(what) + " " + std::to_string(number);
}

// a * b + c for numbers >= 0; false when it does not fit.
bool multiply_add(int64_t a, int64_t b, int64_t c, int64_t& result) {
  int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(product, c, &result);
}

// Row-major strides are computed too, so that even a type without elements must not have them
// overflow.
bool memory_is_countable(const Type& type) {
  int64_t elements = 1, extent = 1, bytes = 0;
  for (size_t axis = 0; axis < type.rank(); ++axis) {
    const int64_t size = std::max<int64_t>(type.sizes[axis], 1);
    if (!multiply_add(elements, size, 0, elements)) return false;
    if (!type.strides.empty() && !multiply_add(size - 1, type.strides[axis], extent, extent))
      return false;
  }
  return multiply_add(std::max(elements, extent), static_cast<int64_t>(item_size(type.dtype)), 0,
                      bytes);
}

// ---- attributes ---------------------------------------------------------------------------------

Fault fault_of_array(const Array& array) {
  if (!array.defined()) return "an array has no value";
  return fault_of(array.type());
}

template <class Enum>
Fault fault_of_enumerator(Enum value) {
  return is_valid(value) ? Fault() : "an enumerator is out of range";
}

Fault fault_of_value(const Attribute& attribute, size_t depth) {
  if (depth > kMaxNesting) return "lists are nested too deeply";
  return std::visit(Overload{[](DType value) { return fault_of_enumerator(value); },
                             [](Device value) { return fault_of_enumerator(value); },
                             [](Layout value) { return fault_of_enumerator(value); },
                             [](MemoryFormat value) { return fault_of_enumerator(value); },
                             [](const Array& array) { return fault_of_array(array); },
                             [&](const Region& region) {
                               if (!region) return Fault("a region has no value");
                               return depth == 0 ? Fault() : "a region stands in a list";
                             },
                             [&](const List& list) {
                               for (const Attribute& item : list.items)
                                 if (Fault fault = fault_of_value(item, depth + 1)) return fault;
                               return Fault();
                             },
                             [](const auto&) { return Fault(); }},
                    attribute.value());
}

Fault fault_of_names(const Attributes& attributes) {
  std::vector<std::string_view> names;
  for (const NamedAttribute& attribute : attributes) names.push_back(attribute.key());
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  return twice == names.end() ? Fault() : "two attributes are called " + quoted(*twice);
}

Fault fault_of_attributes(const Attributes& attributes) {
  for (const auto& [name, value] : attributes) {
    if (name.empty()) return "an attribute has no name";
    if (Fault fault = fault_of_value(value, 0))
      return "attribute " + quoted(name.str()) + ": " + *fault;
  }
  return fault_of_names(attributes);
}

// ---- nodes --------------------------------------------------------------------------------------

Fault fault_of_operand(const LazyTensor& operand, size_t number) {
  if (!operand || operand.index < operand.node->outputs().size()) return {};
  return numbered("operand", number) + " is " + numbered("output", operand.index) +
         " of a node with " + std::to_string(operand.node->outputs().size());
}

Fault fault_of_arguments(const Node& node) {
  const auto& operands = node.operands();
  size_t covered = 0;
  for (const Argument& argument : node.arguments()) {
    const bool tensor = argument.kind == Argument::Kind::tensor;
    if (argument.begin != covered || argument.size > operands.size() - covered)
      return "arguments do not cover the operands in order";
    if ((tensor && argument.size != 1) ||
        (argument.kind == Argument::Kind::absent && argument.size != 0))
      return "an argument has another number of operands than its kind";
    if (tensor && !operands[covered]) return "a tensor argument has no tensor";
    covered += argument.size;
  }
  if (covered != operands.size()) return "there are more operands than arguments";
  for (size_t i = 0; i < operands.size(); ++i)
    if (Fault fault = fault_of_operand(operands[i], i)) return fault;
  return {};
}

Fault fault_of_input(const Node& node) {
  const Attributes& attributes = node.attributes();
  if (attributes.size() < 2 || attributes[0].key() != "name" || attributes[1].key() != "kind" ||
      !attributes[0].value.get_if<std::string>() || !attributes[1].value.get_if<std::string>())
    return "an input's first attributes are its name and kind";
  const auto& kind = attributes[1].value.as<std::string>();
  if (!input_kind_from_name(kind)) return "unknown kind of input " + quoted(kind);
  if (!node.arguments().empty() || !node.execution().empty() || node.outputs().size() != 1)
    return "an input has one output, and neither operands nor execution attributes";
  return {};
}

Fault fault_of_constant(const Node& node) {
  const Attribute* value = node.find_attribute("value");
  if (value == nullptr || !node.arguments().empty() || node.outputs().size() != 1)
    return "a constant has a value, one output and no operand";
  const auto* array = value->get_if<Array>();
  const Type& type = node.outputs()[0];
  if (array ? array->type().dtype != type.dtype || array->type().sizes != type.sizes
            : value->get_if<Opaque>() == nullptr)
    return "a constant's value is not of its type";
  return {};
}

// Like Node::effect, but also of illegal nodes.
int64_t place_of_effect(const Node& node) {
  const Attribute* effect = node.find_run("effect");
  return effect != nullptr && effect->get_if<int64_t>() ? effect->as_int() : -1;
}

Fault fault_of_effect(const Node& node) {
  if (node.find_run("effect") == nullptr || place_of_effect(node) >= 0) return {};
  return "the attribute 'effect' is not a place in the effect order";
}

// ---- regions ------------------------------------------------------------------------------------

Fault fault_of_region(const Graph& region, const Node& node) {
  for (const LazyTensor& input : region.inputs())
    if (!input || !is_input(*input.node) || input_kind(*input.node) != InputKind::block)
      return "an input of a region is not a block";
  if (!region.effects().empty() && node.effect() < 0)
    return "a region has effects, but its node has not";
  return {};
}

Fault fault_of_body(const Graph& body, const Node& node) {
  std::vector<Type> operands, results;
  for (const LazyTensor& operand : node.operands())
    if (operand) operands.push_back(operand.type());
  for (const LazyTensor& result : body.outputs())
    results.push_back(result ? result.type() : undefined_type());
  if (body.inputs().size() != operands.size())
    return "the body has " + std::to_string(body.inputs().size()) + " inputs for " +
           std::to_string(operands.size()) + " operands";
  if (results.size() != node.outputs().size())
    return "the body has " + std::to_string(results.size()) + " outputs for " +
           std::to_string(node.outputs().size()) + " of the node";
  for (size_t i = 0; i < operands.size(); ++i)
    if (body.inputs()[i].type() != operands[i])
      return numbered("the body's input", i) + " is " + print(body.inputs()[i].type()) +
             ", the operand " + print(operands[i]);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i] != node.outputs()[i])
      return numbered("the body's output", i) + " is " + print(results[i]) + ", the node's " +
             print(node.outputs()[i]);
  return {};
}

Fault fault_of_regions(const Node& node) {
  Fault fault;
  for_each_region(node, [&](const Region& region) {
    if (!fault) fault = fault_of_region(*region, node);
  });
  if (fault) return fault;
  const Attribute* body = node.find_run("body");
  if (body == nullptr) return {};
  const auto* region = body->get_if<Region>();
  return region ? fault_of_body(**region, node) : Fault("the attribute 'body' is not a region");
}

// ---- graphs -------------------------------------------------------------------------------------

Fault fault_of_inputs(const LazyTensors& inputs) {
  std::unordered_set<std::string> names;
  for (const LazyTensor& input : inputs) {
    if (!input || !is_input(*input.node) || input.index != 0)
      return "an input is not an input node";
    if (Fault fault = fault_of_input(*input.node)) return fault;
    if (!names.insert(input_name(*input.node)).second)
      return "two inputs are called " + quoted(input_name(*input.node));
  }
  return {};
}

// `mutated` tells for every input whether it was a target before.
Fault fault_of_mutation(const Mutation& mutation, FlatMap<const Node*, bool>& mutated) {
  const Node* input = mutation.target.node.get();
  bool* before = mutated.find(input);
  if (before == nullptr || mutation.target.index != 0)
    return "the target of a mutation is not an input";
  if (std::exchange(*before, true))
    return "input " + quoted(input_name(*input)) + " is mutated twice";
  if (!mutation.value || fault_of_operand(mutation.value, 0)) return "a mutation has no value";
  const Type &target = mutation.target.type(), &value = mutation.value.type();
  if (target.dtype == value.dtype && target.device == value.device && target.sizes == value.sizes)
    return {};
  return "input " + quoted(input_name(*mutation.target.node)) + " is " + print(target) +
         ", its new value " + print(value);
}

class Verifier {
 public:
  void run(const Graph& graph, size_t depth) {
    if (!visited_.insert(&graph.parts()).second) return;
    if (depth > kMaxNesting) fail(graph, nullptr, "regions are nested too deeply");
    if (Fault fault = fault_of(graph.parts())) fail(graph, nullptr, *fault);
    check_nodes(graph);
    check_effects(graph);
    for (const NodePtr& node : graph.nodes())
      for_each_region(*node, [&](const Region& region) { run(*region, depth + 1); });
  }

 private:
  void check_nodes(const Graph& graph) {
    FlatMap<const Node*, std::monostate> inputs;
    for (const LazyTensor& input : graph.inputs()) inputs.insert(input.node.get(), {});
    for (const NodePtr& node : graph.nodes()) {
      if (Fault fault = fault_of(*node)) fail(graph, node.get(), *fault);
      if (is_input(*node) && !inputs.contains(node.get()))
        fail(graph, node.get(), "an input is used that the graph does not list");
    }
  }

  void check_effects(const Graph& graph) {
    FlatMap<const Node*, std::monostate> listed;
    for (const NodePtr& node : graph.effects()) listed.insert(node.get(), {});
    for (const NodePtr& node : graph.nodes())
      if (node->effect() >= 0 && !listed.contains(node.get()))
        fail(graph, node.get(), "a node with an effect is not listed as one");
  }

  [[noreturn]] static void fail(const Graph& graph, const Node* node, const std::string& reason) {
    throw InternalError("[verify] " + reason + around(graph, node), __FILE__, __LINE__);
  }

  // Ten nodes around the fault; those at the end where it is in no node.
  static std::string around(const Graph& graph, const Node* fault) {
    constexpr size_t kBefore = 5, kShown = 10;
    const auto& nodes = graph.nodes();
    size_t place = nodes.size();
    for (size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].get() == fault) place = i;
    const size_t begin =
        std::min(place - std::min(place, kBefore), nodes.size() - std::min(nodes.size(), kShown));
    const Names names(graph);
    std::string text;
    for (size_t i = begin; i < std::min(begin + kShown, nodes.size()); ++i)
      text += (i == place ? "\n> " : "\n  ") + print(*nodes[i], names, {.brief = true});
    return text;
  }

  std::unordered_set<const Graph::Parts*> visited_;
};

}  // namespace

Fault fault_of(const Type& type) {
  if (!is_defined(type))
    return type == undefined_type() ? Fault() : "an undefined type has properties";
  if (!is_valid(type.dtype) || !is_valid(type.device) || !is_valid(type.layout))
    return "a type has a dtype, device or layout out of range";
  if (type.rank() > kMaxRank) return "a type has more than " + std::to_string(kMaxRank) + " axes";
  if (type.strides.size() != (type.layout == Layout::strided ? type.rank() : 0))
    return "a type has another number of strides than of sizes";
  const auto negative = [](int64_t size) { return size < 0; };
  if (std::any_of(type.sizes.begin(), type.sizes.end(), negative) ||
      std::any_of(type.strides.begin(), type.strides.end(), negative))
    return "a type has a negative size or stride";
  if (!memory_is_countable(type)) return "a type has too many elements";
  return {};
}

Fault fault_of(const Node& node) {
  if (node.op().empty()) return "a node has no operation";
  for (const Type& type : node.outputs())
    if (Fault fault = fault_of(type)) return fault;
  if (Fault fault = fault_of_attributes(node.attributes())) return fault;
  if (Fault fault = fault_of_attributes(node.execution())) return fault;
  if (Fault fault = fault_of_arguments(node)) return fault;
  for (const Annotation& annotation : node.annotations())
    if (annotation.operand < -1 || annotation.operand >= static_cast<int>(node.operands().size()))
      return "an annotation is on operand " + std::to_string(annotation.operand);
  if (is_input(node)) return fault_of_input(node);
  if (node.op() == ops::kConstant) return fault_of_constant(node);
  if (Fault fault = fault_of_effect(node)) return fault;
  return fault_of_regions(node);
}

Fault fault_of(const Graph::Parts& parts) {
  if (Fault fault = fault_of_inputs(parts.inputs)) return fault;
  for (size_t i = 0; i < parts.outputs.size(); ++i)
    if (parts.outputs[i] && fault_of_operand(parts.outputs[i], 0))
      return numbered("output", i) + " is an output its node does not have";
  FlatMap<const Node*, bool> mutated;
  for (const LazyTensor& input : parts.inputs) mutated.insert(input.node.get(), false);
  for (const Mutation& mutation : parts.mutations)
    if (Fault fault = fault_of_mutation(mutation, mutated)) return fault;
  int64_t last = -1;
  for (const NodePtr& node : parts.effects) {
    const int64_t place = node ? place_of_effect(*node) : -1;
    if (place <= last) return "effects are not listed in their order";
    last = place;
  }
  return {};
}

void verify(const Graph& graph) { Verifier().run(graph, 0); }

}  // namespace composit
