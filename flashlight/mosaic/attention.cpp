#include "flashlight/mosaic/attention.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/equal_steps.h"

namespace flashlight::mosaic {
namespace {

using composit::Expr;
using composit::ExprKind;
using composit::Function;
using loops::Nest;
using loops::Role;
using loops::Statement;

// Programs compute the softmax of 16-bit floats in float32. Of scores that are widened for it: what
// they are, with no more roundings than the program asks for itself.
const Expr* widened(const Expr& x) {
  const bool widens = x.is(Function::cast) && composit::is_half(x[0].dtype()) &&
                      x.dtype() == composit::DType::float32;
  return widens ? &x[0] : nullptr;
}
const Expr& before_widening(const Expr& x) {
  const Expr* const half = widened(x);
  if (half == nullptr) return x;
  // A number that was 16 bits wide, as it would be in memory (fuse).
  const Expr* const number = half->is(Function::cast) ? widened((*half)[0]) : nullptr;
  return number != nullptr ? *number : *half;
}
// Of weights that are rounded behind it: what is rounded.
const Expr& before_rounding(const Expr& x) {
  const bool rounds = x.is(Function::cast) && composit::is_half(x.dtype()) &&
                      x[0].dtype() == composit::DType::float32;
  return rounds ? x[0] : x;
}
bool is_load_of(const Expr& x, ValueId value) {
  return x.kind() == ExprKind::load && x.number() == value;
}
// The number that a literal has.
std::optional<double> number(const Expr& x) {
  if (x.kind() != ExprKind::literal || !std::holds_alternative<double>(x.value()))
    return std::nullopt;
  return std::get<double>(x.value());
}
bool has_sum(const Expr& x) { return composit::depends_on(x, ExprKind::accumulator, 0); }

// A softmax of a value. `gives_zeros`: a row that has only -inf becomes zeros, not NaN.
struct Softmax {
  ValueId scores;
  bool gives_zeros;
};

class Finder {
 public:
  Finder(const loops::Routine& routine, const std::function<bool(ValueId)>& is_frozen)
      : routine_(routine), is_frozen_(is_frozen), products_(routine, is_frozen, false) {
    readers_.resize(routine.values.size());
    writers_.resize(routine.values.size());
    for (const StepId i : routine.steps.ids()) {
      for (const ValueId value : loops::reads(routine.steps[i])) readers_[value].push_back(i);
      for (const ValueId value : loops::writes(routine.steps[i])) writers_[value].push_back(i);
    }
  }

  std::vector<Attention> run() {
    std::vector<Attention> found;
    for (const StepId i : routine_.steps.ids())
      if (auto one = attention_ending_at(i)) found.push_back(std::move(*one));
    return found;
  }

 private:
  const Statement* statement(StepId step) const {
    const auto* nest = std::get_if<Nest>(&routine_.steps[step]);
    return nest == nullptr ? nullptr : &nest->statement;
  }
  const Nest& nest(StepId step) const { return std::get<Nest>(routine_.steps[step]); }
  // The only step that writes `value`, a temporary that so many others read.
  std::optional<StepId> maker(ValueId value, size_t readers) const {
    const bool own = routine_.values[value].role == Role::temporary &&
                     writers_[value].size() == 1 && readers_[value].size() == readers;
    if (!own || statement(writers_[value][0]) == nullptr) return std::nullopt;
    return writers_[value][0];
  }

  // The softmax is looked for before the product, since most steps read none.
  std::optional<Attention> attention_ending_at(StepId end) const {
    if (statement(end) == nullptr) return std::nullopt;
    for (const ValueId weights : loops::reads(routine_.steps[end])) {
      std::set<StepId> steps = {end};
      const auto softmax = softmax_making(weights, steps);
      if (!softmax) continue;
      if (auto found = attention_of(*softmax, weights, std::move(steps), end)) return found;
    }
    return std::nullopt;
  }

