#include "flashlight/cpp/contraction.h"

#include <algorithm>

#include "composit/ad/affine.h"
#include "flashlight/cpp/statement.h"

namespace flashlight::cpp {
namespace {

using composit::AxisKind;
using composit::Function;

// Multiplications below which loops are as fast, and shorter than which no side of a product is.
constexpr int64_t kLeastWork = 4096;
constexpr int64_t kLeastSide = 4;

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
  explicit Recognizer(const Statement& statement) : statement_(statement) {}

  std::optional<Contraction> run() {
    if (!is_sum(statement_)) return std::nullopt;
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
    return split_domain() && is_worth_it() ? std::optional(result_) : std::nullopt;
  }

 private:
  bool is_parallel(size_t axis) const { return statement_.axes[axis].kind == AxisKind::parallel; }
  int64_t size(const std::vector<size_t>& axes) const {
    int64_t count = 1;
    for (size_t axis : axes) count *= statement_.axes[axis].extent.value();
    return count;
  }

  // The two factors with most elements are the two sides.
  bool choose_sides() {
    std::vector<size_t> order(axes_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return size(axes_[a]) > size(axes_[b]); });
    size_t a = std::min(order[0], order[1]), b = std::max(order[0], order[1]);
    sort_axes(axes_[a], axes_[b]);
    if (comes_first(result_.columns, result_.rows)) {  // rows of the result are stored first
      std::swap(a, b);
      sort_axes(axes_[a], axes_[b]);
    }
    return result_.terms.size() == reductions_;
  }

  void sort_axes(const std::vector<size_t>& left, const std::vector<size_t>& right) {
    result_ = {};
    reductions_ = 0;
    for (size_t axis = 0; axis < statement_.axes.size(); ++axis) {
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

  bool comes_first(const std::vector<size_t>& a, const std::vector<size_t>& b) const {
    return !a.empty() && !b.empty() && a.back() < b.back();
  }

  // Whether a factor of these axes belongs to the left side; nothing where it has rows and columns.
  std::optional<bool> side(const std::vector<size_t>& axes) const {
    bool has_row = false, has_column = false;
    for (size_t axis : axes) {
      has_row |= contains(result_.rows, axis);
      has_column |= contains(result_.columns, axis);
    }
    if (has_row && has_column) return std::nullopt;
    return !has_column;
  }

  bool split_domain() {
    std::vector<Expr> left, right;
    for (const Expr& predicate : composit::conjuncts(statement_.domain)) {
      const std::optional<bool> is_left = side(axes_in(predicate));
      if (!is_left) return false;
      (*is_left ? left : right).push_back(predicate);
    }
    result_.left_domain = composit::all_of(left);
    result_.right_domain = composit::all_of(right);
    return true;
  }

  bool is_worth_it() const {
    const int64_t rows = size(result_.rows), columns = size(result_.columns),
                  terms = size(result_.terms);
    return rows >= kLeastSide && columns >= kLeastSide && terms >= kLeastSide &&
           rows * columns * terms >= kLeastWork;
  }

  static bool contains(const std::vector<size_t>& axes, size_t axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  }

  const Statement& statement_;
  std::vector<std::vector<size_t>> axes_;  // of each factor
  size_t reductions_ = 0;
  Contraction result_;
};

}  // namespace

std::optional<Contraction> contraction_of(const Statement& statement) {
  return Recognizer(statement).run();
}

}  // namespace flashlight::cpp
