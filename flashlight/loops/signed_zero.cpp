#include "flashlight/loops/signed_zero.h"

#include <algorithm>
#include <cmath>

#include "composit/ir/flat_map.h"
#include "composit/op/affine.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/loops/statement.h"

namespace flashlight::loops {
namespace {

using composit::DType;
using composit::Hash;
using composit::Store;
using ScalarFunction = composit::Function;

// The users of an expression need this of its zeros; its other values never change.
struct Need {
  bool sign = false;  // keep their signs
  bool plus = false;  // it is never -0, and must stay so
  bool any() const { return sign || plus; }
  Need& operator|=(const Need& other) {
    sign |= other.sign;
    plus |= other.plus;
    return *this;
  }
};
constexpr Need kSign = {.sign = true}, kPlus = {.plus = true};

bool is_plain_float(DType dtype) { return dtype == DType::float32 || dtype == DType::float64; }

bool is_negative_zero(const Expr& x) {
  const auto* number = std::get_if<double>(&x.value());
  return number != nullptr && *number == 0 && std::signbit(*number);
}

bool is_zero(const Expr& x) { return composit::is_literal(x, 0) && !is_negative_zero(x); }

// The x of x + 0 or 0 + x.
Expr beside_zero(const Expr& sum) {
  if (!sum.is(ScalarFunction::add) || !is_plain_float(sum.dtype())) return {};
  for (size_t side = 0; side < 2; ++side)
    if (is_zero(sum[side])) return sum[1 - side];
  return {};
}

class SignedZeroRewriter {
 public:
  explicit SignedZeroRewriter(Routine& function)
      : function_(function), plus_(function.values.size()), needs_(function.values.size(), kSign) {}

  void run() {
    find_values();
    for (const Step& step : function_.steps) find_plus(step);
    for (StepId i = function_.steps.next(); i-- > 0;)
      if (auto* nest = std::get_if<Nest>(&function_.steps[i])) rewrite(nest->statement);
  }

 private:
  // Finds temporaries that only nests write and, later, only nests read. As steps are rewritten
  // from the last to the first, the needs of all readers are known before a writer is rewritten.
  void find_values() {
    constexpr StepId kNever(static_cast<size_t>(-1));
    Table<ValueId, StepId> first_read(function_.values.size(), kNever);
    std::vector<bool> known(function_.values.size(), true);
    for (const StepId i : function_.steps.ids()) {
      const Step& step = function_.steps[i];
      const bool nest = std::holds_alternative<Nest>(step);
      for (const ValueId value : reads(step)) {
        first_read[value] = std::min(first_read[value], i);
        known[value] = known[value] && nest;
      }
      for (const ValueId value : writes(step))
        known[value] = known[value] && nest && first_read[value] == kNever;
    }
    for (const ValueId value : function_.values.ids())
      if (known[value] && function_.values[value].role == Role::temporary) {
        needs_[value] = {};
        plus_[value] = is_plain_float(function_.values[value].type.dtype);
      }
  }

  // Ignores stores that add: whatever is added to a value that is never -0, the sum is never -0.
  void find_plus(const Step& step) {
    const auto* nest = std::get_if<Nest>(&step);
    if (nest == nullptr) return;
    enter(nest->statement);
    for (const Store& store : nest->statement.stores)
      if (!store.add && plus_[store.result])
        plus_[store.result] = is_whole(store) && is_plus(store.value);
  }

  // True if the value is stored without a conversion.
  bool is_whole(const Store& store) const {
    return store.value.dtype() == function_.values[value_of(store)].type.dtype;
  }

  void enter(const Statement& statement) {
    known_plus_ = {};
    sums_from_plus_ = fold_function(statement) == ScalarFunction::add &&
                      is_plain_float(statement.init[0].dtype()) &&
                      statement.body[0].dtype() == statement.init[0].dtype() &&
                      is_plus(statement.init[0]);
  }