  std::optional<Attention> attention_of(const Softmax& softmax, ValueId weights,
                                        std::set<StepId> steps, StepId end) const {
    auto results = products_.of(nest(end));
    if (!results || results->left != weights || is_frozen_(results->right)) return std::nullopt;
    // Heads in the order of the scores, however results lie.
    std::stable_sort(results->batch.begin(), results->batch.end(), [&](AxisId a, AxisId b) {
      return results->left_at.coefficients[a] > results->left_at.coefficients[b];
    });
    const auto start = maker(softmax.scores, 2);
    if (!start) return std::nullopt;
    auto product = products_.of(nest(*start));
    if (!product || is_frozen_(product->right)) return std::nullopt;
    steps.insert(*start);
    Attention attention = {{steps.begin(), steps.end()}, std::move(*product), std::move(*results)};
    attention.gives_zeros = softmax.gives_zeros;
    if (!take_scores(attention) || !fits(attention)) return std::nullopt;
    gather_values(attention);
    return attention;
  }

  // exp(x - max x) / sum of that, along the last dimension; with a guard in both places, zeros
  // where all of a row is -inf.
  std::optional<Softmax> softmax_making(ValueId weights, std::set<StepId>& steps) const {
    const auto division = maker(weights, 1);
    if (!division || !loops::is_elementwise(*statement(*division))) return std::nullopt;
    const Expr& quotient = before_rounding(statement(*division)->stores[0].value);
    if (!quotient.is(Function::div) || quotient[0].kind() != ExprKind::load ||
        quotient[1].kind() != ExprKind::load)
      return std::nullopt;
    const ValueId powers = value_of(quotient[0]), total = value_of(quotient[1]);
    const auto exponential = maker(powers, 2), sum = maker(total, 1);
    if (!exponential || !sum || !folds(*sum, powers, Function::add)) return std::nullopt;
    if (!loops::is_elementwise(*statement(*exponential))) return std::nullopt;
    const Expr& power = statement(*exponential)->stores[0].value;
    if (!power.is(Function::exp) || !power[0].is(Function::sub)) return std::nullopt;
    const Expr &x = power[0][0], &most = power[0][1];
    if (x.kind() != ExprKind::load || most.kind() != ExprKind::load) return std::nullopt;
    const auto maximum = maker(value_of(most), 1);
    if (!maximum || !folds(*maximum, value_of(x), Function::max)) return std::nullopt;
    if (!along_rows(*division) || !along_rows(*exponential)) return std::nullopt;
    const bool guarded = is_guarded(*sum, 0, 1);
    if (guarded ? !is_guarded(*maximum, -INFINITY, 0) : !is_plain(*sum) || !is_plain(*maximum))
      return std::nullopt;
    steps.insert({*division, *exponential, *sum, *maximum});
    return Softmax{value_of(x), guarded};
  }

  // True if a nest reduces the last dimension of `value`, as it lies in memory.
  bool folds(StepId step, ValueId value, Function function) const {
    const Statement& one = *statement(step);
    return loops::fold_function(one) == function && one.body.size() == 1 && !one.domain.defined() &&
           is_load_of(one.body[0], value) && one.stores.size() == 1 &&
           loops::has_axes(one, composit::AxisKind::reduction) && is_row(one.body[0], one) &&
           is_identity(one.stores[0].at);
  }
  // True if it stores the result of its reduction; below: that unless it is `special`, and then
  // `instead`.
  bool is_plain(StepId step) const {
    return statement(step)->stores[0].value.kind() == ExprKind::accumulator;
  }
  bool is_guarded(StepId step, double special, double instead) const {
    const Expr& x = statement(step)->stores[0].value;
    return x.is(Function::select) && x[0].is(Function::eq) &&
           x[0][0].kind() == ExprKind::accumulator && number(x[0][1]) == special &&
           number(x[1]) == instead && x[2].kind() == ExprKind::accumulator;
  }
  // Indices are the axes, in their order.
  static bool is_identity(const std::vector<Expr>& at) {
    for (size_t i = 0; i < at.size(); ++i)
      if (at[i].kind() != ExprKind::axis || at[i].number() != i) return false;
    return true;
  }
  static bool is_row(const Expr& load, const Statement& one) {
    return load.arguments().size() == one.axes.size() && is_identity(load.arguments());
  }
  // True if all accesses of a nest are at its own axes, with or without the last one.
  bool along_rows(StepId step) const {
    const Statement& one = *statement(step);
    if (!is_identity(one.stores[0].at)) return false;
    const std::vector<Expr> parts = composit::parts_of(loops::expressions(one));
    return std::all_of(parts.begin(), parts.end(), [&](const Expr& part) {
      return part.kind() != ExprKind::load ||
             (is_identity(part.arguments()) && part.arguments().size() + 1 >= one.axes.size());
    });
  }

