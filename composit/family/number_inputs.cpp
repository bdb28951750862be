#include "composit/family/number_inputs.h"

#include <algorithm>
#include <map>
#include <set>

#include "composit/ir/error.h"
#include "composit/ir/integers.h"
#include "composit/ir/transform.h"
#include "composit/ops/functions.h"
#include "composit/ops/operations.h"

namespace composit {
namespace {

// Computes a formula of tensors without axes.
LazyTensor tensor_of(const NumberFormula& formula,
                     const std::map<std::string, LazyTensor>& tensors) {
  using Kind = NumberFormula::Kind;
  const auto argument = [&](size_t i) { return tensor_of(formula.arguments()[i], tensors); };
  switch (formula.kind()) {
    case Kind::constant:
      return full({}, formula.constant(), DType::float64);
    case Kind::named: {
      const auto found = tensors.find(formula.name());
      if (found == tensors.end())
        throw UserError("[compile] the number '" + formula.name() +
                        "' is read by the program where it is not known yet");
      return found->second;
    }
    case Kind::negate:
      return -argument(0);
    case Kind::single:
      return to(to(argument(0), DType::float32), DType::float64);
    case Kind::root:
      return sqrt(argument(0));
    case Kind::add:
      return argument(0) + argument(1);
    case Kind::subtract:
      return argument(0) - argument(1);
    case Kind::multiply:
      return argument(0) * argument(1);
    case Kind::divide:
      return argument(0) / argument(1);
    case Kind::power:
      return pow(argument(0), argument(1));
  }
  return {};
}

// A number of a node.
struct Use {
  NumberKey key;
  NumberFormula formula;
};

// Puts tensors in the place of numbers. A number that the program reads is known from there on.
class TensorsForNumbers {
 public:
  void add_tensor(const std::string& name, const LazyTensor& tensor) {
    tensors_.emplace(name, tensor);
  }
  void add_use(const Node* node, const std::string& key, const NumberFormula& formula) {
    uses_[node].push_back({NumberKey(key), formula});
  }
  void add_read(const Node* node, const std::string& name) { reads_[node].push_back(name); }

  Graph run(const Graph& graph) {
    return rebuild(graph, [this](const Node& node, const LazyTensors& operands) {
      return rewritten(node, operands);
    });
  }

 private:
  std::optional<Replacement> rewritten(const Node& node, const LazyTensors& operands) {
    if (const auto read = reads_.find(&node); read != reads_.end()) {
      for (const std::string& name : read->second)
        tensors_[name] = to(reshape(operands.at(0), {}), DType::float64);
      return Replacement{};
    }
    LazyTensors now = operands;
    bool changes = false;
    for (size_t i = 0; i < now.size(); ++i) {
      const LazyTensor& old = node.operands()[i];
      const auto found = old ? uses_.find(old.node.get()) : uses_.end();
      if (found == uses_.end() || old.node->op() != ops::kConstant) continue;
      const LazyTensor number = number_for(node, found->second.front());
      now[i] = takes_wide_numbers(node) ? number : to(number, node.outputs().at(0).dtype);
      changes = true;
    }
    const auto own = uses_.find(&node);
    if (own != uses_.end() && own->second.front().key.element)
      return Replacement{with_tensors(node, wide(now), own->second)};
    if (own != uses_.end() && node.op() != ops::kConstant)
      return Replacement{{with_tensor(node, wide(now), own->second)}};
    if (!changes) return std::nullopt;
    return replace_by(copy_of(node, std::move(now)).make_node());
  }

  // Rounded as the operator rounds a number. Operators of half precision compute in single
  // precision, and some take the number so, too.
  LazyTensor number_for(const Node& node, const Use& use, size_t output = 0) const {
    const DType dtype = node.outputs().at(output).dtype;
    if (!is_floating_point(dtype)) refuse(node, use.key.name);
    const LazyTensor number = tensor_of(use.formula, tensors_);
    return to(takes_wide_numbers(node) ? number : to(number, dtype), opmath_dtype(dtype));
  }

