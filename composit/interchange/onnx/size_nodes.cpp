#include "composit/interchange/onnx/size_nodes.h"

namespace composit::onnx {
namespace {

using SizeFunction = SizeFormula::Kind;

// False where the integer may be less than zero.
bool is_natural(const SizeFormula& formula) {
  switch (formula.kind()) {
    case SizeFunction::constant:
      return formula.constant() >= 0;
    case SizeFunction::size:
      return true;
    case SizeFunction::subtract:
      return false;
    default:
      return is_natural(formula.left()) && is_natural(formula.right());
  }
}

std::string size_operator(SizeFunction function) {
  switch (function) {
    case SizeFunction::add:
      return "Add";
    case SizeFunction::subtract:
      return "Sub";
    case SizeFunction::multiply:
      return "Mul";
    case SizeFunction::mod:
      return "Mod";
    case SizeFunction::min:
      return "Min";
    default:
      return "Max";
  }
}

}  // namespace

LazyTensor both_hold(const LazyTensor& a, const LazyTensor& b) {
  if (!a || !b) return a ? a : b;
  return compare("And", a, b);
}

LazyTensor SizeNodes::one(const SizeFormula& formula) {
  LazyTensor& known = known_[formula.hash().str()];
  if (!known) known = made(formula);
  return known;
}

LazyTensor SizeNodes::made(const SizeFormula& formula) {
  if (formula.kind() == SizeFunction::constant) return integers({formula.constant()});
  if (formula.kind() == SizeFunction::size) {
    const auto axis = static_cast<int64_t>(formula.axis());
    return call("Shape", {value_of_(formula.tensor())},
                {attribute("start", axis), attribute("end", axis + 1)},
                tensor_type(DType::int64, {1}));
  }
  if (formula.kind() == SizeFunction::div || formula.kind() == SizeFunction::ceil_div ||
      formula.kind() == SizeFunction::exact_div)
    return quotient(formula);
  return binary(size_operator(formula.kind()), one(formula.left()), one(formula.right()));
}

// ONNX's Div rounds towards zero.
LazyTensor SizeNodes::quotient(const SizeFormula& formula) {
  const SizeFormula &left = formula.left(), &right = formula.right();
  if (formula.kind() == SizeFunction::ceil_div)
    return one(SizeFormula(0) - div(SizeFormula(0) - left, right));
  if (formula.kind() == SizeFunction::exact_div) expect_divisible(one(mod(left, right)));
  if (is_natural(formula)) return binary("Div", one(left), one(right));
  return binary("Div", one(left - mod(left, right)), one(right));
}

void SizeNodes::expect_divisible(const LazyTensor& rest) {
  divisible_ = both_hold(divisible_, reshaped(compare("Equal", rest, integers({0})), {}));
}

LazyTensor SizeNodes::number(const SizeFormula& formula) { return reshaped(one(formula), {}); }

LazyTensor SizeNodes::list(const std::vector<SizeFormula>& formulas) {
  LazyTensors parts;
  std::vector<int64_t> constants;  // one after the other
  const auto end_constants = [&] {
    if (!constants.empty()) parts.push_back(integers(constants));
    constants.clear();
  };
  for (const SizeFormula& formula : formulas) {
    if (formula.kind() == SizeFunction::constant) {
      constants.push_back(formula.constant());
      continue;
    }
    end_constants();
    parts.push_back(one(formula));
  }
  end_constants();
  if (parts.size() == 1) return parts[0];
  return call("Concat", parts, {attribute("axis", 0)},
              tensor_type(DType::int64, {static_cast<int64_t>(formulas.size())}));
}

}  // namespace composit::onnx
