#include "flashlight/mosaic/integer_products.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "composit/op/affine.h"
#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/byte_products.h"
#include "flashlight/mosaic/sides.h"
#include "flashlight/mosaic/split_axes.h"

namespace flashlight::mosaic {
namespace {

using composit::DType;
using composit::Expr;
using composit::ExprKind;
using composit::Function;
using loops::Statement;

// More terms could sum up to 2^31 in absolute value: each is at most 255 * 128.
constexpr int64_t kMostTerms = ((int64_t{1} << 31) - 1) / (255 * 128);
// An int8 is a uint8 less this.
constexpr int64_t kShift = 128;

// (load - zero) * factor.
struct Scaled {
  Expr load;         // of bytes
  Expr zero = {};    // absent: 0
  Expr factor = {};  // absent: 1
};

class IntegerProducts {
 public:
  IntegerProducts(loops::Routine& routine, const std::function<bool(ValueId)>& is_frozen)
      : routine_(routine), is_frozen_(is_frozen), writers_(routine.values.size()) {
    for (const StepId step : routine.steps.ids())
      for (const ValueId value : loops::writes(routine.steps[step]))
        writers_[value].push_back(step);
  }

  void run() {
    Table<StepId, loops::Step> steps;
    std::vector<loops::Nest> before;
    bool has_changed = false;
    for (const StepId i : routine_.steps.ids()) {
      const auto* nest = std::get_if<loops::Nest>(&routine_.steps[i]);
      auto now = nest != nullptr ? changed(*nest, before) : std::nullopt;
      has_changed |= now.has_value();
      for (loops::Nest& one : before) steps.push_back(std::move(one));
      before.clear();
      // Others still look at the steps as they were.
      steps.push_back(now ? loops::Step(std::move(*now)) : routine_.steps[i]);
    }
    routine_.steps = std::move(steps);
    if (!has_changed) return;
    read_unsigned();
    drop_unread();
  }

 private:
  // Who else reads an int8 of which a uint8 is made reads that: where the int8 is computed element
  // by element, it need not be in memory then.
  void read_unsigned() {
    Table<StepId, loops::Step> steps;
    for (loops::Step& step : routine_.steps) {
      auto* nest = std::get_if<loops::Nest>(&step);
      if (nest == nullptr) {
        steps.push_back(std::move(step));
        continue;
      }
      const ValueId written = value_of(nest->statement.stores[0]);
      nest->statement = loops::replaced(std::move(nest->statement), [&](const Expr& part) {
        if (const Expr same = simpler(part); same.defined()) return same;
        const bool is_load = part.kind() == ExprKind::load;
        const auto shift = is_load ? shifts_.find(value_of(part)) : shifts_.end();
        return shift == shifts_.end() ? Expr() : as_signed(unsigned_.at(shift->first), part);
      });
      const auto shift = shifts_.find(written);
      steps.push_back(std::move(step));
      if (shift != shifts_.end()) steps.push_back(std::move(shift->second));
    }
    routine_.steps = std::move(steps);
  }
  // A shifted byte in a dtype that has more numbers, without a byte in between; and less a further
  // whole number, both at once: exact, since all are small.
  static Expr simpler(const Expr& x) {
    if (x.is(Function::cast) && holds_bytes(x.dtype()) && x[0].is(Function::cast) &&
        x[0].dtype() == DType::int8 && x[0][0].is(Function::bitwise_xor) &&
        x[0][0][0].kind() == ExprKind::load && composit::is_literal(x[0][0][1], kShift))
      return composit::cast(x[0][0][0], x.dtype()) - Expr::literal(kShift, x.dtype());
    const bool is_twice = x.is(Function::sub) && holds_bytes(x.dtype()) && x[0].is(Function::sub) &&
                          x[0][0].is(Function::cast) && is_byte(x[0][0][0].dtype());
    const auto a = is_twice ? whole_literal(x[0][1]) : std::nullopt,
               b = a ? whole_literal(x[1]) : std::nullopt;
    if (!b || std::abs(*a) > 255 || std::abs(*b) > 255) return {};
    return *a + *b == 0 ? x[0][0] : x[0][0] - composit::cast(Expr(*a + *b), x.dtype());
  }
  static Expr as_signed(ValueId bytes, const Expr& load) {
    const Expr byte = Expr::load(bytes, DType::uint8, load.arguments());
    return composit::cast(composit::bitwise_xor(byte, Expr::literal(kShift, DType::uint8)),
                          DType::int8);
  }

