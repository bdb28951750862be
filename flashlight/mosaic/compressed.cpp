#include "flashlight/mosaic/compressed.h"

#include <algorithm>
#include <numeric>

#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/layout.h"

namespace flashlight::mosaic {
namespace {

using composit::Affine;
using composit::DType;
using composit::Expr;
using composit::ExprKind;
using composit::Function;
using composit::IndexAnalysis;
using composit::Range;
using loops::Statement;

bool is_float(DType dtype) { return dtype == DType::float32 || composit::is_half(dtype); }

bool is_integer(DType dtype) {
  return dtype == DType::int8 || dtype == DType::uint8 || dtype == DType::int16 ||
         dtype == DType::int32 || dtype == DType::int64;
}

// x without casts between floats of at most 32 bits.
Expr without_float_casts(Expr x) {
  while (x.is(Function::cast) && is_float(x.dtype()) && is_float(x[0].dtype())) x = x[0];
  return x;
}

// ---- integers -----------------------------------------------------------------------------------

std::optional<int64_t> integer_of(const Expr& x) {
  if (x.kind() != ExprKind::literal) return std::nullopt;
  if (const auto* number = std::get_if<int64_t>(&x.value())) return *number;
  return std::nullopt;
}

// The integers that expressions of a routine can be.
class Ranges {
 public:
  explicit Ranges(const loops::Routine& routine) : routine_(routine) {}

  // Nothing if that is not known, or x's dtype may wrap around.
  std::optional<Range> of(const Expr& x) const {
    std::optional<Range> range;
    if (x.kind() == ExprKind::load) range = of_load(x);
    if (const auto number = integer_of(x)) range = Range{*number, *number};
    if (x.kind() == ExprKind::call) range = of_call(x);
    if (!range) return std::nullopt;
    const bool fits = x.dtype() == DType::int8    ? range->inside(-128, 127)
                      : x.dtype() == DType::uint8 ? range->inside(0, 255)
                                                  : range->inside(-32768, 32767);
    return fits ? range : std::nullopt;
  }

 private:
  // What the only step that writes the value stores, or all that its dtype has.
  std::optional<Range> of_load(const Expr& x) const {
    if (x.dtype() != DType::int8 && x.dtype() != DType::uint8) return std::nullopt;
    const loops::Nest* writer = nullptr;
    for (const loops::Step& step : routine_.steps) {
      if (!loops::contains(loops::writes(step), value_of(x))) continue;
      const auto* nest = std::get_if<loops::Nest>(&step);
      const bool is_plain = writer == nullptr && nest != nullptr && nest->statement.init.empty() &&
                            nest->statement.stores.size() == 1 && !nest->statement.stores[0].add;
      writer = is_plain ? nest : nullptr;
      if (!is_plain) break;
    }
    if (writer != nullptr)
      if (const auto stored = of(writer->statement.stores[0].value)) return stored;
    return x.dtype() == DType::int8 ? Range{-128, 127} : Range{0, 255};
  }

  std::optional<Range> of_bits(const Expr& x, const Range& left) const {
    const std::optional<int64_t> right = integer_of(x[1]);
    if (x.is(Function::shift_right) && left.low >= 0 && !right) return Range{0, left.high};
    if (!right || *right < 0) return std::nullopt;
    if (x.is(Function::bitwise_and)) return Range{0, *right};
    if (left.low < 0) return std::nullopt;
    if (x.is(Function::shift_right))
      return *right < 63 ? std::optional(Range{left.low >> *right, left.high >> *right})
                         : std::nullopt;
    if (x.is(Function::shift_left))
      return *right < 16 ? std::optional(Range{left.low << *right, left.high << *right})
                         : std::nullopt;
    // Of numbers below a power of 2.
    int64_t mask = 1;
    while (mask <= std::max(left.high, *right)) mask *= 2;
    return Range{0, mask - 1};
  }

  std::optional<Range> of_call(const Expr& x) const {
    const bool selects = x.is(Function::select);
    const std::optional<Range> left = of(x[selects ? 1 : 0]);
    if (!left) return std::nullopt;
    switch (x.function()) {
      case Function::cast:
        return is_integer(x.dtype()) ? left : std::nullopt;
      case Function::bitwise_and:
      case Function::bitwise_xor:
      case Function::bitwise_or:
      case Function::shift_right:
      case Function::shift_left:
        return of_bits(x, *left);
      default:
        break;
    }
    if (x.arguments().size() < 2) return std::nullopt;
    const std::optional<Range> right = of(x[selects ? 2 : 1]);
    if (!right) return std::nullopt;
    if (selects) return Range{std::min(left->low, right->low), std::max(left->high, right->high)};
    if (x.is(Function::add)) return Range{left->low + right->low, left->high + right->high};
    if (x.is(Function::sub)) return Range{left->low - right->high, left->high - right->low};
    return std::nullopt;
  }