  // ---- expressions that are never -0 ------------------------------------------------------------

  bool is_plus(const Expr& root) {
    for (const Expr& part : composit::parts_of({root}))
      if (!known_plus_.contains(part.hash())) known_plus_.insert(part.hash(), part_is_plus(part));
    return *known_plus_.find(root.hash());
  }

  bool part_is_plus(const Expr& x) const {
    if (!is_plain_float(x.dtype())) return false;
    if (x.kind() == ExprKind::literal) return !is_negative_zero(x);
    if (x.kind() == ExprKind::load) return plus_[x.number()];
    if (x.kind() == ExprKind::accumulator) return sums_from_plus_;
    return x.kind() == ExprKind::call && call_is_plus(x);
  }

  bool call_is_plus(const Expr& x) const {
    const auto plus = [&](size_t i) { return *known_plus_.find(x[i].hash()); };
    switch (x.function()) {
      case ScalarFunction::add:  // only -0 + -0 is -0
        return plus(0) || plus(1);
      case ScalarFunction::sub:
      case ScalarFunction::sqrt:
        return plus(0);
      case ScalarFunction::mul:
        return x[0].same(x[1]);
      case ScalarFunction::abs:
      case ScalarFunction::exp:
        return true;
      case ScalarFunction::min:
      case ScalarFunction::max:
        return plus(0) && plus(1);
      case ScalarFunction::select:
        return plus(1) && plus(2);
      case ScalarFunction::cast:  // a narrowing one may round to -0
        return !composit::is_floating_point(x[0].dtype())
                   ? !composit::is_complex(x[0].dtype())
                   : composit::item_size(x[0].dtype()) <= composit::item_size(x.dtype()) && plus(0);
      default:
        return false;
    }
  }

  // ---- what users need --------------------------------------------------------------------------

  void rewrite(Statement& statement) {
    enter(statement);
    std::vector<Expr> values, others = {statement.domain};
    std::vector<Need> needs;
    for (const Store& store : statement.stores) {
      values.push_back(store.value);
      needs.push_back(need_of(store));
      others.insert(others.end(), store.at.begin(), store.at.end());
    }
    of_accumulator_ = {};
    values = rewritten(values, needs);
    for (size_t i = 0; i < values.size(); ++i) statement.stores[i].value = values[i];
    // A sum that starts from a value that is never -0 stays so, whatever is added.
    const bool sum = fold_function(statement) == ScalarFunction::add;
    const Need of_body = sums_from_plus_ || (sum && !of_accumulator_.any()) ? Need() : kSign;
    others.insert(others.end(), statement.init.begin(), statement.init.end());
    others.insert(others.end(), statement.combine.begin(), statement.combine.end());
    statement.body = rewritten(statement.body, std::vector<Need>(statement.body.size(), of_body));
    std::erase_if(others, [](const Expr& x) { return !x.defined(); });
    rewritten(others, std::vector<Need>(others.size(), kSign));
  }

  Need need_of(const Store& store) const {
    if (!is_whole(store)) return kSign;
    return store.add && plus_[store.result] ? Need() : needs_[store.result];
  }

  // Drops the zeros from `roots` that `needs` allow; notes what is needed of the values they load.
  std::vector<Expr> rewritten(std::vector<Expr> roots, const std::vector<Need>& needs) {
    asked_ = {};
    for (size_t i = 0; i < roots.size(); ++i) asked_[roots[i].hash()] |= needs[i];
    const std::vector<Expr> order = composit::parts_of(roots);
    composit::FlatMap<Hash, Expr> now;  // by part: what it becomes
    bool changes = false;
    for (size_t i = order.size(); i-- > 0;) {
      const Expr& x = order[i];
      const Need need = asked_[x.hash()];
      if (const Expr kept = without_zero(x, need); kept.defined()) {
        changes = now.insert(x.hash(), kept);
        ask(kept, need.any() ? kPlus : Need());
      } else {
        hand_down(x, need);
      }
    }
    if (!changes) return roots;
    for (const Expr& x : order) {
      const Expr* kept = now.find(x.hash());
      if (kept != nullptr) {
        now[x.hash()] = *now.find(kept->hash());
        continue;
      }
      std::vector<Expr> arguments;
      for (const Expr& argument : x.arguments()) arguments.push_back(*now.find(argument.hash()));
      now.insert(x.hash(), arguments.empty() ? x : x.with_arguments(std::move(arguments)));
    }
    for (Expr& root : roots) root = *now.find(root.hash());
    return roots;
  }

