#include "composit/ad/expr_derivative.h"

#include <utility>

#include "composit/ad/partials.h"
#include "composit/ir/error.h"
#include "composit/ir/flat_map.h"
#include "composit/op/affine.h"
#include "composit/op/promotion.h"

namespace composit {
namespace {

bool is_number(const Expr& x, double value) {
  if (is_literal(x, value)) return true;
  if (!x.defined() || x.kind() != ExprKind::literal) return false;
  const auto* number = std::get_if<std::complex<double>>(&x.value());
  return number != nullptr && *number == value;
}

Expr sum(const Expr& x, const Expr& y) {
  if (!x.defined() || is_number(x, 0)) return y;
  return !y.defined() || is_number(y, 0) ? x : x + y;
}

Expr product(const Expr& x, const Expr& factor) {
  if (is_number(factor, 1)) return x;
  if (is_number(x, 1)) return factor;
  if (is_number(factor, -1)) return -x;
  if (is_number(x, -1)) return -factor;
  if (factor.is(Function::div) && is_number(factor[0], 1)) return x / factor[1];
  // For the derivative of a quotient by its divisor: x / y exists already, as part of the
  // derivative by the dividend.
  if (factor.is(Function::neg) && factor[0].is(Function::div) && !is_number(factor[0][0], 1))
    return -(x / factor[0][1] * factor[0][0]);
  return x * factor;
}

// f(x), below the selects that make x zero: what is masked stays zero, be f(x) NaN or not.
template <class F>
Expr under_masks(Expr x, const F& f) {
  std::vector<std::pair<Expr, bool>> masks;  // a condition, and whether x is zero where it holds
  while (x.is(Function::select) && (is_number(x[1], 0) || is_number(x[2], 0))) {
    const bool zero_where_true = is_number(x[1], 0);
    masks.emplace_back(x[0], zero_where_true);
    x = zero_where_true ? x[2] : x[1];
  }
  Expr result = f(x);
  for (; !masks.empty(); masks.pop_back()) {
    const auto& [condition, zero_where_true] = masks.back();
    result = zero_where_true ? select(condition, 0, result) : select(condition, result, 0);
  }
  return result;
}

// The product of two derivatives, zero where one is absent or masked.
Expr chain(const Expr& x, const Expr& factor) {
  if (!x.defined() || !factor.defined() || is_number(x, 0) || is_number(factor, 0)) return {};
  return under_masks(x, [&](const Expr& y) {
    return under_masks(factor, [&](const Expr& z) { return product(y, z); });
  });
}

Expr conjugate(const Expr& x) {
  if (!x.defined() || !is_complex(x.dtype())) return x;
  return under_masks(x, [](const Expr& y) { return y.is(Function::conj) ? y[0] : conj(y); });
}

// `x`, the derivative of a number, as that of its cast to `dtype`.
Expr cast_derivative(const Expr& x, DType dtype) {
  if (!x.defined()) return {};
  const DType to = is_complex(x.dtype()) ? complex_dtype(dtype) : dtype;
  return under_masks(x, [&](const Expr& y) { return cast(y, to); });
}

Expr real_part(const Expr& x) {
  if (!x.defined() || !is_complex(x.dtype())) return x;
  return under_masks(x, [](const Expr& y) { return real(y); });
}

// The partial derivatives of one application; absent: zero.
struct Partials {
  Expr d, d_conj;
};

Partials partials(const Expr& call, size_t argument) {
  const Partial rule = partial_of(call.function(), argument);
  if (!rule.known)
    throw UserError("[" + std::string(info_of(call.function()).name) +
                    "] has no derivative with respect to its " +
                    (argument == 0 ? "first" : "second") + " argument");
  const Application application{call[0], call.arguments().size() > 1 ? call[1] : Expr(), call};
  // Numbers take the dtype they will be multiplied in.
  const DType dtype = promote(call.dtype(), call[argument].dtype());
  Partials result;
  if (rule.d != nullptr) result.d = with_dtype(rule.d(application), dtype);
  if (rule.d_conj != nullptr && is_complex(call[argument].dtype()))
    result.d_conj = with_dtype(rule.d_conj(application), dtype);
  return result;
}

// d part / d leaf, and d part / d conj(leaf) where the leaf is complex. A real leaf is its own
// conjugate, and d is the whole derivative.
struct Derivative {
  Expr d, d_conj;
  bool zero() const { return !d.defined() && !d_conj.defined(); }
};

class Structural {
 public:
  explicit Structural(const Expr& leaf) : leaf_(leaf), complex_(is_complex(leaf.dtype())) {}

