#include "composit/ad/transpose.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "composit/ad/expr_derivative.h"
#include "composit/ad/gather.h"
#include "composit/ir/error.h"
#include "composit/op/affine.h"
#include "composit/op/stores.h"

namespace composit {
namespace {

[[noreturn]] void refuse_nonlinear() {
  throw UserError("loop form is not linear in its accumulator");
}

bool has_kind(const Expr& x, ExprKind kind) {
  const auto parts = parts_of({x});
  return std::any_of(parts.begin(), parts.end(),
                     [kind](const Expr& part) { return part.kind() == kind; });
}

bool has_axes(const Statement& statement, AxisKind kind) {
  return std::any_of(statement.axes.begin(), statement.axes.end(),
                     [kind](const Axis& axis) { return axis.kind == kind; });
}

Expr sum(const Expr& x, const Expr& y) {
  if (!x.defined()) return y;
  return y.defined() ? x + y : x;
}

Expr zero_of(DType dtype) { return cast(0, dtype); }

std::optional<Hash> hash_of(const Expr& x) {
  return x.defined() ? std::optional(x.hash()) : std::nullopt;
}

bool same(const Contribution& a, const Contribution& b) {
  return a.axes == b.axes && hash_of(a.domain) == hash_of(b.domain) &&
         std::equal(a.at.begin(), a.at.end(), b.at.begin(), b.at.end(),
                    [](const Expr& x, const Expr& y) { return x.same(y); });
}

// A statement whose only store is `value` into the gradient at the place `at`, where `condition`
// holds beside the domain. Elsewhere zero is added to place 0: an index in range.
Statement with_store(Statement statement, std::vector<Expr> at, Expr value, const Expr& condition) {
  if (condition.defined() && !is_true(condition)) {
    for (Expr& index : at) index = select(condition, index, 0);
    value = select(condition, value, 0);
  }
  statement.stores = {{0, std::move(at), std::move(value), true}};
  return tidy(statement);
}

class Transposer {
 public:
  Transposer(const Loops& loops, size_t operand, const std::vector<bool>& has_cotangent)
      : loops_(loops), operand_(operand), has_cotangent_(has_cotangent) {
    COMPOSIT_ASSERT(operand < loops.operands.size(), "no such operand");
    COMPOSIT_ASSERT(has_cotangent.size() == loops.results.size(), "a cotangent per result");
  }

  Transposed run() {
    const Type& type = loops_.operands[operand_];
    const DType dtype = type.dtype;
    if ((is_floating_point(dtype) || is_complex(dtype)) && type.numel() > 0)
      for (number_ = 0; number_ < loops_.statements.size(); ++number_) transpose_statement();
    for (const Contribution& contribution : contributions_)
      if (auto statement = gather(contribution, type.sizes)) add_statement(std::move(*statement));
    for (Statement& statement : kept_) add_statement(std::move(statement));
    return pruned(tensor_type(dtype, type.sizes));
  }

 private:
  const Statement& statement() const { return loops_.statements[number_]; }

  // ---- one statement ---------------------------------------------------------------------------

  void transpose_statement() {
    cotangents_.clear();
    if (!reads_operand()) return;
    for (const Store& store : statement().stores) cotangents_.push_back(cotangent_of(store));
    for (size_t i = 0; i < statement().stores.size(); ++i) transpose_store(i);
    if (!statement().body.empty()) transpose_accumulators();
  }

  bool reads_operand() const {
    std::vector<Expr> roots = statement().init;
    roots.insert(roots.end(), statement().body.begin(), statement().body.end());
    for (const Store& store : statement().stores) roots.push_back(store.value);
    return !loads_in(roots).empty();
  }

  std::vector<Expr> loads_in(const std::vector<Expr>& roots) const {
    std::vector<Expr> found;
    for (const Expr& part : parts_of(roots))
      if (part.kind() == ExprKind::load && part.number() == operand_) found.push_back(part);
    return found;
  }