  // What made floats of the bytes has no readers any more, and would count as one of them.
  void drop_unread() {
    std::vector<bool> read(routine_.values.size(), false);
    Table<StepId, loops::Step> kept;
    for (StepId i = routine_.steps.next(); i-- > 0;) {
      loops::Step& step = routine_.steps[i];
      const ValueIds written = loops::writes(step);
      const bool is_unread = std::all_of(written.begin(), written.end(), [&](ValueId value) {
        return routine_.values[value].role == loops::Role::temporary && !read[value];
      });
      if (is_unread && std::holds_alternative<loops::Nest>(step)) continue;
      for (const ValueId value : loops::reads(step)) read[value] = true;
      kept.push_back(std::move(step));
    }
    std::reverse(kept.begin(), kept.end());
    routine_.steps = std::move(kept);
  }

  std::optional<loops::Nest> changed(const loops::Nest& nest, std::vector<loops::Nest>& before) {
    const Statement& statement = nest.statement;
    if (loops::fold_function(statement) != Function::add || statement.stores.size() != 1 ||
        statement.stores[0].add || !composit::is_literal(statement.init[0], 0))
      return std::nullopt;
    const Expr& body = statement.body[0];
    const bool is_integer = body.dtype() == DType::int32;
    if ((!is_integer && body.dtype() != DType::float32) || !body.is(Function::mul))
      return std::nullopt;
    const auto left = scaled(body[0]), right = left ? scaled(body[1]) : std::nullopt;
    if (!right) return std::nullopt;
    const bool swaps = is_weight(*left, is_integer) && !is_weight(*right, is_integer);
    const Scaled &rows = swaps ? *right : *left, &columns = swaps ? *left : *right;
    if (!is_weight(columns, is_integer) || is_frozen_(value_of(rows.load))) return std::nullopt;
    return with_bytes(nest, rows, columns, before);
  }

  // Bytes without a zero point that are packed beforehand; where the program has a product of
  // integers by itself, also in each call.
  bool is_weight(const Scaled& side, bool is_integer) const {
    const auto zero = number(side.zero);
    return side.load.dtype() == DType::int8 && zero == 0 &&
           (is_integer || is_frozen_(value_of(side.load)));
  }

  std::optional<loops::Nest> with_bytes(const loops::Nest& nest, const Scaled& rows,
                                        const Scaled& columns, std::vector<loops::Nest>& before) {
    const bool is_signed = rows.load.dtype() == DType::int8;
    const auto zero = number(rows.zero);
    ByteProduct bytes = {Expr::load(rows.load.number(), DType::uint8, rows.load.arguments()),
                         columns.load, zero.value_or(0) + (is_signed ? kShift : 0)};
    loops::Nest now = nest;
    now.recognised = nullptr;
    now.statement.init = {Expr::literal(int64_t{0}, DType::int32)};
    now.statement.body = {body_of(bytes)};
    now.statement.combine = {Expr::left(0, DType::int32) + Expr::right(0, DType::int32)};
    const auto factor = factor_of(rows, columns, now.statement);
    const Expr open_zero = zero ? Expr() : whole(rows.zero, now.statement);
    if ((!zero && !open_zero.defined()) || !factor || !is_computed_by_tiles(now.statement))
      return std::nullopt;
    const DType dtype = nest.statement.body[0].dtype();
    Expr sum = Expr::accumulator(0, DType::int32);
    if (open_zero.defined())
      sum = composit::cast(sum, DType::int64) -
            open_zero * sum_of_terms(columns.load, now.statement, before);
    sum = composit::cast(sum, dtype);
    if (factor->defined()) sum = sum * composit::cast(*factor, dtype);
    composit::Store& store = now.statement.stores[0];
    store.value = composit::replace(store.value, [&](const Expr& part) {
      return part.kind() == ExprKind::accumulator ? sum : Expr();
    });
    if (is_signed) {
      bytes.rows =
          Expr::load(as_unsigned(value_of(rows.load), before), DType::uint8, rows.load.arguments());
      now.statement.body = {body_of(bytes)};
    }
    return now;
  }

  // A zero point that is not known, as int64; absent where it may be no whole number, depends on
  // terms, or stands beside padding.
  Expr whole(Expr zero, const Statement& statement) const {
    const auto is_float_load = [](const Expr& x) {
      return x.kind() == ExprKind::load && composit::is_floating_point(x.dtype());
    };
    const auto is_wide = [](const Expr& x) {  // a cast that changes no number of 32 bits or less
      return x.is(Function::cast) && x.dtype() != DType::int16 && holds_bytes(x.dtype());
    };
    while (zero.defined() && (is_wide(zero) || is_float_load(zero)))
      zero = is_wide(zero) ? Expr(zero[0]) : definition(zero);
    if (!zero.defined() || zero.kind() != ExprKind::load || statement.domain.defined()) return {};
    const DType dtype = zero.dtype();
    const bool is_whole = dtype == DType::int32 || dtype == DType::int64;
    for (const AxisId axis : loops::axes_in(zero))
      if (statement.axes[axis].kind != composit::AxisKind::parallel) return {};
    return is_whole ? composit::cast(zero, DType::int64) : Expr();
  }