  Derivative of(const Expr& value) {
    for (const Expr& part : parts_of({value})) known_.insert(part.hash(), of_part(part));
    return known(value);
  }

 private:
  const Derivative& known(const Expr& part) const { return *known_.find(part.hash()); }

  Derivative of_part(const Expr& part) const {
    if (part.same(leaf_)) return {cast(1, part.dtype()), {}};
    if (part.kind() != ExprKind::call || !is_differentiable(part.dtype())) return {};
    if (part.is(Function::select)) return of_select(part);
    if (part.is(Function::cast)) return of_cast(part);
    Derivative total;
    for (size_t i = 0; i < part.arguments().size(); ++i) {
      const Derivative& inner = known(part[i]);
      if (inner.zero()) continue;
      add_chain(total, inner, partials(part, i));
    }
    return total;
  }

  void add_chain(Derivative& total, const Derivative& inner, const Partials& outer) const {
    total.d = sum(total.d, chain(inner.d, outer.d));
    total.d = sum(total.d, chain(conjugate(complex_ ? inner.d_conj : inner.d), outer.d_conj));
    if (!complex_) return;
    total.d_conj = sum(total.d_conj, chain(inner.d_conj, outer.d));
    total.d_conj = sum(total.d_conj, chain(conjugate(inner.d), outer.d_conj));
  }

  Derivative of_select(const Expr& part) const {
    const Derivative &x = known(part[1]), &y = known(part[2]);
    const auto branches = [&](const Expr& a, const Expr& b) {
      if (!a.defined() && !b.defined()) return Expr();
      return select(part[0], a.defined() ? a : Expr(0), b.defined() ? b : Expr(0));
    };
    return {branches(x.d, y.d), branches(x.d_conj, y.d_conj)};
  }

  Derivative of_cast(const Expr& part) const {
    const Derivative& inner = known(part[0]);
    if (inner.zero()) return {};
    if (is_complex(part[0].dtype()) && !is_complex(part.dtype())) {
      Derivative total;
      const Expr half = cast(0.5, part.dtype());
      add_chain(total, inner, {half, half});
      return total;
    }
    return {cast_derivative(inner.d, part.dtype()), cast_derivative(inner.d_conj, part.dtype())};
  }

  Expr leaf_;
  bool complex_;
  FlatMap<Hash, Derivative> known_;
};

// Computes the cotangent of each part of an expression, in reverse order.
class Reverse {
 public:
  explicit Reverse(const std::function<bool(const Expr&)>& wanted) : wanted_(wanted) {}

  std::vector<LeafGradient> run(const Expr& value, const Expr& cotangent) {
    const std::vector<Expr> parts = parts_of({value});
    for (const Expr& part : parts) leads_.insert(part.hash(), leads(part));
    add(value, {}, cotangent);
    for (size_t i = parts.size(); i-- > 0;)
      if (const Flow* flow = flows_.find(parts[i].hash())) flow_through(parts[i], Flow(*flow));
    std::vector<LeafGradient> gradients;
    for (const Expr& part : parts)
      if (const Flow* flow = flows_.find(part.hash()); flow != nullptr && is_wanted(part))
        gradients.push_back({part, flow->condition, flow->cotangent});
    return gradients;
  }

 private:
  struct Flow {
    Expr condition;  // absent: always
    Expr cotangent;
  };

  bool is_wanted(const Expr& part) const {
    const bool leaf = part.kind() != ExprKind::call && part.kind() != ExprKind::literal &&
                      part.kind() != ExprKind::axis;
    return leaf && is_differentiable(part.dtype()) && wanted_(part);
  }
  bool leads(const Expr& part) const {
    if (part.kind() != ExprKind::call) return is_wanted(part);
    if (!is_differentiable(part.dtype())) return false;
    for (const Expr& argument : part.arguments())
      if (*leads_.find(argument.hash())) return true;
    return false;
  }

