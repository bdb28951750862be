#include "composit/op/nest.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "composit/ir/error.h"

namespace composit {

std::vector<bool> wrap_axes(const Ints& axes, int64_t rank) {
  std::vector<bool> chosen(static_cast<size_t>(std::max<int64_t>(rank, 1)), axes.empty());
  for (int64_t axis : axes) {
    auto place = chosen.begin() + wrap_axis(axis, rank);
    if (*place) throw UserError("axis " + std::to_string(axis) + " is given twice");
    *place = true;
  }
  chosen.resize(static_cast<size_t>(rank));
  return chosen;
}

std::string str(const Ints& sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

Ints broadcast_sizes(const std::vector<Ints>& all) {
  Ints sizes;
  for (const Ints& own : all) {
    if (own.size() > sizes.size()) sizes.insert(sizes.begin(), own.size() - sizes.size(), 1);
    for (size_t i = 0; i < own.size(); ++i) {
      int64_t& size = sizes[sizes.size() - own.size() + i];
      if (size != own[i] && size != 1 && own[i] != 1)
        throw UserError("sizes " + str(own) + " do not broadcast with " + str(sizes));
      if (size == 1) size = own[i];
    }
  }
  return sizes;
}

// ---- In -----------------------------------------------------------------------------------------

Ints In::sizes() const { return type_.sizes; }

int64_t In::size(int64_t axis) const {
  if (rank() == 0) return wrap_axis(axis, 0), 1;
  return type_.sizes[static_cast<size_t>(wrap_axis(axis, rank()))];
}

Expr In::operator()(const Index& index) const {
  COMPOSIT_ASSERT(index.size() == type_.rank(), "a load with another number of indices");
  return Expr::load(operand_, type_.dtype, index);
}

Expr In::padded(const Index& index, Expr fill) const {
  Expr inside;
  for (size_t axis = 0; axis < index.size(); ++axis) {
    if (index[axis].kind() == ExprKind::literal) continue;
    const Expr here = index[axis] >= 0 && index[axis] < type_.sizes[axis];
    inside = inside.defined() ? inside && here : here;
  }
  return inside.defined() ? select(inside, (*this)(index), std::move(fill)) : (*this)(index);
}

Expr In::broadcast(const Index& index) const {
  if (index.size() < type_.rank())
    throw UserError("expected a tensor of at most " + std::to_string(index.size()) +
                    " axes, received one of " + std::to_string(type_.rank()));
  Index own(index.end() - rank(), index.end());
  for (size_t axis = 0; axis < own.size(); ++axis)
    if (type_.sizes[axis] == 1) own[axis] = 0;
  return (*this)(own);
}

// ---- Nest: axes ---------------------------------------------------------------------------------

Expr Nest::add_axis(int64_t extent, AxisKind kind, std::string name) {
  const size_t number = statement_.axes.size();
  if (name.empty()) name = (kind == AxisKind::reduction ? "r" : "i") + std::to_string(number);
  statement_.axes.push_back({std::move(name), extent, kind});
  const Expr axis = Expr::axis(number);
  if (kind != AxisKind::reduction) {
    result_index_.push_back(axis);
    result_sizes_.push_back(extent);
  }
  return axis;
}

Expr Nest::parallel(int64_t extent, std::string name) {
  return add_axis(extent, AxisKind::parallel, std::move(name));
}
Expr Nest::scan(int64_t extent, std::string name) {
  return add_axis(extent, AxisKind::scan, std::move(name));
}
Expr Nest::reduction(int64_t extent, std::string name) {
  return add_axis(extent, AxisKind::reduction, std::move(name));
}

Index Nest::parallel(const Ints& extents) {
  Index index;
  for (int64_t extent : extents) index.push_back(parallel(extent));
  return index;
}

Index Nest::reduce_over(const In& x, const Ints& axes, bool keepdim) {
  const std::vector<bool> reduced = wrap_axes(axes, x.rank());
  Index index;
  for (size_t axis = 0; axis < reduced.size(); ++axis) {
    const int64_t extent = x.type().sizes[axis];
    index.push_back(reduced[axis] ? reduction(extent) : parallel(extent));
    if (!reduced[axis] || !keepdim) continue;
    result_index_.emplace_back(0);
    result_sizes_.push_back(1);
  }
  return index;
}

Nest& Nest::where(Expr domain) {
  Expr& all = statement_.domain;
  all = all.defined() ? all && std::move(domain) : std::move(domain);
  return *this;
}

// ---- Nest: accumulators -------------------------------------------------------------------------

std::vector<Expr> Nest::fold(const std::vector<Expr>& init, const std::vector<Expr>& body,
                             Combine combine) {
  COMPOSIT_ASSERT(init.size() == body.size(), "one initial value per accumulator");
  std::vector<Expr> left, right, results;
  const size_t first = statement_.body.size();
  for (size_t i = 0; i < body.size(); ++i) {
    const DType dtype = body[i].dtype();
    statement_.init.push_back(cast(init[i], dtype));
    statement_.body.push_back(with_dtype(body[i], dtype));
    left.push_back(Expr::left(first + i, dtype));
    right.push_back(Expr::right(first + i, dtype));
    results.push_back(Expr::accumulator(first + i, dtype));
  }
  const std::vector<Expr> combined = combine(left, right);
  for (size_t i = 0; i < body.size(); ++i)
    statement_.combine.push_back(cast(combined[i], body[i].dtype()));
  return results;
}

Expr Nest::fold(Expr init, Expr body, Expr (*combine)(Expr left, Expr right)) {
  const size_t number = statement_.body.size();
  const DType dtype = body.dtype();
  statement_.init.push_back(cast(std::move(init), dtype));
  statement_.body.push_back(with_dtype(std::move(body), dtype));
  statement_.combine.push_back(
      cast(combine(Expr::left(number, dtype), Expr::right(number, dtype)), dtype));
  return Expr::accumulator(number, dtype);
}

Expr Nest::sum(Expr body) {
  return fold(0, std::move(body), [](Expr left, Expr right) { return left + right; });
}

// ---- Nest: stores -------------------------------------------------------------------------------

Nest& Nest::store(Expr value) { return store(result_sizes_, result_index_, std::move(value)); }

Nest& Nest::store(const Ints& sizes, Index at, Expr value, bool add) {
  results_.push_back(tensor_type(value.dtype(), sizes));
  own_.push_back(true);
  statement_.stores.push_back({results_.size() - 1, std::move(at), std::move(value), add});
  return *this;
}

Nest& Nest::store_into(size_t result, Index at, Expr value, bool add) {
  own_.push_back(false);
  statement_.stores.push_back({result, std::move(at), std::move(value), add});
  return *this;
}

Nest& Nest::no_result() {
  results_.push_back(undefined_type());
  return *this;
}

// Axes were added in any order: parallel ones go first, reductions last. Own results are counted
// from `first_result` on.
Statement Nest::ordered(size_t first_result) const {
  std::vector<size_t> order(statement_.axes.size()), place(order.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return statement_.axes[a].kind < statement_.axes[b].kind;
  });
  Statement result;
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    result.axes.push_back(statement_.axes[order[i]]);
  }
  const auto renumber = [&](const std::vector<Expr>& roots) {
    return replace(roots, [&](const Expr& part) {
      return part.kind() == ExprKind::axis ? Expr::axis(place[part.number()]) : Expr();
    });
  };
  result.domain = renumber({statement_.domain})[0];
  result.init = renumber(statement_.init);
  result.body = renumber(statement_.body);
  result.combine = statement_.combine;
  for (size_t i = 0; i < statement_.stores.size(); ++i) {
    Store store = statement_.stores[i];
    if (own_[i]) store.result += first_result;
    for (Expr& at : store.at) at = with_dtype(std::move(at), DType::int64);
    store.at = renumber(store.at);
    store.value = renumber({store.value})[0];
    result.stores.push_back(std::move(store));
  }
  return result;
}

Loops Nest::loops() const { return sequence({*this}); }

Loops sequence(const std::vector<Nest>& nests) {
  Loops loops;
  for (const Nest& nest : nests) {
    if (!nest.statement_.stores.empty())
      loops.statements.push_back(nest.ordered(loops.results.size()));
    loops.results.insert(loops.results.end(), nest.results().begin(), nest.results().end());
  }
  // A value stored into the result of another statement is cast to that result's dtype.
  for (Statement& statement : loops.statements)
    for (Store& store : statement.stores)
      store.value = cast(std::move(store.value), loops.results.at(store.result).dtype);
  return loops;
}

}  // namespace composit