  // The sum of the terms of each column, as int64: what a zero point of rows is multiplied with.
  Expr sum_of_terms(const Expr& load, const Statement& statement,
                    std::vector<loops::Nest>& before) {
    loops::Nest nest = {{}, {"sum", "", ""}};
    std::vector<size_t> number(statement.axes.size());
    std::vector<Expr> at, places;
    composit::Dims sizes;
    const AxisIds axes = loops::axes_in(load);
    for (const AxisId axis : loops::axes_of(statement)) {
      const bool is_term = statement.axes[axis].kind != composit::AxisKind::parallel;
      if (!is_term && !loops::contains(axes, axis)) continue;
      number[axis] = nest.statement.axes.size();
      nest.statement.axes.push_back(statement.axes[axis]);
      if (is_term) continue;
      at.push_back(Expr::axis(number[axis]));
      places.push_back(Expr::axis(axis));
      sizes.push_back(statement.axes[axis].extent);
    }
    const Expr moved = composit::replace(load, [&](const Expr& part) {
      return part.kind() == ExprKind::axis ? Expr::axis(number[part.number()]) : Expr();
    });
    const ValueId sums = routine_.values.add(
        {composit::tensor_type(DType::int32, sizes), loops::Role::temporary, "sums", {}});
    nest.statement.init = statement.init;
    nest.statement.combine = statement.combine;
    nest.statement.body = {composit::cast(moved, DType::int32)};
    nest.statement.stores.push_back({sums, at, Expr::accumulator(0, DType::int32)});
    before.push_back(std::move(nest));
    return composit::cast(Expr::load(sums, DType::int32, places), DType::int64);
  }

  // Both factors; nothing where one depends on terms.
  static std::optional<Expr> factor_of(const Scaled& rows, const Scaled& columns,
                                       const Statement& statement) {
    Expr factor;
    for (const Expr& one : {rows.factor, columns.factor}) {
      for (const AxisId axis : loops::axes_in(one))
        if (statement.axes[axis].kind != composit::AxisKind::parallel) return std::nullopt;
      if (one.defined()) factor = factor.defined() ? factor * one : one;
    }
    return factor;
  }

  // A product whose domain is nothing but where its rows end, as padding has it.
  bool is_computed_by_tiles(const Statement& given) const {
    const Statement statement = with_split_axes(given);
    const auto product = byte_product_of(statement);
    const auto sides = byte_sides_of(statement);
    if (!sides || !sides->term_limits.empty() || !sides->column_limits.empty() ||
        sides->right_domain.defined() || loops::iterations(statement, sides->terms) > kMostTerms)
      return false;
    // Packing a matrix for one row takes longer than the product.
    if (sides->rows.empty() && !is_frozen_(value_of(sides->right))) return false;
    composit::IndexAnalysis analysis(statement.axes);
    for (const Expr* side : {&product->rows, &product->columns})
      for (const Expr& index : side->arguments())
        if (!analysis.affine(index)) return false;
    const std::vector<Expr> predicates = composit::conjuncts(sides->left_domain);
    return std::all_of(predicates.begin(), predicates.end(), [&](const Expr& predicate) {
      return composit::bound_of(predicate, analysis).has_value();
    });
  }

  // The same numbers as uint8, 128 larger.
  ValueId as_unsigned(ValueId value, std::vector<loops::Nest>& before) {
    const auto [known, is_new] = unsigned_.try_emplace(value);
    if (!is_new) return known->second;
    loops::Value shifted = routine_.values[value];
    shifted.type.dtype = DType::uint8;
    shifted.role = loops::Role::temporary;
    shifted.constant = {};
    known->second = routine_.values.add(std::move(shifted));
    loops::Nest nest = {{}, {"shift", "", ""}};
    if (!writers_[value].empty())
      nest.origin = loops::origin_of(routine_.steps[writers_[value][0]]);
    const composit::Dims& sizes = routine_.values[value].type.sizes;
    std::vector<Expr> at;
    for (size_t i = 0; i < sizes.size(); ++i) {
      nest.statement.axes.push_back({"", sizes[i]});
      at.push_back(Expr::axis(i));
    }
    // 128 more, modulo 256.
    const Expr byte = composit::cast(Expr::load(value, DType::int8, at), DType::uint8);
    const Expr moved = composit::bitwise_xor(byte, Expr::literal(kShift, DType::uint8));
    nest.statement.stores.push_back({known->second, at, moved});
    nest.statement = loops::simplified(std::move(nest.statement));
    if (is_elementwise(value))
      shifts_.emplace(value, std::move(nest));
    else
      before.push_back(std::move(nest));
    return known->second;
  }