  // Splits what is made of the sum into scale and bias.
  static bool take_scores(Attention& attention) {
    Expr x = before_widening(attention.scores.statement.stores[0].value);
    const auto add = [&](const Expr& more) {
      attention.bias = attention.bias.defined() ? attention.bias + more : more;
    };
    while (x.kind() != ExprKind::accumulator) {
      if (x.is(Function::select) && number(x[2]) == -INFINITY && !has_sum(x[0])) {
        add(composit::select(x[0], composit::cast(Expr(0.0), x.dtype()), x[2]));
        x = x[1];
      } else if (x.is(Function::add) && has_sum(x[0]) != has_sum(x[1])) {
        if (attention.scale != 1) return false;
        const bool left = has_sum(x[0]);
        add(x[left ? 1 : 0]);
        x = x[left ? 0 : 1];
      } else if (x.is(Function::mul) && number(x[1])) {
        attention.scale *= *number(x[1]);
        x = x[0];
        if (x.kind() != ExprKind::accumulator && !x.is(Function::mul)) return false;
      } else if (x.is(Function::div) && number(x[1])) {
        attention.scale /= *number(x[1]);
        x = x[0];
        if (x.kind() != ExprKind::accumulator && !x.is(Function::mul)) return false;
      } else {
        return false;
      }
    }
    return true;
  }

  // True if the tiles of both products are of these dtypes: one, or 16-bit floats.
  static bool has_dtypes(const Product& product, composit::DType element) {
    return product.element == element && product.weight == element;
  }
  // True if both products have the same heads and one dtype, and their elements lie side by side.
  bool fits(const Attention& attention) const {
    const Product &scores = attention.scores, &results = attention.results;
    composit::IndexAnalysis analysis(results.statement.axes);
    const auto store = analysis.affine(results.statement.stores[0].at[0]);
    if (scores.rows.size() != 1 || scores.terms.size() != 1 || !scores.columns ||
        results.rows.size() != 1 || results.terms.size() != 1 || !results.columns || !store)
      return false;
    const composit::DType element =
        routine_.values[value_of(results.statement.stores[0])].type.dtype;
    if (results.statement.stores[0].value.kind() != ExprKind::accumulator ||
        !has_dtypes(scores, element) || !has_dtypes(results, element) ||
        (composit::is_half(element) && !has_pairs(scores)))
      return false;
    const auto extents = [](const Product& product) {
      std::vector<int64_t> list;
      for (const AxisId axis : product.batch) list.push_back(product.extent(axis));
      return list;
    };
    return extents(scores) == extents(results) &&
           scores.extent(scores.rows[0]) == results.extent(results.rows[0]) &&
           scores.extent(*scores.columns) == results.extent(results.terms[0]) &&
           scores.left_at.coefficients[scores.terms[0]] == 1 &&
           scores.right_at.coefficients[scores.terms[0]] == 1 &&
           results.right_at.coefficients[*results.columns] == 1 &&
           store->coefficients[*results.columns] == 1;
  }

  static void gather_values(Attention& attention) {
    attention.reads = {attention.scores.left, attention.scores.right, attention.results.right};
    if (attention.bias.defined())
      for (const Expr& part : composit::parts_of({attention.bias}))
        if (part.kind() == ExprKind::load) attention.reads.push_back(value_of(part));
    attention.result = value_of(attention.results.statement.stores[0]);
  }

  const loops::Routine& routine_;
  const std::function<bool(ValueId)>& is_frozen_;
  mutable ProductsOnce products_;  // with the axes of their batches apart
  Table<ValueId, StepIds> readers_, writers_;
};

}  // namespace

std::vector<Attention> find_attention(const loops::Routine& routine,
                                      const std::function<bool(ValueId value)>& is_frozen) {
  return Finder(routine, is_frozen).run();
}

bool has_pairs(const Product& product) {
  const auto are_even = [&](const composit::Affine& at) {
    for (const AxisId axis : loops::axes_of(product.statement))
      if (axis != product.terms[0] && at.coefficients[axis] % 2 != 0) return false;
    return at.constant % 2 == 0;
  };
  return product.extent(product.terms[0]) % 2 == 0 && are_even(product.left_at) &&
         are_even(product.right_at);
}

}  // namespace flashlight::mosaic
