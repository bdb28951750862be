#include "composit/ops/scatters.h"

#include <algorithm>
#include <map>
#include <utility>

#include "composit/op/affine.h"
#include "composit/op/stores.h"
#include "composit/ops/functions.h"
#include "composit/ops/places.h"

namespace composit {
namespace {

// A tensor is worth taking apart if it is this much larger than what is put into it: adding up the
// whole costs no more than this factor.
constexpr int64_t kWorthIt = 4;

using Scatters = std::vector<Scatter>;

std::vector<Expr> axes_of_store(const Statement& statement) {
  std::vector<Expr> axes;
  for (size_t axis : store_axes(statement)) axes.push_back(Expr::axis(axis));
  return axes;
}
Dims extents_of_store(const Statement& statement) {
  Dims extents;
  for (size_t axis : store_axes(statement)) extents.push_back(statement.axes[axis].extent);
  return extents;
}

// ---- one statement ------------------------------------------------------------------------------

bool is_zero(const LazyTensor& x) {
  return x.node->op().str() == "aten::full" &&
         is_literal(Expr(x.node->attribute("fill_value").as<Scalar>()), 0);
}

// The operand that the statement moves elsewhere, element by element, in any order of its axes.
std::optional<size_t> moved_operand(const Scatter& scatter) {
  const Statement& statement = scatter.statement;
  const Expr& value = statement.stores[0].value;
  if (statement.domain.defined() || !statement.body.empty() || value.kind() != ExprKind::load ||
      value.arguments().size() != statement.axes.size())
    return {};
  std::vector<bool> seen(statement.axes.size());
  const Dims& sizes = scatter.operands[value.number()].sizes();
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Expr& index = value[i];
    if (index.kind() != ExprKind::axis || seen[index.number()] ||
        statement.axes[index.number()].extent != sizes[i])
      return {};
    seen[index.number()] = true;
  }
  return value.number();
}

bool copies_zeros(const Scatter& scatter) {
  const std::optional<size_t> operand = moved_operand(scatter);
  const std::vector<Expr>&at = scatter.statement.stores[0].at,
        axes = axes_of_store(scatter.statement);
  return operand && is_zero(scatter.operands[*operand]) &&
         std::equal(at.begin(), at.end(), axes.begin(), axes.end(),
                    [](const Expr& x, const Expr& y) { return x.same(y); });
}

bool is_small(const Statement& statement, const Type& result) {
  int64_t count = kWorthIt;
  for (int64_t extent : extents_of_store(statement)) count *= extent;
  return result.numel() > 0 && count <= result.numel();
}

bool writes_once(const Statement& statement) {
  IndexAnalysis analysis(statement.axes);
  return injective(statement.stores[0].at, store_axes(statement), analysis);
}

// The same without the operands that it does not load.
Scatter pruned(Scatter scatter) {
  std::map<size_t, size_t> numbers;
  LazyTensors loaded;
  const auto renumber = [&](Expr& x) {
    if (!x.defined()) return;
    x = replace(x, [&](const Expr& part) {
      if (part.kind() != ExprKind::load) return Expr();
      const auto [found, added] = numbers.emplace(part.number(), loaded.size());
      if (added) loaded.push_back(scatter.operands[part.number()]);
      return Expr::load(found->second, part.dtype(), part.arguments());
    });
  };
  Statement& statement = scatter.statement;
  renumber(statement.domain);
  for (auto* list : {&statement.init, &statement.body, &statement.combine})
    for (Expr& x : *list) renumber(x);
  for (Expr& x : statement.stores[0].at) renumber(x);
  renumber(statement.stores[0].value);
  scatter.operands = std::move(loaded);
  return scatter;
}

// The statements that write x; nothing if it is not the sum of what they write.
std::optional<Scatters> summands(const LazyTensor& x, const Loops& loops) {
  Scatters found;
  for (const Statement& statement : loops.statements) {
    Scatter own{statement, x.node->operands()};
    auto& stores = own.statement.stores;
    std::erase_if(stores, [&](const Store& store) { return store.result != x.index; });
    if (stores.empty()) continue;
    if (stores.size() > 1) return {};
    if (!stores[0].add && (!found.empty() || !writes_once(own.statement))) return {};
    if (copies_zeros(own)) continue;
    stores[0] = {0, stores[0].at, cast(stores[0].value, x.dtype()), true};
    found.push_back(pruned(std::move(own)));
  }
  return found;
}

// ---- scatters of scatters -----------------------------------------------------------------------

// `inner`, whose result `outer` moves: the axes of `outer` are places of `inner`.
Scatter moved(const Scatter& inner, const Scatter& outer) {
  const Store& to = outer.statement.stores[0];
  std::vector<Expr> axes(outer.statement.axes.size());
  for (size_t i = 0; i < axes.size(); ++i)
    axes[to.value[i].number()] = inner.statement.stores[0].at[i];
  Scatter both = inner;
  both.operands.insert(both.operands.end(), outer.operands.begin(), outer.operands.end());
  both.statement.stores[0].at = replace(to.at, [&](const Expr& part) {
    if (part.kind() == ExprKind::axis) return axes[part.number()];
    if (part.kind() != ExprKind::load) return Expr();
    return Expr::load(inner.operands.size() + part.number(), part.dtype(), part.arguments());
  });
  return pruned(std::move(both));
}

// Appends what a statement adds; false if it may be anywhere.
bool append(Scatters& scatters, const Scatter& scatter, const Type& type) {
  if (const auto operand = moved_operand(scatter)) {
    if (const auto inner = scatters_of(scatter.operands[*operand])) {
      for (const Scatter& one : *inner) scatters.push_back(moved(one, scatter));
      return true;
    }
  }
  if (!is_small(scatter.statement, type)) return false;
  scatters.push_back(scatter);
  return true;
}

bool is_view(const Node& node) {
  const std::string op(node.op().str());
  return op == "aten::reshape" || op == "aten::view" || op == "aten::unsqueeze";
}

std::optional<Scatters> scatters_of_view(const LazyTensor& x) {
  const LazyTensor& whole = x.node->operands()[0];
  std::optional<Scatters> scatters = scatters_of(whole);
  if (!scatters) return {};
  for (Scatter& scatter : *scatters) {
    std::vector<Expr>& at = scatter.statement.stores[0].at;
    at = unflattened(flattened(at, whole.sizes()), x.sizes());
  }
  return scatters;
}

// Of a tensor that is no sum of tensors.
std::optional<Scatters> scatters_of_one(const LazyTensor& x) {
  if (is_zero(x)) return Scatters();
  const Operation* operation = operation_of(*x.node);
  if (operation == nullptr) return {};
  if (is_view(*x.node)) return scatters_of_view(x);
  const auto loops = loops_of(*operation, call_of(*x.node, operation->schema));
  if (!loops) return {};
  const std::optional<Scatters> statements = summands(x, *loops);
  if (!statements) return {};
  Scatters scatters;
  for (const Scatter& statement : *statements)
    if (!append(scatters, statement, x.type())) return {};
  return scatters;
}

bool adds_two(const LazyTensor& x) {
  const Node& node = *x.node;
  if (node.op().str() != "aten::add.Tensor") return false;
  for (const LazyTensor& operand : node.operands())
    if (operand.dtype() != x.dtype() || operand.sizes() != x.sizes()) return false;
  return is_literal(Expr(node.attribute("alpha").as<Scalar>()), 1);
}

bool reduces(const Statement& statement) {
  return store_axes(statement).size() < statement.axes.size();
}

}  // namespace