  const loops::Routine& routine_;
};

// ---- which part of a sum an axis counts ---------------------------------------------------------

// Where element (column, term) of the packed side is in memory, and what the axes of the statement
// that writes it count.
class Places {
 public:
  Places(const Product& product, const Statement& statement, const Affine& store)
      : columns_(product.column_count()),
        terms_(product.size(product.terms)),
        column_stride_(product.right_at.coefficients[*product.columns]),
        term_stride_(product.terms.empty() ? 1 : product.right_at.coefficients[product.terms[0]]) {
    for (const AxisId axis : loops::axes_of(statement))
      axes_.push_back({store.coefficients[axis], statement.axes[axis].extent});
  }

  // True if each element is written once, columns and terms being all there is.
  bool are_dense() const {
    const bool rows = term_stride_ == 1 && column_stride_ == terms_;
    const bool columns = column_stride_ == 1 && term_stride_ == columns_;
    if (!rows && !columns && columns_ != 1 && terms_ != 1) return false;
    std::vector<Place> sorted(axes_.begin(), axes_.end());
    std::erase_if(sorted, [](const Place& one) { return one.extent == 1; });
    std::sort(sorted.begin(), sorted.end(),
              [](const Place& a, const Place& b) { return a.stride < b.stride; });
    int64_t size = 1;
    for (const Place& one : sorted) {
      if (one.stride != size) return false;
      size *= one.extent;
    }
    if (size != columns_ * terms_) return false;
    return std::all_of(sorted.begin(), sorted.end(),
                       [&](const Place& one) { return counts_terms(one) || counts_columns(one); });
  }

  // Neighbouring terms that the axis does not tell apart; 0 if it counts columns.
  int64_t terms_within(AxisId axis) const {
    const Place& one = axes_[axis];
    return one.extent > 1 && counts_terms(one) ? one.stride / term_stride_ : 0;
  }

  // The axis at this column and term.
  Expr at(AxisId axis, const Expr& column, const Expr& term) const {
    const Place& one = axes_[axis];
    if (one.extent == 1) return Expr(int64_t{0});
    const bool of_terms = counts_terms(one);
    const int64_t step = one.stride / (of_terms ? term_stride_ : column_stride_);
    const Expr quotient = floor_divide(of_terms ? term : column, Expr(step));
    return remainder(quotient, Expr(one.extent));
  }

 private:
  struct Place {
    int64_t stride, extent;
  };
  bool counts(const Place& one, int64_t stride, int64_t extent) const {
    return one.stride % stride == 0 && one.stride / stride * one.extent <= extent &&
           extent % (one.stride / stride * one.extent) == 0;
  }
  bool counts_terms(const Place& one) const {
    return one.stride >= term_stride_ && counts(one, term_stride_, terms_);
  }
  bool counts_columns(const Place& one) const {
    return one.stride >= column_stride_ && counts(one, column_stride_, columns_);
  }

  int64_t columns_, terms_, column_stride_, term_stride_;
  Table<AxisId, Place> axes_;
};

// Terms that share a value of x: all that no axis in it tells apart.
class Groups {
 public:
  Groups(const Places& places, int64_t terms) : places_(places), size_(terms) {}

  void add(const Expr& x) {
    if (x.kind() == ExprKind::axis) return add_axis(axis_of(x), 1);
    const std::optional<int64_t> divisor =
        x.is(Function::floor_divide) ? integer_of(x[1]) : std::nullopt;
    if (divisor && *divisor > 0 && x[0].kind() == ExprKind::axis)
      return add_axis(axis_of(x[0]), *divisor);
    for (const Expr& argument : x.arguments()) add(argument);
  }
  int64_t size() const { return size_; }

