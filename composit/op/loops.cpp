#include "composit/op/loops.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "composit/ir/verify.h"
#include "composit/op/promotion.h"

namespace composit {
namespace {

// ---- equality -----------------------------------------------------------------------------------

void assign(Expr& x, DType dtype) {
  if (x.defined() && x.kind() == ExprKind::literal && is_valid(dtype) && is_computable(dtype))
    x = cast(std::move(x), dtype);
}

void make_canonical(Statement& statement, const std::vector<Type>& results) {
  assign(statement.domain, DType::bool_);
  for (size_t k = 0; k < statement.combine.size(); ++k) {
    if (!statement.combine[k].defined()) continue;
    const DType dtype = statement.combine[k].dtype();
    assign(statement.combine[k], dtype);
    if (k < statement.init.size()) assign(statement.init[k], dtype);
    if (k < statement.body.size()) assign(statement.body[k], dtype);
  }
  for (Store& store : statement.stores) {
    for (Expr& at : store.at) assign(at, DType::int64);
    if (store.result < results.size()) assign(store.value, results[store.result].dtype);
  }
}

void add_to(Hasher& hasher, size_t count) { hasher.add(static_cast<uint64_t>(count)); }
void add_to(Hasher& hasher, int64_t dim) { hasher.add(static_cast<uint64_t>(dim)); }
void add_to(Hasher& hasher, const Expr& x) { hasher.add(x.defined() ? x.hash() : Hash()); }
void add_to(Hasher& hasher, const Type& type);
void add_to(Hasher& hasher, const Axis& axis);
void add_to(Hasher& hasher, const Store& store);
void add_to(Hasher& hasher, const Statement& statement);

template <class Item>
void add_to(Hasher& hasher, const std::vector<Item>& items) {
  add_to(hasher, items.size());
  for (const Item& item : items) add_to(hasher, item);
}

void add_to(Hasher& hasher, const Type& type) {
  hasher.add(static_cast<uint64_t>(type.dtype));
  add_to(hasher, type.sizes);
}

void add_to(Hasher& hasher, const Axis& axis) {
  hasher.add(static_cast<uint64_t>(axis.kind));
  add_to(hasher, axis.extent);
}

void add_to(Hasher& hasher, const Store& store) {
  add_to(hasher, store.result);
  add_to(hasher, store.at);
  add_to(hasher, store.value);
  hasher.add(uint64_t{store.add});
}

void add_to(Hasher& hasher, const Statement& statement) {
  add_to(hasher, statement.axes);
  add_to(hasher, statement.domain);
  add_to(hasher, statement.init);
  add_to(hasher, statement.body);
  add_to(hasher, statement.combine);
  add_to(hasher, statement.stores);
}

// ---- faults -------------------------------------------------------------------------------------

using Fault = std::optional<std::string>;

std::string str(DType dtype) { return std::string(name(dtype)); }
std::string str(size_t number) { return std::to_string(number); }

// One part of a statement, and what may stand in it.
struct Place {
  std::string called;
  std::optional<AxisKind> axes = std::nullopt;  // the last kind
  bool loads = false, accumulators = false, sides = false;
};

class StatementChecker {
 public:
  StatementChecker(const Loops& loops, const Statement& statement)
      : loops_(loops), statement_(statement) {}

  Fault fault() const {
    if (auto found = axes()) return found;
    if (auto found = domain()) return found;
    if (auto found = accumulators()) return found;
    return stores();
  }

 private:
  Fault axes() const;
  Fault domain() const;
  Fault accumulators() const;
  Fault assigned(const Expr& x, size_t k, const char* what) const;
  Fault stores() const;
  Fault in_place(const std::vector<Expr>& roots, const Place& place) const;
  Fault leaf(const Expr& x, const Place& place) const;
  Fault axis(const Expr& x, const Place& place) const;
  Fault load(const Expr& x, const Place& place) const;
  Fault accumulator(const Expr& x, const Place& place, bool allowed) const;