  // The cotangent of the value that a store writes; absent if there is none.
  Expr cotangent_of(const Store& store) const {
    if (!has_cotangent_[store.result]) return {};
    check_written_once(store);
    Expr overwritten;
    for (size_t i = number_ + 1; i < loops_.statements.size(); ++i) {
      for (const Store& later : loops_.statements[i].stores) {
        if (later.result != store.result || later.add) continue;
        const Expr here = overwrites(loops_.statements[i], later, store);
        overwritten = overwritten.defined() ? or_else(overwritten, here) : here;
      }
    }
    if (overwritten.defined() && is_true(overwritten)) return {};
    const DType dtype = loops_.results[store.result].dtype;
    const Expr load = Expr::load(loops_.operands.size() + store.result, dtype, store.at);
    return overwritten.defined() ? select(overwritten, 0, load) : load;
  }

  Expr overwrites(const Statement& later, const Store& with, const Store& store) const {
    if (disjoint(statement(), store, later, with)) return cast(false, DType::bool_);
    const std::optional<Expr> predicate = writes(later, with, store.at);
    if (!predicate) throw UserError("loop form overwrites places that depend on data");
    return IndexAnalysis(statement().axes).simplify(*predicate);
  }

  // One value per place within a statement, but for what is added.
  void check_written_once(const Store& store) const {
    IndexAnalysis analysis(statement().axes);
    bool once = store.add || injective(store.at, store_axes(statement()), analysis);
    for (const Store& other : statement().stores) {
      if (&other == &store || other.result != store.result || (other.add && store.add)) continue;
      once = once && disjoint(statement(), store, statement(), other);
    }
    if (!once) throw UserError("loop form may store two values to one place");
  }

  // The value a store writes, in the result's dtype.
  Expr stored(const Store& store) const {
    return cast(store.value, loops_.results[store.result].dtype);
  }

  // The condition under which the statement stores: with reductions, it always does.
  Expr domain_of_stores() const {
    return has_axes(statement(), AxisKind::reduction) ? Expr() : statement().domain;
  }

  // ---- loads in what is stored -----------------------------------------------------------------

  void transpose_store(size_t number) {
    if (!cotangents_[number].defined()) return;
    const Expr value = stored(statement().stores[number]);
    for (const Expr& leaf : loads_in({value})) {
      const Expr gradient = structural(value, leaf, cotangents_[number]);
      if (!gradient.defined()) continue;
      const Expr where = reached(value, leaf);
      std::vector<Expr> roots = leaf.arguments();
      roots.insert(roots.end(), {gradient, where});
      const bool needs_accumulators = std::any_of(roots.begin(), roots.end(), [](const Expr& x) {
        return has_kind(x, ExprKind::accumulator);
      });
      if (needs_accumulators)
        kept_.push_back(with_store(statement(), leaf.arguments(), gradient, where));
      else
        contribute_per_store(leaf, gradient, where);
    }
  }

  void contribute_per_store(const Expr& leaf, const Expr& gradient, const Expr& where) {
    std::vector<Axis> axes = statement().axes;
    axes.resize(store_axes(statement()).size());
    contribute({axes, domain_of_stores(), leaf.arguments(), gradient}, where);
  }

  // ---- accumulators ----------------------------------------------------------------------------

  void transpose_accumulators() {
    const size_t count = statement().body.size();
    if (!accumulators_carry()) return;
    std::vector<Expr> cotangents(count), of_bodies(count);
    for (size_t k = 0; k < count; ++k) {
      cotangents[k] = cotangent_of_accumulator(k);
      if (!cotangents[k].defined()) continue;
      check_sum(k, cotangents[k]);
      for (size_t j = 0; j < count; ++j)
        of_bodies[j] = sum(of_bodies[j], through_combine(k, j, cotangents[k]));
    }
    for (size_t k = 0; k < count; ++k) {
      if (cotangents[k].defined()) transpose_init(k, cotangents[k]);
      if (of_bodies[k].defined()) transpose_body(k, of_bodies[k]);
    }
  }