  // The x of x + 0 if the addition may be dropped; else undefined.
  Expr without_zero(const Expr& sum, const Need& need) {
    const Expr x = beside_zero(sum);
    return x.defined() && (!need.any() || is_plus(x)) ? x : Expr();
  }

  void ask(const Expr& x, const Need& need) { asked_[x.hash()] |= need; }

  // Notes what the arguments of `x` have to keep for `x` to keep what is needed of it.
  void hand_down(const Expr& x, const Need& need) {
    if (x.kind() == ExprKind::load) needs_[x.number()] |= need;
    if (x.kind() == ExprKind::accumulator) of_accumulator_ |= need;
    if (x.kind() == ExprKind::call && loses_signs(x)) return;
    const bool float_call = x.kind() == ExprKind::call && is_plain_float(x.dtype());
    if (float_call && ask_each(x, need)) return;
    for (const Expr& argument : x.arguments())
      ask(argument, float_call && passes_signs(x) ? need : kSign);
  }

  static bool loses_signs(const Expr& x) {
    if (is_comparison(x)) return true;
    switch (x.function()) {
      case ScalarFunction::abs:
      case ScalarFunction::exp:
      case ScalarFunction::cos:
        return is_plain_float(x.dtype());
      case ScalarFunction::mul:
        return is_plain_float(x.dtype()) && x[0].same(x[1]);
      default:
        return false;
    }
  }

  // True if the sign of a zero argument affects nothing but the sign of a zero result.
  static bool passes_signs(const Expr& x) {
    switch (x.function()) {
      case ScalarFunction::add:
      case ScalarFunction::sub:
      case ScalarFunction::mul:
      case ScalarFunction::neg:
      case ScalarFunction::sqrt:
      case ScalarFunction::sin:
      case ScalarFunction::min:
      case ScalarFunction::max:
      case ScalarFunction::select:
        return true;
      case ScalarFunction::cast:
        return is_plain_float(x[0].dtype());
      default:
        return false;
    }
  }

  // Handles functions that need different things of each argument: beside a term that is never -0,
  // the sign of the other term's zero is lost; x / 0 is an infinity with the sign of that 0. False
  // for other functions.
  bool ask_each(const Expr& x, const Need& need) {
    const bool sum = x.is(ScalarFunction::add), difference = x.is(ScalarFunction::sub);
    if (x.is(ScalarFunction::div)) {
      ask(x[0], need);
      ask(x[1], kSign);
      return true;
    }
    if (!need.any() || !(sum || difference)) return false;
    if (sum && is_plus(x[1])) {
      ask(x[1], kPlus);
      return true;
    }
    if (!is_plus(x[0])) return false;
    ask(x[0], kPlus);
    return true;
  }

  Routine& function_;
  std::vector<bool> plus_;   // by value: true if none of its elements is -0
  std::vector<Need> needs_;  // by value
  // State for the current statement.
  composit::FlatMap<Hash, bool> known_plus_;
  composit::FlatMap<Hash, Need> asked_;
  bool sums_from_plus_ = false;
  Need of_accumulator_;
};

}  // namespace

Program drop_zero_terms(Program program) {
  expect_bound("drop_zero_terms", program);
  for (Routine& function : program.functions) SignedZeroRewriter(function).run();
  return program;
}

}  // namespace flashlight::loops