std::optional<Scatters> scatters_of(const LazyTensor& x) {
  Scatters scatters;
  LazyTensors waiting = {x};
  while (!waiting.empty()) {
    const LazyTensor part = waiting.back();
    waiting.pop_back();
    if (adds_two(part)) {
      waiting.insert(waiting.end(), {part.node->operands()[1], part.node->operands()[0]});
      continue;
    }
    const std::optional<Scatters> some = scatters_of_one(part);
    if (!some) return {};
    scatters.insert(scatters.end(), some->begin(), some->end());
  }
  return scatters;
}

Places fixed_places(const Scatter& scatter) {
  const Statement& statement = scatter.statement;
  std::vector<Expr> at = statement.stores[0].at;
  if (std::any_of(at.begin(), at.end(), has_loads)) return {};
  if (!statement.domain.defined() || reduces(statement)) return at;
  if (has_loads(statement.domain)) return {};
  for (Expr& index : at) index = select(statement.domain, index, 0);
  return at;
}

LazyTensors updates_of(const Scatter& scatter) {
  Loops loops;
  for (const LazyTensor& operand : scatter.operands) loops.operands.push_back(operand.type());
  Statement statement = scatter.statement;
  const Store added = std::exchange(statement.stores, {})[0];
  const std::vector<Expr> axes = axes_of_store(statement);
  const auto give = [&](const Expr& value, DType dtype) {
    statement.stores.push_back({loops.results.size(), axes, value});
    loops.results.push_back(tensor_type(dtype, extents_of_store(statement)));
  };
  if (!fixed_places(scatter))
    for (const Expr& index : added.at) give(index, DType::int64);
  give(added.value, added.value.dtype());
  loops.statements = {std::move(statement)};
  return apply("composit::loops", {scatter.operands, print(loops)});
}

Updates take_updates(const Type& type, const Places& fixed, LazyTensors::const_iterator& next) {
  if (fixed) return {.places = {}, .fixed = *fixed, .values = *next++};
  const auto first = std::exchange(next, next + static_cast<int64_t>(type.rank()));
  return {.places = {first, next}, .fixed = {}, .values = *next++};
}

LazyTensor put_together(const Type& type, const std::vector<Updates>& updates) {
  Loops loops{.operands = {}, .results = {tensor_type(type.dtype, type.sizes)}, .statements = {}};
  LazyTensors operands;
  for (const Updates& one : updates) {
    Statement statement;
    for (int64_t extent : one.values.sizes()) statement.axes.push_back({"", extent});
    const auto load = [&](const LazyTensor& tensor) {
      operands.push_back(tensor);
      loops.operands.push_back(tensor.type());
      return Expr::load(operands.size() - 1, tensor.dtype(), axes_of_store(statement));
    };
    std::vector<Expr> at = one.fixed;
    for (const LazyTensor& place : one.places) at.push_back(load(place));
    statement.stores = {{0, std::move(at), load(one.values), true}};
    statement.stores[0].add = !loops.statements.empty() || !writes_once(statement);
    loops.statements.push_back(std::move(statement));
  }
  return apply_one("composit::loops", {operands, print(loops)});
}

}  // namespace composit