  // True if the operand reaches an accumulator by a path with a derivative.
  bool accumulators_carry() const {
    std::vector<Expr> roots = statement().init;
    roots.insert(roots.end(), statement().body.begin(), statement().body.end());
    for (const Expr& root : roots)
      for (const Expr& leaf : loads_in({root}))
        if (structural(root, leaf, cast(1, root.dtype())).defined()) return true;
    return false;
  }

  Expr cotangent_of_accumulator(size_t k) const {
    const Expr accumulator = Expr::accumulator(k, statement().combine[k].dtype());
    Expr total;
    for (size_t i = 0; i < statement().stores.size(); ++i)
      if (cotangents_[i].defined())
        total = sum(total, structural(stored(statement().stores[i]), accumulator, cotangents_[i]));
    if (total.defined() && has_kind(total, ExprKind::accumulator)) refuse_nonlinear();
    return total;
  }

  // combine_k = left_k + (something without left).
  void check_sum(size_t k, const Expr& cotangent) const {
    for (size_t j = 0; j < statement().body.size(); ++j) {
      const Expr left = Expr::left(j, statement().combine[j].dtype());
      const Expr gradient = structural(statement().combine[k], left, cotangent);
      const bool fits =
          j == k ? gradient.defined() && gradient.same(cotangent) : !gradient.defined();
      if (!fits) refuse_nonlinear();
    }
  }

  // The cotangent that body j gets from accumulator k.
  Expr through_combine(size_t k, size_t j, const Expr& cotangent) const {
    const Expr right = Expr::right(j, statement().body[j].dtype());
    const Expr gradient = structural(statement().combine[k], right, cotangent);
    if (!gradient.defined()) return {};
    if (has_kind(gradient, ExprKind::left)) refuse_nonlinear();
    return replace(gradient, [&](const Expr& part) {
      return part.kind() == ExprKind::right ? statement().body[part.number()] : Expr();
    });
  }

  void transpose_init(size_t k, const Expr& cotangent) {
    const Expr& init = statement().init[k];
    for (const Expr& leaf : loads_in({init}))
      if (const Expr gradient = structural(init, leaf, cotangent); gradient.defined())
        contribute_per_store(leaf, gradient, reached(init, leaf));
  }

  void transpose_body(size_t k, const Expr& cotangent) {
    const Expr& body = statement().body[k];
    for (const Expr& leaf : loads_in({body})) {
      if (has_axes(statement(), AxisKind::scan)) {
        transpose_scan(body, leaf, cotangent);
        continue;
      }
      const Expr gradient = structural(body, leaf, cotangent);
      if (!gradient.defined()) continue;
      contribute({statement().axes, statement().domain, leaf.arguments(), gradient},
                 reached(body, leaf));
    }
  }

  // The body at a step of a scan counts in all later ones: its cotangent is the sum from the end.
  void transpose_scan(const Expr& body, const Expr& leaf, const Expr& cotangent) {
    const DType dtype = cotangent.dtype();
    Expr gradient = structural(body, leaf, Expr::accumulator(0, dtype));
    if (!gradient.defined()) return;
    // Axes that were reduced run in parallel, each with a scan of its own.
    Statement reversed;
    std::vector<Expr> axes(statement().axes.size());
    for (const AxisKind kind : {AxisKind::parallel, AxisKind::reduction, AxisKind::scan}) {
      for (size_t i = 0; i < axes.size(); ++i) {
        const Axis& axis = statement().axes[i];
        if (axis.kind != kind) continue;
        const bool scan = kind == AxisKind::scan;
        const Expr now = Expr::axis(reversed.axes.size());
        axes[i] = scan ? axis.extent - 1 - now : now;
        reversed.axes.push_back({axis.name, axis.extent, scan ? kind : AxisKind::parallel});
      }
    }
    const auto moved = [&](const Expr& x) {
      return replace(x, [&](const Expr& part) {
        return part.kind() == ExprKind::axis ? axes[part.number()] : Expr();
      });
    };
    Expr condition = reached(body, leaf);
    if (has_axes(statement(), AxisKind::reduction) && statement().domain.defined())
      condition = and_then(statement().domain, condition);
    if (domain_of_stores().defined()) reversed.domain = moved(domain_of_stores());
    reversed.init = {zero_of(dtype)};
    reversed.body = {moved(cotangent)};
    reversed.combine = {Expr::left(0, dtype) + Expr::right(0, dtype)};
    std::vector<Expr> at;
    for (const Expr& index : leaf.arguments()) at.push_back(moved(index));
    kept_.push_back(with_store(reversed, at, moved(gradient), moved(condition)));
  }

