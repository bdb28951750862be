#include "flashlight/loops/contraction.h"

#include <algorithm>

#include "composit/op/affine.h"
#include "flashlight/loops/statement.h"

namespace flashlight::loops {
namespace {

using composit::AxisKind;
using composit::Function;

// With fewer multiplications than this, loops are as fast.
constexpr int64_t kLeastWork = 4096;

// A product needs this many rows and columns to keep fl::product busy.
constexpr int64_t kLeastLargeSide = 64;

std::vector<Expr> factors(const Expr& product) {
  if (!product.is(Function::mul)) return {product};
  std::vector<Expr> all = factors(product[0]);
  for (const Expr& factor : factors(product[1])) all.push_back(factor);
  return all;
}

Expr product_of(const std::vector<Expr>& factors) {
  Expr product;
  for (const Expr& factor : factors) product = product.defined() ? product * factor : factor;
  return product;
}

class Recognizer {
 public:
  Recognizer(const Statement& statement, int64_t least_side, bool halves)
      : statement_(statement),
        least_side_(least_side),
        halves_(halves),
        analysis_(statement.axes) {}

  std::optional<Contraction> run() {
    // A sum over nothing (padding alone) is no product: neither side is read.
    if (!is_sum(statement_, halves_) || is_nowhere()) return std::nullopt;
    const std::vector<Expr> all = factors(statement_.body[0]);
    if (all.size() < 2) return std::nullopt;
    for (const Expr& factor : all) axes_.push_back(axes_in(factor));
    if (!choose_sides()) return std::nullopt;
    std::vector<Expr> left, right;
    for (size_t i = 0; i < all.size(); ++i) {
      const std::optional<bool> is_left = side(axes_[i]);
      if (!is_left) return std::nullopt;
      (*is_left ? left : right).push_back(all[i]);
    }
    result_.left = product_of(left);
    result_.right = product_of(right);
    if (!split_domain() || !is_worth_it()) return std::nullopt;
    find_outer();
    return result_;
  }

 private:
  bool is_nowhere() const {
    return statement_.domain.defined() && composit::is_false(statement_.domain);
  }
  bool is_parallel(AxisId axis) const { return statement_.axes[axis].kind == AxisKind::parallel; }
  int64_t size(const AxisIds& axes) const { return iterations(statement_, axes); }

  // Takes the factor with the most elements as one side, and as the other side the largest factor
  // with a parallel axis that the first lacks.
  bool choose_sides() {
    std::vector<size_t> order(axes_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return size(axes_[a]) > size(axes_[b]); });
    const auto other = std::find_if(order.begin() + 1, order.end(), [&](size_t factor) {
      return std::any_of(axes_[factor].begin(), axes_[factor].end(), [&](AxisId axis) {
        return is_parallel(axis) && !contains(axes_[order[0]], axis);
      });
    });
    if (other == order.end()) return false;
    size_t a = std::min(order[0], *other), b = std::max(order[0], *other);
    sort_axes(axes_[a], axes_[b]);
    if (comes_first(result_.columns, result_.rows)) {  // rows of the result are stored first
      std::swap(a, b);
      sort_axes(axes_[a], axes_[b]);
    }
    return result_.terms.size() == reductions_;
  }

  void sort_axes(const AxisIds& left, const AxisIds& right) {
    result_ = {};
    reductions_ = 0;
    for (const AxisId axis : axes_of(statement_)) {
      const bool in_left = contains(left, axis), in_right = contains(right, axis);
      if (!is_parallel(axis)) {
        ++reductions_;
        if (in_left || in_right) result_.terms.push_back(axis);
      } else if (in_left == in_right) {
        result_.batch.push_back(axis);
      } else {
        (in_left ? result_.rows : result_.columns).push_back(axis);
      }
    }
  }

  bool comes_first(const AxisIds& a, const AxisIds& b) const {
    return !a.empty() && !b.empty() && a.back() < b.back();
  }

  // True if a factor with these axes belongs to the left side; nothing if it has rows and columns.
  std::optional<bool> side(const AxisIds& axes) const {
    bool has_row = false, has_column = false;
    for (AxisId axis : axes) {
      has_row |= contains(result_.rows, axis);
      has_column |= contains(result_.columns, axis);
    }
    if (has_row && has_column) return std::nullopt;
    return !has_column;
  }

  bool split_domain() {
    std::vector<Expr> left, right, both;
    for (const Expr& predicate : composit::conjuncts(statement_.domain)) {
      const std::optional<bool> is_left = side(axes_in(predicate));
      (!is_left ? both : *is_left ? left : right).push_back(predicate);
    }
    result_.left_domain = composit::all_of(left);
    result_.right_domain = composit::all_of(right);
    return limit_columns(both) && limit_terms();
  }