 private:
  void add_axis(AxisId axis, int64_t divisor) {
    const int64_t within = places_.terms_within(axis);
    if (within > 0) size_ = std::gcd(size_, within * divisor);
  }
  const Places& places_;
  int64_t size_;
};

// ---- the weight ---------------------------------------------------------------------------------

// scale * code + offset.
struct Parts {
  Expr code, scale, offset;
};

// Integer casts do not change an integer whose range is known.
Expr without_integer_casts(Expr x) {
  while (x.is(Function::cast) && is_integer(x.dtype()) && is_integer(x[0].dtype())) x = x[0];
  return x;
}

// Reads numbers as scale * code + offset.
class Reader {
 public:
  explicit Reader(const loops::Routine& routine) : ranges_(routine) {}

  Range range(const Expr& code) const { return *ranges_.of(code); }

  // The ways to read x, any integer in it being the code.
  std::vector<Parts> parts_of(const Expr& given) const {
    const Expr x = without_float_casts(given);
    if (x.is(Function::cast) && is_float(x.dtype()) && is_integer(x[0].dtype()))
      return of_integer(x[0]);
    std::vector<Parts> all;
    const bool adds = x.is(Function::add), subtracts = x.is(Function::sub);
    if (!is_float(x.dtype()) || !(adds || subtracts || x.is(Function::mul))) return all;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      if (subtracts && side == 1) break;
      const Expr other = composit::cast(x[1 - side], DType::float32);
      for (Parts parts : parts_of(x[side])) {
        if (adds || subtracts) {
          const Expr by = subtracts ? -other : other;
          parts.offset = parts.offset.defined() ? parts.offset + by : by;
        } else {
          parts.scale = parts.scale * other;
          if (parts.offset.defined()) parts.offset = parts.offset * other;
        }
        all.push_back(std::move(parts));
      }
    }
    return all;
  }

 private:
  // An integer is the code, or one less a zero point. Zero points of 32 bits are so small that the
  // difference does not wrap around.
  std::vector<Parts> of_integer(const Expr& x) const {
    std::vector<Parts> all;
    if (ranges_.of(x)) all.push_back({x, Expr(1.0), Expr()});
    const Expr difference = without_integer_casts(x);
    if (!difference.is(Function::sub) || !ranges_.of(difference[0])) return all;
    // A cast of the difference may wrap around, unless its range is known.
    const bool is_exact =
        ranges_.of(x) ||
        (x.is(Function::sub) && (x.dtype() == DType::int32 || x.dtype() == DType::int64));
    if (is_exact)
      all.push_back({difference[0], Expr(1.0), -composit::cast(difference[1], DType::float32)});
    return all;
  }

  Ranges ranges_;
};

// Groups that share a scale and are not longer than sums are taken in a row.
int64_t chunk_of(int64_t group) {
  constexpr int64_t kMost = 768, kWord = 8;
  if (group <= kMost) return group;
  for (int64_t chunk = kMost; chunk >= 64; chunk -= kWord)
    if (group % chunk == 0) return chunk;
  return group;
}

class Recogniser {
 public:
  Recogniser(const loops::Routine& routine, const loops::Nest& nest, const Product& product)
      : routine_(routine), product_(product), statement_(nest.statement), reader_(routine) {}

  std::optional<CompressedWeight> run() {
    if (product_.accumulator != DType::float32 || product_.depthwise || !product_.batch.empty() ||
        !product_.columns || product_.terms.size() > 1 || product_.right_at.constant != 0 ||
        !stores_elements(statement_))
      return std::nullopt;
    const composit::Store& store = statement_.stores[0];
    IndexAnalysis analysis(statement_.axes);
    const auto at = analysis.affine(flat_index(store.at, routine_.values[value_of(store)].type));
    if (!at || at->constant != 0) return std::nullopt;
    const Places places(product_, statement_, *at);
    if (!places.are_dense()) return std::nullopt;
    std::optional<CompressedWeight> best;
    for (const Parts& parts : reader_.parts_of(store.value)) {
      auto one = weight_of(parts, places);
      if (one && (!best || bits_of(*one) < bits_of(*best))) best = std::move(one);
    }
    return best;
  }

 private:
  static bool stores_elements(const Statement& statement) {
    return statement.init.empty() && !statement.domain.defined() && statement.stores.size() == 1 &&
           !statement.stores[0].add && loops::parallel_axes(statement) == statement.axes.size();
  }
  // Of a weight, in memory.
  static double bits_of(const CompressedWeight& weight) {
    const double scale = 8.0 * static_cast<double>(composit::item_size(weight.scale_dtype));
    return weight.bits + scale * (weight.has_offsets ? 2 : 1) / static_cast<double>(weight.group);
  }