  // ---- the result ------------------------------------------------------------------------------

  // If `where` does not hold, the load is out of range, or the gradient is zero.
  void contribute(Contribution contribution, const Expr& where) {
    IndexAnalysis analysis(contribution.axes);
    const bool in_range = is_in_range(contribution.at, analysis);
    std::vector<Expr> domain = conjuncts(contribution.domain);
    for (const Expr& predicate : conjuncts(where))
      if (!in_range || !has_loads(predicate)) domain.push_back(predicate);
    contribution.domain = all_of(std::move(domain));
    contribution.value = assume(contribution.value, contribution.domain);
    for (Contribution& other : contributions_)
      if (same(other, contribution)) {
        other.value = other.value + contribution.value;
        return;
      }
    contributions_.push_back(std::move(contribution));
  }

  bool is_in_range(const std::vector<Expr>& at, IndexAnalysis& analysis) const {
    const Dims& sizes = loops_.operands[operand_].sizes;
    for (size_t i = 0; i < at.size(); ++i)
      if (!analysis.range(at[i]).inside(0, sizes[i] - 1)) return false;
    return true;
  }

  // A statement that writes each of its places once, all of them for the first time, need not add.
  void add_statement(Statement statement) {
    Store& store = statement.stores[0];
    IndexAnalysis analysis(statement.axes);
    store.add = !injective(store.at, store_axes(statement), analysis);
    for (const Statement& earlier : statements_)
      store.add = store.add || !disjoint(earlier, earlier.stores[0], statement, store);
    statements_.push_back(std::move(statement));
  }

  Transposed pruned(Type result) {
    std::map<size_t, size_t> numbers;  // of the operands read, to their new ones
    for (const Statement& statement : statements_)
      for (const Expr& part : parts_of(roots_of(statement)))
        if (part.kind() == ExprKind::load) numbers[part.number()] = 0;
    Transposed transposed;
    transposed.loops.results = {std::move(result)};
    for (auto& [number, now] : numbers) {
      now = transposed.operands.size();
      transposed.operands.push_back(number);
      const size_t operands = loops_.operands.size();
      transposed.loops.operands.push_back(number < operands ? loops_.operands[number]
                                                            : loops_.results[number - operands]);
    }
    const auto renumber = [&](Expr& x) {
      if (!x.defined()) return;
      x = replace(x, [&](const Expr& part) {
        if (part.kind() != ExprKind::load) return Expr();
        return Expr::load(numbers.at(part.number()), part.dtype(), part.arguments());
      });
    };
    for (Statement& statement : statements_) for_each_root(statement, renumber);
    transposed.loops.statements = std::move(statements_);
    return transposed;
  }

  template <class F>
  static void for_each_root(Statement& statement, const F& f) {
    f(statement.domain);
    for (auto* list : {&statement.init, &statement.body, &statement.combine})
      for (Expr& x : *list) f(x);
    for (Store& store : statement.stores) {
      for (Expr& x : store.at) f(x);
      f(store.value);
    }
  }
  static std::vector<Expr> roots_of(Statement statement) {
    std::vector<Expr> roots;
    for_each_root(statement, [&](const Expr& x) { roots.push_back(x); });
    return roots;
  }

  const Loops& loops_;
  size_t operand_;
  const std::vector<bool>& has_cotangent_;
  size_t number_ = 0;             // of the statement under transposition
  std::vector<Expr> cotangents_;  // per store of it
  std::vector<Contribution> contributions_;
  std::vector<Statement> kept_, statements_;
};

}  // namespace

Transposed transpose(const Loops& loops, size_t operand, const std::vector<bool>& has_cotangent) {
  return Transposer(loops, operand, has_cotangent).run();
}

}  // namespace composit