  const Loops& loops_;
  const Statement& statement_;
};

Fault StatementChecker::axes() const {
  for (const Axis& axis : statement_.axes)
    if (axis.extent < 0)
      return "axis " + axis.name + " has an extent of " + std::to_string(axis.extent);
  if (!std::is_sorted(statement_.axes.begin(), statement_.axes.end(),
                      [](const Axis& a, const Axis& b) { return a.kind < b.kind; }))
    return "axes are not in the order parallel, scan, reduction";
  return std::nullopt;
}

Fault StatementChecker::domain() const {
  const Expr& domain = statement_.domain;
  if (!domain.defined()) return std::nullopt;
  if (domain.dtype() != DType::bool_)
    return "the domain is of " + str(domain.dtype()) + ", not of bool";
  return in_place({domain}, {"the domain", AxisKind::reduction, true});
}

Fault StatementChecker::accumulators() const {
  const size_t count = statement_.combine.size();
  if (statement_.init.size() != count || statement_.body.size() != count)
    return "there are " + str(statement_.init.size()) + " initial values, " +
           str(statement_.body.size()) + " bodies and " + str(count) + " combinations";
  if (auto found =
          in_place(statement_.combine, {"the combination", std::nullopt, false, false, true}))
    return found;
  if (auto found = in_place(statement_.init, {"the initial value", AxisKind::parallel, true}))
    return found;
  if (auto found = in_place(statement_.body, {"the body", AxisKind::reduction, true})) return found;
  for (size_t k = 0; k < count; ++k) {
    if (auto found = assigned(statement_.init[k], k, "the initial value")) return found;
    if (auto found = assigned(statement_.body[k], k, "the body")) return found;
  }
  return std::nullopt;
}

Fault StatementChecker::assigned(const Expr& x, size_t k, const char* what) const {
  const DType dtype = statement_.combine[k].dtype();
  const bool fits = x.weak() ? category(x.dtype()) <= category(dtype) : x.dtype() == dtype;
  if (fits) return std::nullopt;
  return std::string(what) + " of accumulator " + str(k) + " is of " + str(x.dtype()) +
         ", the accumulator of " + str(dtype);
}

Fault StatementChecker::stores() const {
  std::vector<Expr> roots;
  for (const Store& store : statement_.stores) {
    if (store.result >= loops_.results.size())
      return "a store goes to result " + str(store.result) + " of " + str(loops_.results.size());
    const size_t rank = loops_.results[store.result].rank();
    if (store.at.size() != rank)
      return "a store has " + str(store.at.size()) + " indices, result " + str(store.result) +
             " has " + str(rank) + " axes";
    roots.insert(roots.end(), store.at.begin(), store.at.end());
    roots.push_back(store.value);
  }
  const auto& axes = statement_.axes;
  const bool reduces = !axes.empty() && axes.back().kind == AxisKind::reduction;
  const AxisKind last = reduces ? AxisKind::scan : AxisKind::reduction;
  if (auto found = in_place(roots, {"a store", last, true, true})) return found;
  for (const Store& store : statement_.stores)
    for (const Expr& at : store.at)
      if (category(at.dtype()) != DTypeCategory::integer)
        return "a store has an index of " + str(at.dtype());
  return std::nullopt;
}

Fault StatementChecker::in_place(const std::vector<Expr>& roots, const Place& place) const {
  for (const Expr& root : roots)
    if (!root.defined()) return place.called + " is absent";
  for (const Expr& part : parts_of(roots))
    if (auto found = leaf(part, place)) return found;
  return std::nullopt;
}

Fault StatementChecker::leaf(const Expr& x, const Place& place) const {
  switch (x.kind()) {
    case ExprKind::axis:
      return axis(x, place);
    case ExprKind::load:
      return load(x, place);
    case ExprKind::accumulator:
      return accumulator(x, place, place.accumulators);
    case ExprKind::left:
    case ExprKind::right:
      return accumulator(x, place, place.sides);
    case ExprKind::parameter:
      return place.called + " has a parameter, which belongs to scalar programs";
    case ExprKind::literal:
    case ExprKind::call:
      return std::nullopt;
  }
  return std::nullopt;
}

Fault StatementChecker::axis(const Expr& x, const Place& place) const {
  const auto& axes = statement_.axes;
  if (x.number() >= axes.size())
    return place.called + " has axis " + str(x.number()) + " of " + str(axes.size());
  if (!place.axes || axes[x.number()].kind > *place.axes)
    return place.called + " depends on axis " + axes[x.number()].name;
  return std::nullopt;
}

Fault StatementChecker::load(const Expr& x, const Place& place) const {
  const std::string called = place.called + " loads operand " + str(x.number());
  if (!place.loads) return called;
  if (x.number() >= loops_.operands.size()) return called + " of " + str(loops_.operands.size());
  const Type& type = loops_.operands[x.number()];
  if (x.dtype() != type.dtype)
    return called + " as " + str(x.dtype()) + ", it is of " + str(type.dtype);
  if (x.arguments().size() != type.rank())
    return called + " with " + str(x.arguments().size()) + " indices, it has " + str(type.rank()) +
           " axes";
  return std::nullopt;
}

Fault StatementChecker::accumulator(const Expr& x, const Place& place, bool allowed) const {
  const std::string called = place.called + " uses accumulator " + str(x.number());
  const auto& combine = statement_.combine;
  if (!allowed) return called;
  if (x.number() >= combine.size()) return called + " of " + str(combine.size());
  const DType dtype = combine[x.number()].dtype();
  if (x.dtype() != dtype) return called + " as " + str(x.dtype()) + ", it is of " + str(dtype);
  return std::nullopt;
}

Fault fault_of_tensor(const Type& type) {
  if (!is_defined(type)) return std::nullopt;  // a missing operand, a result that was not asked for
  if (!is_valid(type.dtype) || !is_computable(type.dtype)) return "a dtype without arithmetic";
  return fault_of(type);
}

}  // namespace

Statement with_numbers(const Statement& statement, const std::vector<int64_t>& numbers) {
  Statement result = statement;
  const auto change = [&](const Expr& part) {
    return part.kind() == ExprKind::parameter && part.number() < numbers.size()
               ? Expr::literal(numbers[part.number()], DType::int64)
               : Expr();
  };
  const auto fold = [](const Expr& part) {
    const bool folds = part.is(Function::cast) && part[0].kind() == ExprKind::literal;
    return folds ? cast(part[0], part.dtype()) : Expr();
  };
  const auto bind = [&](Expr& x) {
    if (x.defined()) x = replace(replace(x, change), fold);
  };
  bind(result.domain);
  for (auto* list : {&result.init, &result.body, &result.combine})
    for (Expr& x : *list) bind(x);
  for (Store& store : result.stores) {
    for (Expr& x : store.at) bind(x);
    bind(store.value);
  }
  return result;
}

Loops canonical(Loops loops) {
  for (Statement& statement : loops.statements) make_canonical(statement, loops.results);
  return loops;
}

Hash Loops::hash() const {
  const Loops loops = canonical(*this);
  Hasher hasher;
  add_to(hasher, loops.operands);
  add_to(hasher, loops.results);
  add_to(hasher, loops.statements);
  return hasher.finish();
}

std::optional<std::string> fault_of(const Loops& loops, const Statement& statement) {
  return StatementChecker(loops, statement).fault();
}

void verify(const Loops& loops) {
  for (const auto* types : {&loops.operands, &loops.results})
    for (const Type& type : *types)
      if (const auto fault = fault_of_tensor(type))
        throw InternalError("loops: " + *fault + "\n" + print(loops), __FILE__, __LINE__);
  for (size_t i = 0; i < loops.statements.size(); ++i) {
    const Statement& statement = loops.statements[i];
    if (const auto fault = fault_of(loops, statement))
      throw InternalError("loops: statement " + str(i) + ": " + *fault + "\n" +
                              print(Loops{loops.operands, loops.results, {statement}}),
                          __FILE__, __LINE__);
  }
}

}  // namespace composit
