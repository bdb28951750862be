#include "composit/interchange/onnx/sized_constants.h"

#include <algorithm>
#include <cmath>

#include "composit/ops/native.h"

namespace composit::onnx {
namespace {

using Form = SizedConstant::Form;

// Zeros of another sign differ.
bool same_number(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

bool holds_integers(const Type& type) {
  return !is_floating_point(type.dtype) && !is_complex(type.dtype) && type.dtype != DType::bool_;
}

// Where sizes of tensors are.
bool is_positive(const SizeFormula& formula) {
  switch (formula.kind()) {
    case SizeFormula::Kind::constant:
      return formula.constant() > 0;
    case SizeFormula::Kind::size:
      return true;
    case SizeFormula::Kind::add:
    case SizeFormula::Kind::multiply:
    case SizeFormula::Kind::ceil_div:
      return is_positive(formula.left()) && is_positive(formula.right());
    default:
      return false;
  }
}

class Recogniser {
 public:
  Recogniser(const std::vector<Array>& arrays, const FindFormula& find)
      : arrays_(arrays), find_(find) {}

  std::optional<SizedConstant> run() {
    const Type& first = arrays_[0].type();
    if (is_complex(first.dtype)) return std::nullopt;
    sized_.type = tensor_type(first.dtype, first.sizes);
    const bool same_sizes = std::all_of(arrays_.begin(), arrays_.end(), [&](const Array& array) {
      return array.type().sizes == first.sizes;
    });
    const bool found =
        same_sizes ? integers() || number(false) || number(true) : sizes() && (filled() || steps());
    if (!found) return std::nullopt;
    return std::move(sized_);
  }

 private:
  bool add(std::vector<SizeFormula>& formulas, const std::vector<int64_t>& series) {
    const std::optional<SizeFormula> formula = find_(series);
    if (formula) formulas.push_back(*formula);
    return formula.has_value();
  }

  bool integers() {
    constexpr int64_t kMost = 4096;  // more is data
    const Type& type = sized_.type;
    if (!holds_integers(type) || type.numel() > kMost) return false;
    std::vector<std::vector<int64_t>> lists;
    for (const Array& array : arrays_) lists.push_back(elements<int64_t>(array));
    for (size_t i = 0; i < lists[0].size(); ++i) {
      std::vector<int64_t> series;
      for (const auto& list : lists) series.push_back(list[i]);
      if (!add(sized_.integers, series)) return sized_.integers.clear(), false;
    }
    sized_.form = Form::integers;
    return true;
  }

  // One number, or one over it, that is an integer at all sizes.
  bool number(bool reciprocal) {
    if (sized_.type.numel() != 1 || !is_floating_point(sized_.type.dtype)) return false;
    std::vector<int64_t> series;
    for (const Array& array : arrays_) {
      const double given = elements<double>(array)[0];
      const double number = std::round(reciprocal ? 1 / given : given);
      constexpr double kMost = 1 << 24;  // exact in float32
      if (!(std::abs(number) <= kMost) || number == 0) return false;
      const Array again = array_of(tensor_type(sized_.type.dtype, {}),
                                   std::vector<double>{reciprocal ? 1 / number : number});
      if (elements<double>(again)[0] != given) return false;
      series.push_back(static_cast<int64_t>(number));
    }
    sized_.form = reciprocal ? Form::reciprocal : Form::number;
    return add(sized_.integers, series);
  }

  bool sizes() {
    const size_t rank = sized_.type.rank();
    for (const Array& array : arrays_)
      if (array.type().rank() != rank) return false;
    for (size_t axis = 0; axis < rank; ++axis) {
      std::vector<int64_t> series;
      for (const Array& array : arrays_) series.push_back(array.type().sizes[axis]);
      if (!add(sized_.sizes, series)) return false;
    }
    return true;
  }

  bool filled() {
    std::optional<double> value;
    for (const Array& array : arrays_)
      for (const double element : elements<double>(array)) {
        if (value && !same_number(*value, element)) return false;
        value = element;
      }
    if (!value || std::abs(*value) > 0x1p53) {
      // An integer may have more digits than a double has.
      if (!value || holds_integers(sized_.type)) return false;
    }
    sized_.form = Form::filled;
    sized_.element = array_of(tensor_type(sized_.type.dtype, {}), std::vector<double>{*value});
    return true;
  }

  // Along the only axis of more than one element.
  bool steps() {
    const Dims& sizes = sized_.type.sizes;
    const auto is_long = [](int64_t size) { return size > 1; };
    const auto found = std::find_if(sizes.begin(), sizes.end(), is_long);
    if (found == sizes.end() || std::count_if(sizes.begin(), sizes.end(), is_long) > 1)
      return false;
    sized_.axis = static_cast<size_t>(found - sizes.begin());
    const std::vector<double> some = elements<double>(arrays_[0]);
    const double first = some[0], step = some[1] - some[0];
    constexpr double kMost = 1 << 24;  // exact in float32
    for (const double number : {first, step})
      if (!(std::abs(number) <= kMost) || number != std::floor(number)) return false;
    if (step == 0) return false;
    for (const Array& array : arrays_) {
      const std::vector<double> all = elements<double>(array);
      if (array.type().sizes[sized_.axis] != array.type().numel()) return false;
      for (size_t i = 0; i < all.size(); ++i)
        if (all[i] != first + step * static_cast<double>(i) || std::abs(all[i]) > kMost)
          return false;
    }
    sized_.form = Form::steps;
    sized_.first = static_cast<int64_t>(first);
    sized_.step = static_cast<int64_t>(step);
    return true;
  }

  const std::vector<Array>& arrays_;
  const FindFormula& find_;
  SizedConstant sized_;
};

LazyTensor in_sizes(const LazyTensor& x, const Type& type, const LazyTensor& sizes,
                    std::string_view op) {
  return call(op, {x, sizes}, {}, type);
}

}  // namespace

LazyTensor SizedConstant::value(SizeNodes& nodes) const {
  if (form == Form::integers) {
    const LazyTensor list = type.rank() == 0 ? nodes.number(integers[0]) : nodes.list(integers);
    return cast_to(type.rank() < 2 ? list : reshaped(list, type.sizes), type.dtype);
  }
  if (form == Form::filled) return in_sizes(constant(element), type, nodes.list(sizes), "Expand");
  if (form == Form::steps) {
    const LazyTensor end = nodes.number(SizeFormula(first) + SizeFormula(step) * sizes[axis]);
    const LazyTensor range = call("Range",
                                  {number(static_cast<double>(first), DType::int64), end,
                                   number(static_cast<double>(step), DType::int64)},
                                  {}, tensor_type(DType::int64, {type.sizes[axis]}));
    const LazyTensor steps = cast_to(range, type.dtype);
    return type.rank() == 1 ? steps : in_sizes(steps, type, nodes.list(sizes), "Reshape");
  }
  LazyTensor number = reshaped(nodes.one(integers.at(0)), type.sizes);
  if (form == Form::reciprocal)
    number = binary("Div", onnx::number(1, DType::float64), cast_to(number, DType::float64));
  return cast_to(number, type.dtype);
}

bool SizedConstant::may_have_zeros() const {
  return form != Form::integers ||
         !std::all_of(integers.begin(), integers.end(),
                      [](const SizeFormula& formula) { return is_positive(formula); });
}

std::optional<SizedConstant> sized_constant(const std::vector<Array>& arrays,
                                            const FindFormula& find) {
  return Recogniser(arrays, find).run();
}

}  // namespace composit::onnx