  std::optional<CompressedWeight> weight_of(Parts parts, const Places& places) {
    CompressedWeight weight;
    const Range range = reader_.range(parts.code);
    // Codes are signed: of those that are not, half of the range is in the offset.
    const int64_t middle = range.low >= 0 && range.high > 127                     ? 128
                           : range.low >= 0 && range.high > 7 && range.high <= 15 ? 8
                                                                                  : 0;
    if (middle != 0) {
      const Expr moved = parts.scale * composit::cast(Expr(middle), DType::float32);
      parts.offset = parts.offset.defined() ? parts.offset + moved : moved;
      parts.code = composit::cast(parts.code, DType::int32) - Expr(middle);
    }
    const int64_t low = range.low - middle, high = range.high - middle;
    if (low < -128 || high > 127) return std::nullopt;
    weight.bits = low >= -8 && high <= 7 ? 4 : 8;
    const int64_t terms = product_.size(product_.terms);
    Groups groups(places, terms);
    groups.add(parts.scale);
    if (parts.offset.defined()) groups.add(parts.offset);
    constexpr int64_t kWord = 8;
    if (weight.bits == 4 && groups.size() % kWord != 0) weight.bits = 8;
    constexpr int64_t kLeast = 16;
    if (groups.size() < std::min(kLeast, terms)) return std::nullopt;
    // Pairs of 16 bits do not reach over the end of a group.
    const bool has_pairs = product_.element == DType::bfloat16;
    if (groups.size() % 2 != 0 && has_pairs) return std::nullopt;
    weight.group = chunk_of(groups.size());
    weight.column_stride = product_.right_at.coefficients[*product_.columns];
    weight.term_stride =
        product_.terms.empty() ? 1 : product_.right_at.coefficients[product_.terms[0]];
    weight.has_offsets = parts.offset.defined();
    weight.scale_dtype = scale_dtype(parts);
    add_statements(parts, places, weight);
    return weight;
  }

  // Scales that are numbers of 16 bits stay so.
  static DType scale_dtype(const Parts& parts) {
    const Expr scale = without_float_casts(parts.scale);
    const bool is_half = scale.kind() == ExprKind::load && composit::is_half(scale.dtype());
    return is_half && !parts.offset.defined() ? scale.dtype() : DType::float32;
  }

  void add_statements(const Parts& parts, const Places& places, CompressedWeight& weight) const {
    const composit::Store& store = statement_.stores[0];
    const Expr index = flat_index(store.at, routine_.values[value_of(store)].type);
    const Expr code = without_integer_casts(parts.code);
    if (code.kind() == ExprKind::load && code.dtype() == DType::int8) {
      const Expr read = flat_index(code.arguments(), routine_.values[value_of(code)].type);
      IndexAnalysis analysis(statement_.axes);
      const auto a = analysis.affine(read), b = analysis.affine(index);
      if (a && b && *a == *b) weight.stored_codes = value_of(code);
    }
    if (!weight.stored_codes) {
      weight.codes = statement_;
      weight.codes.stores = {{0, {index}, composit::cast(parts.code, DType::int8)}};
    }
    const auto per_group = [&](const Expr& x, size_t value) {
      return of_groups(composit::cast(x, weight.scale_dtype), places, weight, value);
    };
    weight.scales = per_group(parts.scale, 1);
    if (weight.has_offsets) weight.offsets = per_group(parts.offset, 1);
  }

  // [column][group]: x at the first term of the group.
  Statement of_groups(const Expr& x, const Places& places, const CompressedWeight& weight,
                      size_t value) const {
    const int64_t groups = product_.size(product_.terms) / weight.group;
    const Expr column = Expr::axis(0), group = Expr::axis(1);
    Statement now;
    now.axes = {{"", product_.column_count()}, {"", groups}};
    const Expr moved = composit::replace(x, [&](const Expr& part) {
      return part.kind() == ExprKind::axis
                 ? places.at(axis_of(part), column, group * Expr(weight.group))
                 : Expr();
    });
    now.stores = {{value, {column * Expr(groups) + group}, moved}};
    return loops::with_simple_indices(std::move(now));
  }

  const loops::Routine& routine_;
  const Product& product_;
  const Statement& statement_;
  const Reader reader_;
};

}  // namespace

std::optional<CompressedWeight> compressed_weight(const loops::Routine& routine,
                                                  const loops::Nest& nest, const Product& product) {
  return Recogniser(routine, nest, product).run();
}

}  // namespace flashlight::mosaic
