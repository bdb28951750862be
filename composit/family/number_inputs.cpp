#include "composit/family/number_inputs.h"

#include <algorithm>

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

class NumberInputs {
 public:
  NumberInputs(const Family& family, const Binding& binding, const std::vector<std::string>& names)
      : binding_(binding) {
    for (const std::string& name : names)
      inputs_.push_back(
          input("number." + name, tensor_type(DType::float64, {}), InputKind::user_input));
    for (size_t i = 0; i < names.size(); ++i) tensors_.emplace(names[i], inputs_[i]);
    for (const NumberUse& use : family.number_uses)
      if (use.node->find_attribute(use.key) != nullptr)
        uses_[binding.of({use.node, 0}).node.get()].push_back(&use);
    const auto &effects = family.example.effects(), &bound = binding.graph.effects();
    for (size_t i = 0; i < effects.size(); ++i)
      for (const NumberUse& use : family.number_uses)
        if (use.node == effects[i]) reads_.emplace(bound.at(i).get(), use.formula.name());
  }

  Graph run() {
    Graph::Parts parts =
        rebuild(binding_.graph, [this](const Node& node, const LazyTensors& operands) {
          return rewritten(node, operands);
        }).parts();
    for (const LazyTensor& input : inputs_) parts.inputs.push_back(input);
    return Graph(std::move(parts));
  }

 private:
  std::optional<Replacement> rewritten(const Node& node, const LazyTensors& operands) {
    if (const auto read = reads_.find(&node); read != reads_.end()) {
      tensors_[read->second] = to(reshape(operands.at(0), {}), DType::float64);
      return Replacement{};
    }
    LazyTensors now = operands;
    bool changes = false;
    for (size_t i = 0; i < now.size(); ++i) {
      const LazyTensor& old = node.operands()[i];
      const auto found = old ? uses_.find(old.node.get()) : uses_.end();
      if (found == uses_.end() || old.node->op() != ops::kConstant) continue;
      now[i] = number_for(node, *found->second.front());
      changes = true;
    }
    const auto own = uses_.find(&node);
    if (own != uses_.end() && node.op() != ops::kConstant)
      return Replacement{{with_tensor(node, now, own->second)}};
    if (!changes) return std::nullopt;
    return replace_by(copy_of(node, std::move(now)).make_node());
  }

  // Rounded as the operator rounds a number.
  LazyTensor number_for(const Node& node, const NumberUse& use) const {
    const DType dtype = node.outputs().at(0).dtype;
    if (!is_floating_point(dtype)) refuse(node, use.key);
    return to(tensor_of(use.formula, tensors_), dtype);
  }

  [[noreturn]] static void refuse(const Node& node, const std::string& key) {
    const std::string_view source = node.annotation("source");
    throw UserError("[compile] " + node.op().str() +
                    (source.empty() ? "" : " at " + std::string(source)) + ": its '" + key +
                    "' differs from call to call, and no tensor can stand for it");
  }

  // The result of the operator with a tensor in place of its number.
  LazyTensor with_tensor(const Node& node, const LazyTensors& operands,
                         const std::vector<const NumberUse*>& uses) const {
    const std::string& op = node.op().str();
    const std::string& key = uses.front()->key;
    if (uses.size() > 1) refuse(node, uses[1]->key);
    const LazyTensor number = number_for(node, *uses.front()), &x = operands.at(0);
    const auto is = [&](std::string_view name, std::string_view attribute) {
      return op == name && key == attribute;
    };
    const auto alpha = [&](const LazyTensor& y) {
      const auto one = real_number_of(node.attribute("alpha"));
      return one && *one == 1 ? y : y * *one;
    };
    LazyTensor result;
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
    const Type& type = node.outputs().at(0);
    if (!result || result.dtype() != type.dtype || result.sizes() != type.sizes) refuse(node, key);
    return result;
  }

  const Binding& binding_;
  LazyTensors inputs_;
  std::map<std::string, LazyTensor> tensors_;
  std::map<const Node*, std::vector<const NumberUse*>> uses_;  // by bound node
  std::map<const Node*, std::string> reads_;                   // bound nodes that read a number
};

}  // namespace

Graph with_number_inputs(const Family& family, const Binding& binding,
                         const std::vector<std::string>& names) {
  return NumberInputs(family, binding, names).run();
}

}  // namespace composit
