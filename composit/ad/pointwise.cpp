#include "composit/ad/pointwise.h"

#include <algorithm>

#include "composit/ad/expr_derivative.h"
#include "composit/ir/flat_map.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

struct Named {
  Function function;
  std::string_view operation;
};

// The operation whose elements a function gives. Absent functions: no derivative has them, or
// their operation takes the arguments in another way.
constexpr Named kNamed[] = {
    {Function::abs, "aten::abs"},
    {Function::sign, "aten::sign"},
    {Function::exp, "aten::exp"},
    {Function::exp2, "aten::exp2"},
    {Function::expm1, "aten::expm1"},
    {Function::log, "aten::log"},
    {Function::log2, "aten::log2"},
    {Function::log10, "aten::log10"},
    {Function::log1p, "aten::log1p"},
    {Function::sqrt, "aten::sqrt"},
    {Function::rsqrt, "aten::rsqrt"},
    {Function::sin, "aten::sin"},
    {Function::cos, "aten::cos"},
    {Function::tan, "aten::tan"},
    {Function::asin, "aten::asin"},
    {Function::acos, "aten::acos"},
    {Function::atan, "aten::atan"},
    {Function::sinh, "aten::sinh"},
    {Function::cosh, "aten::cosh"},
    {Function::tanh, "aten::tanh"},
    {Function::asinh, "aten::asinh"},
    {Function::acosh, "aten::acosh"},
    {Function::atanh, "aten::atanh"},
    {Function::erf, "aten::erf"},
    {Function::erfc, "aten::erfc"},
    {Function::erfinv, "aten::erfinv"},
    {Function::lgamma, "aten::lgamma"},
    {Function::digamma, "aten::digamma"},
    {Function::floor, "aten::floor"},
    {Function::ceil, "aten::ceil"},
    {Function::round, "aten::round"},
    {Function::trunc, "aten::trunc"},
    {Function::isnan, "aten::isnan"},
    {Function::conj, "aten::conj_physical"},
    {Function::min, "aten::minimum"},
    {Function::max, "aten::maximum"},
    {Function::pow, "aten::pow.Tensor_Tensor"},
    {Function::atan2, "aten::atan2"},
    {Function::hypot, "aten::hypot"},
    {Function::remainder, "aten::remainder.Tensor"},
    {Function::fmod, "aten::fmod.Tensor"},
    {Function::neg, "aten::neg"},
    {Function::add, "aten::add.Tensor"},
    {Function::sub, "aten::sub.Tensor"},
    {Function::mul, "aten::mul.Tensor"},
    {Function::div, "aten::div.Tensor"},
    {Function::lt, "aten::lt.Tensor"},
    {Function::le, "aten::le.Tensor"},
    {Function::gt, "aten::gt.Tensor"},
    {Function::ge, "aten::ge.Tensor"},
    {Function::eq, "aten::eq.Tensor"},
    {Function::ne, "aten::ne.Tensor"},
    {Function::logical_and, "aten::logical_and"},
    {Function::logical_or, "aten::logical_or"},
    {Function::logical_not, "aten::logical_not"},
    {Function::select, "aten::where.self"},
};

std::optional<std::string_view> operation_of(Function function) {
  const auto* found = std::find_if(std::begin(kNamed), std::end(kNamed),
                                   [&](const Named& named) { return named.function == function; });
  if (found == std::end(kNamed)) return std::nullopt;
  return found->operation;
}

bool is_axis(const Expr& part) { return part.kind() == ExprKind::axis; }

// An axis stands in the index of a load, where broadcasting takes care of it; as a value it has no
// operation.
bool is_expressible(const Expr& part) {
  const auto& arguments = part.arguments();
  switch (part.kind()) {
    case ExprKind::axis:
    case ExprKind::literal:
    case ExprKind::load:
      return true;
    case ExprKind::call:
      return std::none_of(arguments.begin(), arguments.end(), is_axis) &&
             (part.is(Function::cast) || operation_of(part.function()).has_value());
    default:
      return false;
  }
}

// Expressions of loads as operations on tensors, each part once.
class Lowering {
 public:
  explicit Lowering(const LazyTensors& operands) : operands_(operands) {}

  // `tensor` stands for `part` from here on.
  void define(const Expr& part, const LazyTensor& tensor) { tensors_.insert(part.hash(), tensor); }

  // InternalError for what is_expressible refuses.
  LazyTensor lower(const Expr& root) {
    for (const Expr& part : parts_of({root}))
      if (part.kind() == ExprKind::load || part.kind() == ExprKind::call)
        if (!tensors_.contains(part.hash())) define(part, make(part));
    return tensor(root);
  }