  // Makes predicates on rows and columns bounds of the column; false if one cannot be.
  bool limit_columns(const std::vector<Expr>& predicates) {
    if (predicates.empty()) return true;
    if (result_.columns.size() != 1) exchange_sides();
    for (const Expr& predicate : predicates)
      if (!bounds(predicate, result_.columns)) return false;
    result_.column_limits = predicates;
    return true;
  }

  // Collects predicates that bound the term by the row, if they cut enough terms to pay.
  bool limit_terms() {
    if (find_term_limits() || !result_.column_limits.empty()) return true;
    exchange_sides();
    if (!find_term_limits()) exchange_sides();
    return true;
  }
  bool find_term_limits() {
    for (const Expr& predicate : composit::conjuncts(result_.left_domain))
      if (bounds(predicate, result_.terms) && cuts_half(predicate))
        result_.term_limits.push_back(predicate);
    return !result_.term_limits.empty();
  }

  void exchange_sides() {
    std::swap(result_.rows, result_.columns);
    std::swap(result_.left, result_.right);
    std::swap(result_.left_domain, result_.right_domain);
  }

  // True if `predicate` bounds the only one of `axes` by rows and batch.
  bool bounds(const Expr& predicate, const AxisIds& axes) {
    const auto bound = composit::bound_of(predicate, analysis_);
    if (!bound || axes.size() != 1 || std::abs(bound->coefficients[axes[0]]) != 1) return false;
    const AxisIds all = axes_in(*bound);
    return std::all_of(all.begin(), all.end(), [&](AxisId axis) {
      return axis == axes[0] || contains(result_.rows, axis) || contains(result_.batch, axis);
    });
  }
  // True if some row has half of the terms or fewer.
  bool cuts_half(const Expr& predicate) {
    const AxisId axis = result_.terms[0];
    composit::Affine rest = *composit::bound_of(predicate, analysis_);
    const int64_t extent = statement_.axes[axis].extent, sign = rest.coefficients[axis];
    rest.coefficients[axis] = 0;  // it says: sign * term + rest >= 0
    const int64_t least = analysis_.range(rest).low;
    return (sign > 0 ? extent + least : least + 1) <= extent / 2;
  }

  bool is_worth_it() const {
    const int64_t rows = size(result_.rows), columns = size(result_.columns),
                  terms = size(result_.terms);
    return rows >= least_side_ && columns >= least_side_ && terms >= least_side_ &&
           rows * columns * terms >= kLeastWork;
  }

  void find_outer() {
    const int64_t batch = size(result_.batch), terms = size(result_.terms);
    AxisIds rows = result_.rows, columns = result_.columns;
    const int64_t most =
        std::max({size(rows) * size(columns), size(rows) * terms, size(columns) * terms});
    if (batch * most < kLargeElements) return;
    for (const Expr& index : statement_.stores[0].at)
      for (AxisId axis : axes_in(index)) {
        if (contains(result_.batch, axis)) continue;
        std::erase(rows, axis);
        std::erase(columns, axis);
        if (std::min(size(rows), size(columns)) < kLeastLargeSide) return;
        result_.outer.push_back(axis);
      }
  }

  const Statement& statement_;
  const int64_t least_side_;
  const bool halves_;
  composit::IndexAnalysis analysis_;
  std::vector<AxisIds> axes_;  // of each factor
  size_t reductions_ = 0;
  Contraction result_;
};

bool are_same(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Expr& x, const Expr& y) {
    return x.defined() == y.defined() && (!x.defined() || x.same(y));
  });
}
bool are_same(const Statement& a, const Statement& b) {
  return a.axes == b.axes && are_same({a.domain}, {b.domain}) && are_same(a.init, b.init) &&
         are_same(a.body, b.body) && are_same(a.combine, b.combine) &&
         std::equal(a.stores.begin(), a.stores.end(), b.stores.begin(), b.stores.end(),
                    [](const composit::Store& x, const composit::Store& y) {
                      return x.result == y.result && x.add == y.add && are_same(x.at, y.at) &&
                             x.value.same(y.value);
                    });
}

}  // namespace

std::optional<Contraction> contraction_of(const Statement& statement, int64_t least_side,
                                          bool halves) {
  return Recognizer(statement, least_side, halves).run();
}

Program with_products(Program program,
                      std::optional<Contraction> (*recognise)(const Statement& statement)) {
  for (Step& step : program.functions.back().steps)
    if (auto* nest = std::get_if<Nest>(&step); nest != nullptr && !is_recognised(*nest))
      nest->recognised =
          std::make_shared<Recognised>(Recognised{nest->statement, recognise(nest->statement)});
  return program;
}

bool is_recognised(const Nest& nest) {
  return nest.recognised != nullptr && are_same(nest.recognised->statement, nest.statement);
}

}  // namespace flashlight::loops
