#include "tests/eval/pointwise.h"

#include <functional>

#include "composit/ir/error.h"
#include "composit/op/compute_type.h"
#include "composit/op/fold.h"

namespace composit {
namespace {

using Numbers = std::vector<double>;

int64_t as_integer(const Expr& literal) { return std::get<int64_t>(literal.value()); }

Expr literal_of(double value, DType dtype) { return Expr::literal(converted(value, dtype), dtype); }

double number(const Expr& literal) {
  COMPOSIT_ASSERT(literal.kind() == ExprKind::literal, "no value: " + print(literal));
  return std::get<double>(converted(literal.value(), DType::float64));
}

int64_t place_of(const std::vector<Expr>& at, const Type& type) {
  int64_t place = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    const int64_t index = as_integer(cast(at[i], DType::int64)), size = type.sizes[i];
    if (index < 0 || index >= size) return -1;
    place = place * size + index;
  }
  return place;
}

class Pointwise {
 public:
  Pointwise(const Loops& loops, const std::vector<Array>& operands)
      : loops_(loops), results_(loops.results.size()) {
    for (const Array& operand : operands) operands_.push_back(elements(operand));
    for (size_t i = 0; i < results_.size(); ++i)
      results_[i].resize(static_cast<size_t>(loops.results[i].numel()));
  }

  std::vector<Numbers> run() {
    for (const Statement& statement : loops_.statements) run(statement);
    return results_;
  }

 private:
  void run(const Statement& statement) {
    statement_ = &statement;
    axes_.assign(statement.axes.size(), 0);
    for_each(AxisKind::parallel, [&] {
      accumulators_.clear();
      for (size_t k = 0; k < statement.init.size(); ++k)
        accumulators_.push_back(value(cast(statement.init[k], statement.combine[k].dtype())));
      for_each(AxisKind::scan, [&] {
        bool ran = false, reduces = false;
        for (const Axis& axis : statement.axes) reduces |= axis.kind == AxisKind::reduction;
        for_each(AxisKind::reduction, [&] { ran |= point(); });
        if (ran || reduces) store();
      });
    });
  }

  // f for each point of the axes of a kind, in row-major order.
  void for_each(AxisKind kind, const std::function<void()>& f, size_t axis = 0) {
    if (axis == axes_.size()) return f();
    if (statement_->axes[axis].kind != kind) return for_each(kind, f, axis + 1);
    for (axes_[axis] = 0; axes_[axis] < statement_->axes[axis].extent; ++axes_[axis])
      for_each(kind, f, axis + 1);
    axes_[axis] = 0;
  }

  bool point() {
    if (statement_->domain.defined() && number(value(statement_->domain)) == 0) return false;
    right_.clear();
    for (size_t k = 0; k < statement_->body.size(); ++k)
      right_.push_back(value(cast(statement_->body[k], statement_->combine[k].dtype())));
    left_ = accumulators_;
    accumulators_.clear();
    for (const Expr& combine : statement_->combine) accumulators_.push_back(value(combine));
    return true;
  }

  void store() {
    for (const Store& store : statement_->stores) {
      const Type& type = loops_.results[store.result];
      std::vector<Expr> at;
      for (const Expr& index : store.at) at.push_back(value(index));
      double& to = results_[store.result].at(static_cast<size_t>(place_of(at, type)));
      const double stored = number(cast(value(store.value), type.dtype));
      to = store.add ? number(literal_of(to + stored, type.dtype)) : stored;
    }
  }

  Expr value(const Expr& x) const {
    return replace(x, [&](const Expr& part) { return leaf(part); });
  }

  Expr leaf(const Expr& part) const {
    const size_t number = part.number();
    switch (part.kind()) {
      case ExprKind::axis:
        return Expr::literal(axes_[number], DType::int64);
      case ExprKind::accumulator:
        return accumulators_[number];
      case ExprKind::left:
        return left_[number];
      case ExprKind::right:
        return right_[number];
      case ExprKind::load:
        break;
      default:
        return {};
    }
    for (const Expr& index : part.arguments())
      if (index.kind() != ExprKind::literal) return {};  // of a faulty load
    const int64_t place = place_of(part.arguments(), loops_.operands[number]);
    return place < 0 ? Expr() : literal_of(operands_[number][place], part.dtype());
  }

  const Loops& loops_;
  std::vector<Numbers> operands_, results_;
  const Statement* statement_ = nullptr;
  std::vector<int64_t> axes_;
  std::vector<Expr> accumulators_, left_, right_;
};

}  // namespace

std::vector<Numbers> pointwise(const Loops& loops, const std::vector<Array>& operands) {
  return Pointwise(loops, operands).run();
}

Numbers elements(const Array& array) {
  Numbers numbers;
  with_storage(array.type().dtype, [&]<class S>(std::type_identity<S>) {
    const auto* data = reinterpret_cast<const S*>(array.data());
    for (int64_t i = 0; i < array.type().numel(); ++i)
      numbers.push_back(convert<double>(to_compute(data[i])));
  });
  return numbers;
}

}  // namespace composit