 private:
  LazyTensor tensor(const Expr& part) const {
    if (part.kind() == ExprKind::literal) return full({}, Number(scalar(part)), part.dtype());
    return *tensors_.find(part.hash());
  }
  static Scalar scalar(const Expr& literal) { return Scalar{literal.value(), false}; }

  LazyTensor make(const Expr& part) const {
    if (part.kind() == ExprKind::load) return operands_.at(part.number());
    const auto& arguments = part.arguments();
    if (part.is(Function::cast)) return to(tensor(part[0]), part.dtype());
    std::vector<ArgumentValue> values;
    const bool has_tensor = std::any_of(arguments.begin(), arguments.end(), [](const Expr& x) {
      return x.kind() != ExprKind::literal;
    });
    for (const Expr& argument : arguments)
      if (has_tensor && is_number(part, argument))
        values.emplace_back(scalar(argument));
      else
        values.emplace_back(tensor(argument));
    return apply_one(*operation_of(part.function()), std::move(values));
  }
  // A literal that stays beside a tensor of its own dtype loses nothing as a number.
  static bool is_number(const Expr& call, const Expr& argument) {
    if (argument.kind() != ExprKind::literal) return false;
    return !call.is(Function::select) || call[1].kind() != call[2].kind();
  }

  const LazyTensors& operands_;
  FlatMap<Hash, LazyTensor> tensors_;
};

// Does a load at `at` read the element that broadcasting puts beside `index`?
bool is_beside(const Expr& load, const std::vector<Expr>& index, const Type& type) {
  const auto& at = load.arguments();
  if (at.size() > index.size()) return false;
  const size_t extra = index.size() - at.size();
  for (size_t axis = 0; axis < at.size(); ++axis) {
    const bool repeated = type.sizes[axis] == 1 && is_literal(at[axis], 0);
    if (!repeated && !at[axis].same(index[extra + axis])) return false;
  }
  return true;
}

// One value per element of the one result, of elements beside it.
bool is_pointwise(const Loops& loops) {
  if (loops.results.size() != 1 || loops.statements.size() != 1) return false;
  const Statement& statement = loops.statements[0];
  if (statement.domain.defined() || !statement.init.empty() || statement.stores.size() != 1)
    return false;
  const Store& store = statement.stores[0];
  for (size_t axis = 0; axis < store.at.size(); ++axis) {
    const Expr& at = store.at[axis];
    const bool whole = at.kind() == ExprKind::axis &&
                       statement.axes[at.number()].extent == loops.results[0].sizes[axis];
    if (!whole && !(is_literal(at, 0) && loops.results[0].sizes[axis] == 1)) return false;
  }
  const auto parts = parts_of({store.value});
  return statement.axes.size() <= store.at.size() &&
         std::all_of(parts.begin(), parts.end(), [&](const Expr& part) {
           return part.kind() != ExprKind::load ||
                  is_beside(part, store.at, loops.operands[part.number()]);
         });
}

Expr load_of(const Expr& value, size_t operand) {
  for (const Expr& part : parts_of({value}))
    if (part.kind() == ExprKind::load && part.number() == operand) return part;
  return {};
}

}  // namespace

std::optional<LazyTensors> pointwise_vjp(const Loops& loops, const LazyTensors& operands,
                                         const LazyTensors& results, const LazyTensors& cotangents,
                                         const std::vector<bool>& wanted) {
  if (!is_pointwise(loops)) return std::nullopt;
  const Store& store = loops.statements[0].stores[0];
  const Expr value = cast(store.value, results[0].dtype());
  LazyTensors leaves = operands;
  leaves.push_back(cotangents[0]);
  const Expr flowing = Expr::load(operands.size(), cotangents[0].dtype(), store.at);
  std::vector<Expr> derivatives(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const Expr leaf = wanted[i] ? load_of(value, i) : Expr();
    if (leaf.defined()) derivatives[i] = structural(value, leaf, flowing);
    if (!derivatives[i].defined()) continue;
    const auto parts = parts_of({derivatives[i]});
    if (!std::all_of(parts.begin(), parts.end(), is_expressible)) return std::nullopt;
  }
  Lowering lowering(leaves);
  lowering.define(value, results[0]);
  LazyTensors gradients(operands.size());
  for (size_t i = 0; i < operands.size(); ++i)
    if (derivatives[i].defined())
      gradients[i] = sum_to_size(lowering.lower(derivatives[i]), operands[i].sizes());
  return gradients;
}

}  // namespace composit