  void add(const Expr& part, const Expr& condition, const Expr& cotangent) {
    if (!cotangent.defined() || !*leads_.find(part.hash())) return;
    Flow* flow = flows_.find(part.hash());
    if (flow == nullptr) {
      flows_.insert(part.hash(), {condition, cotangent});
      return;
    }
    const bool same = condition.defined() == flow->condition.defined() &&
                      (!condition.defined() || condition.same(flow->condition));
    if (same) {
      flow->cotangent = sum(flow->cotangent, cotangent);
      return;
    }
    const auto only = [](const Expr& where, const Expr& x) {
      return where.defined() ? select(where, x, 0) : x;
    };
    flow->cotangent = sum(only(flow->condition, flow->cotangent), only(condition, cotangent));
    const bool always = !condition.defined() || !flow->condition.defined();
    flow->condition = always ? Expr() : or_else(flow->condition, condition);
  }

  void flow_through(const Expr& part, const Flow& flow) {
    if (part.kind() != ExprKind::call) return;
    if (part.is(Function::select)) {
      add(part[1], and_then(flow.condition, part[0]), flow.cotangent);
      add(part[2], and_then(flow.condition, negation(part[0])), flow.cotangent);
    } else if (part.is(Function::cast)) {
      add(part[0], flow.condition, to_argument(flow.cotangent, part[0].dtype()));
    } else {
      for (size_t i = 0; i < part.arguments().size(); ++i)
        if (*leads_.find(part[i].hash())) flow_to(part, i, flow);
    }
  }

  void flow_to(const Expr& part, size_t i, const Flow& flow) {
    const Partials outer = partials(part, i);
    const Expr total = sum(chain(flow.cotangent, conjugate(outer.d)),
                           chain(conjugate(flow.cotangent), outer.d_conj));
    add(part[i], flow.condition, to_argument(total, part[i].dtype()));
  }

  static Expr to_argument(const Expr& cotangent, DType dtype) {
    return cast_derivative(is_complex(dtype) ? cotangent : real_part(cotangent), dtype);
  }

  const std::function<bool(const Expr&)>& wanted_;
  FlatMap<Hash, bool> leads_;
  FlatMap<Hash, Flow> flows_;
};

}  // namespace

bool is_differentiable(DType dtype) {
  return dtype != DType::count_ && is_computable(dtype) &&
         category(dtype) >= DTypeCategory::floating;
}

Expr structural(const Expr& value, const Expr& leaf, const Expr& cotangent) {
  if (!is_differentiable(leaf.dtype())) return {};
  const auto [d, d_conj] = Structural(leaf).of(value);
  if (!is_complex(leaf.dtype())) return real_part(chain(cotangent, conjugate(d)));
  return sum(chain(cotangent, conjugate(d)), chain(conjugate(cotangent), d_conj));
}

std::vector<LeafGradient> reverse(const Expr& value, const Expr& cotangent,
                                  const std::function<bool(const Expr&)>& wanted) {
  return Reverse(wanted).run(value, cotangent);
}

Expr reached(const Expr& value, const Expr& leaf) {
  FlatMap<Hash, Expr> where;  // absent: nowhere
  const auto either = [](const Expr& x, const Expr& y) {
    if (!x.defined()) return y;
    return y.defined() ? or_else(x, y) : x;
  };
  for (const Expr& part : parts_of({value})) {
    Expr here;
    if (part.same(leaf)) here = cast(true, DType::bool_);
    const auto of = [&](size_t i) { return *where.find(part[i].hash()); };
    if (part.is(Function::select)) {
      const Expr x = of(1), y = of(2);
      here = of(0);
      if (x.defined() && y.defined() && is_true(x) && is_true(y)) here = x;
      if (x.defined()) here = either(here, and_then(part[0], x));
      if (y.defined()) here = either(here, and_then(negation(part[0]), y));
    } else {
      for (size_t i = 0; i < part.arguments().size(); ++i) here = either(here, of(i));
    }
    where.insert(part.hash(), here);
  }
  return *where.find(value.hash());
}

}  // namespace composit