  // ---- what sides are made of -------------------------------------------------------------------

  std::optional<Scaled> scaled(const Expr& x) const {
    if (x.kind() == ExprKind::load) {
      if (is_byte(x.dtype())) return Scaled{x};
      const Expr made = definition(x);
      return made.defined() ? scaled(made) : std::nullopt;
    }
    if (x.is(Function::cast)) return holds_bytes(x.dtype()) ? scaled(x[0]) : std::nullopt;
    if (x.is(Function::sub)) {
      auto inner = holds_bytes(x.dtype()) ? scaled(x[0]) : std::nullopt;
      if (!inner || inner->zero.defined() || inner->factor.defined()) return std::nullopt;
      inner->zero = x[1];
      return inner;
    }
    const bool is_product = x.is(Function::mul) && composit::is_floating_point(x.dtype()) &&
                            !composit::is_half(x.dtype());
    for (size_t i = 0; is_product && i < 2; ++i)
      if (auto inner = scaled(x[i])) {
        inner->factor = inner->factor.defined() ? inner->factor * x[1 - i] : x[1 - i];
        return inner;
      }
    return std::nullopt;
  }
  // True if the dtype has all bytes and their differences.
  static bool holds_bytes(DType dtype) {
    return dtype == DType::int16 || dtype == DType::int32 || dtype == DType::int64 ||
           dtype == DType::float32 || dtype == DType::float64;
  }

  // True for a value that one step computes element by element.
  bool is_elementwise(ValueId value) const {
    if (routine_.values[value].role != loops::Role::temporary || writers_[value].size() != 1)
      return false;
    const auto* nest = std::get_if<loops::Nest>(&routine_.steps[writers_[value][0]]);
    return nest != nullptr && loops::is_elementwise(nest->statement);
  }
  // What a load of a value that is computed element by element loads; absent for others.
  Expr definition(const Expr& load) const {
    const ValueId value = value_of(load);
    if (!is_elementwise(value)) return {};
    const auto* nest = std::get_if<loops::Nest>(&routine_.steps[writers_[value][0]]);
    const composit::Store& store = nest->statement.stores[0];
    const AxisIds axes = *loops::axes_of_dimensions(store.at);
    return composit::replace(composit::cast(store.value, load.dtype()), [&](const Expr& leaf) {
      if (leaf.kind() != ExprKind::axis) return Expr();
      const auto dimension = std::find(axes.begin(), axes.end(), axis_of(leaf)) - axes.begin();
      return load[static_cast<size_t>(dimension)];
    });
  }

  // What is found behind loads and casts; a literal is converted by casts.
  Expr resolved(const Expr& x) const {
    if (x.is(Function::cast)) return composit::cast(resolved(x[0]), x.dtype());
    const Expr made = x.kind() == ExprKind::load ? definition(x) : Expr();
    return made.defined() ? resolved(made) : x;
  }

  // The whole number that a zero point is; nothing where it is not known to be one, or no byte.
  std::optional<int64_t> number(const Expr& x) const {
    if (!x.defined()) return 0;
    return whole_literal(resolved(x));
  }
  static std::optional<int64_t> whole_literal(const Expr& x) {
    if (x.kind() != ExprKind::literal) return std::nullopt;
    const auto* whole = std::get_if<int64_t>(&x.value());
    const auto* real = std::get_if<double>(&x.value());
    if (real != nullptr && (*real != std::floor(*real) || std::abs(*real) > 255))
      return std::nullopt;
    if (whole == nullptr && real == nullptr) return std::nullopt;
    return whole != nullptr ? *whole : static_cast<int64_t>(*real);
  }

  loops::Routine& routine_;
  const std::function<bool(ValueId)>& is_frozen_;
  Table<ValueId, StepIds> writers_;
  std::map<ValueId, ValueId> unsigned_;
  std::map<ValueId, loops::Nest> shifts_;  // what makes those of values computed by elements
};

}  // namespace

loops::Program integer_products(loops::Program program,
                                const std::function<bool(ValueId value)>& is_frozen) {
  IntegerProducts(program.functions.back(), is_frozen).run();
  return program;
}

}  // namespace flashlight::mosaic