  static bool takes_wide_numbers(const Node& node) {
    const auto is_wide = [](const Operation* operation) {
      return operation != nullptr && operation->row.wide_numbers;
    };
    constexpr std::string_view kOfLists = "aten::_foreach_";
    const std::string name = node.op().str();
    if (!name.starts_with(kOfLists)) return is_wide(operation_of(node));
    const size_t base = kOfLists.size();
    const std::string of_one = "aten::" + name.substr(base, name.find('.') - base);
    return is_wide(find_operation(Symbol(of_one))) ||
           is_wide(find_operation(Symbol(of_one + ".Scalar")));
  }

  static LazyTensors wide(LazyTensors operands) {
    for (LazyTensor& operand : operands)
      if (operand) operand = widened(operand);
    return operands;
  }

  [[noreturn]] static void refuse(const Node& node, const std::string& key) {
    const std::string_view source = node.annotation("source");
    throw UserError("[compile] " + node.op().str() +
                    (source.empty() ? "" : " at " + std::string(source)) + ": its '" + key +
                    "' differs from call to call, and no tensor can stand for it");
  }

  // The result of the operator with a tensor in place of its number.
  LazyTensor with_tensor(const Node& node, const LazyTensors& operands,
                         const std::vector<Use>& uses) const {
    const std::string& op = node.op().str();
    const std::string& key = uses.front().key.name;
    if (uses.size() > 1) refuse(node, uses[1].key.name);
    const Type& type = node.outputs().at(0);
    const LazyTensor number = number_for(node, uses.front());
    const LazyTensor x = operands.empty() ? LazyTensor() : operands[0];
    const auto is = [&](std::string_view name, std::string_view attribute) {
      return op == name && key == attribute;
    };
    const auto alpha = [&](const LazyTensor& y) {
      const auto one = real_number_of(node.attribute("alpha"));
      return one && *one == 1 ? y : y * *one;
    };
    LazyTensor result;
    if (is("aten::full", "fill_value")) result = expand(number, type.sizes);
    if (is("aten::mul.Scalar", "other")) result = x * number;
    if (is("aten::div.Scalar", "other")) result = x / number;
    if (is("aten::add.Scalar", "other")) result = x + alpha(number);
    if (is("aten::sub.Scalar", "other")) result = x - alpha(number);
    if (is("aten::add.Tensor", "alpha")) result = x + number * operands.at(1);
    if (is("aten::sub.Tensor", "alpha")) result = x - number * operands.at(1);
    if (is("aten::addcmul", "value")) result = x + number * operands.at(1) * operands.at(2);
    if (is("aten::addcdiv", "value")) result = x + number * (operands.at(1) / operands.at(2));
    if (is("aten::lerp.Scalar", "weight")) result = x + number * (operands.at(1) - x);
    if (is("aten::pow.Tensor_Scalar", "exponent")) result = pow(x, number);
    if (is("aten::full_like", "fill_value") || is("aten::fill.Scalar", "value"))
      result = expand(number, x.sizes());
    if (!result || result.dtype() != opmath_dtype(type.dtype) || result.sizes() != type.sizes)
      refuse(node, key);
    return to(result, type.dtype);
  }

  // The results of an operator on lists with tensors in place of some numbers of its list.
  LazyTensors with_tensors(const Node& node, const LazyTensors& operands,
                           const std::vector<Use>& uses) const {
    const std::string& op = node.op().str();
    const std::string& key = uses.front().key.name;
    const size_t count = node.outputs().size();
    const auto& numbers = node.attribute(key).as<List>().items;
    if (operands.size() % count != 0 || numbers.size() != count) refuse(node, key);
    LazyTensors results;
    for (size_t i = 0; i < count; ++i) {
      const auto use = std::find_if(uses.begin(), uses.end(),
                                    [&](const Use& one) { return one.key.element == i; });
      const LazyTensor number = use != uses.end() ? number_for(node, *use, i)
                                                  : full({}, *real_number_of(numbers[i]),
                                                         opmath_dtype(node.outputs()[i].dtype));
      const auto operand = [&](size_t list) { return operands.at(list * count + i); };
      LazyTensor result;
      if (op == "aten::_foreach_mul.ScalarList") result = operand(0) * number;
      if (op == "aten::_foreach_div.ScalarList") result = operand(0) / number;
      if (op == "aten::_foreach_add.ScalarList") result = operand(0) + number;
      if (op == "aten::_foreach_sub.ScalarList") result = operand(0) - number;
      if (op == "aten::_foreach_addcmul.ScalarList")
        result = operand(0) + number * operand(1) * operand(2);
      if (op == "aten::_foreach_addcdiv.ScalarList")
        result = operand(0) + number * (operand(1) / operand(2));
      const Type& type = node.outputs()[i];
      if (!result || result.dtype() != opmath_dtype(type.dtype) || result.sizes() != type.sizes)
        refuse(node, key);
      results.push_back(to(result, type.dtype));
    }
    return results;
  }

  std::map<std::string, LazyTensor> tensors_;
  std::map<const Node*, std::vector<Use>> uses_;
  std::map<const Node*, std::vector<std::string>> reads_;  // nodes that read numbers
};

// The value that a node reads a number of and expects no certain one; absent for other nodes.
LazyTensor freely_read(const Node& node) {
  static const Symbol read("aten::_local_scalar_dense");
  if (node.operands().size() != 1) return {};
  bool found = node.op() == read && node.find_run("expected") == nullptr;
  for_each_region(node, [&](const Region& region) {
    for (const NodePtr& inner : region->effects()) found = found || freely_read(*inner);
  });
  return found ? node.operands()[0] : LazyTensor();
}

}  // namespace

Graph with_number_inputs(const Family& family, const Binding& binding,
                         const std::vector<std::string>& names) {
  TensorsForNumbers tensors;
  LazyTensors inputs;
  for (const std::string& name : names) {
    inputs.push_back(
        input("number." + name, tensor_type(DType::float64, {}), InputKind::user_input));
    tensors.add_tensor(name, inputs.back());
  }
  for (const NumberUse& use : family.number_uses)
    if (use.node->find_attribute(use.key) != nullptr)
      tensors.add_use(binding.of({use.node, 0}).node.get(), use.key, use.formula);
  const auto &effects = family.example.effects(), &bound = binding.graph.effects();
  for (size_t i = 0; i < effects.size(); ++i)
    for (const NumberUse& use : family.number_uses)
      if (use.node == effects[i]) tensors.add_read(bound.at(i).get(), use.formula.name());
  Graph::Parts parts = tensors.run(binding.graph).parts();
  for (const LazyTensor& input : inputs) parts.inputs.push_back(input);
  return Graph(std::move(parts));
}

Graph with_numbers_inside(const Graph& graph, const std::vector<NumberInside>& numbers) {
  TensorsForNumbers tensors;
  std::set<std::string> names;
  std::set<const Node*> outside;
  for (const NodePtr& node : graph.nodes()) outside.insert(node.get());
  for (const NumberInside& number : numbers) {
    if (!outside.contains(number.node))
      throw UserError("[compile] '" + number.key + "' of " + number.node->op().str() +
                      " differs from call to call inside of another operator, where no tensor can "
                      "stand for it");
    tensors.add_use(number.node, number.key, number.formula);
    for (const auto& [name, value] : number.reads) {
      if (!names.insert(name).second) continue;
      for (const NodePtr& node : graph.effects())
        if (freely_read(*node) == value) tensors.add_read(node.get(), name);
    }
  }
  return tensors.run(graph);
}

}  // namespace composit
