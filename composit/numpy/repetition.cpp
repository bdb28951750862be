// Functions of composit/numpy/shape.h that repeat, turn and pad: which elements stand where is
// known from the shapes, so most of them take elements by constant places.
#include <algorithm>
#include <numeric>

#include "composit/ir/error.h"
#include "composit/numpy/creation.h"
#include "composit/numpy/indexing.h"
#include "composit/numpy/result_type.h"
#include "composit/numpy/shape.h"

namespace composit::numpy {

NdArray tile(const NdArray& x, const Ints& repetitions) {
  for (int64_t n : repetitions)
    if (n < 0) refuse("tile", "expected numbers of at least 0, received " + str(repetitions));
  return apply_one("aten::tile", {x, repetitions});
}

NdArray detail::repeat(const NdArray& x, int64_t repeats, std::optional<int64_t> axis) {
  const NdArray y = axis ? x : ravel(x);
  const int64_t place = axis ? axis_of_rank(*axis, x.ndim(), "repeat") : 0;
  return numpy::repeat(y, Ints(static_cast<size_t>(y.size(place)), repeats), place);
}
NdArray repeat(const NdArray& x, const Ints& repeats, std::optional<int64_t> axis) {
  if (!axis) return repeat(ravel(x), repeats, 0);
  const int64_t place = axis_of_rank(*axis, x.ndim(), "repeat");
  if (static_cast<int64_t>(repeats.size()) != x.size(place))
    refuse("repeat", "expected a number for each of " + std::to_string(x.size(place)) +
                         " places, received " + std::to_string(repeats.size()));
  Ints from;
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0)
      refuse("repeat", "expected numbers of at least 0, received " + std::to_string(repeats[i]));
    from.insert(from.end(), static_cast<size_t>(repeats[i]), static_cast<int64_t>(i));
  }
  return take(x, asarray(from), place);
}

NdArray append(const NdArray& x, const NdArray& values, std::optional<int64_t> axis) {
  return concatenate({x, values}, axis);
}
NdArray delete_(const NdArray& x, const Ints& places, std::optional<int64_t> axis) {
  if (!axis) return delete_(ravel(x), places, 0);
  const int64_t along = axis_of_rank(*axis, x.ndim(), "delete"), size = x.size(along);
  std::vector<bool> stays(static_cast<size_t>(size), true);
  for (int64_t place : places) {
    if (place < -size || place >= size)
      refuse("delete", "expected an index in [" + std::to_string(-size) + ", " +
                           std::to_string(size) + "), received " + std::to_string(place));
    stays[static_cast<size_t>(place < 0 ? place + size : place)] = false;
  }
  Ints from;
  for (int64_t place = 0; place < size; ++place)
    if (stays[static_cast<size_t>(place)]) from.push_back(place);
  return take(x, asarray(from), along);
}
NdArray insert(const NdArray& x, int64_t place, const Operand& values,
               std::optional<int64_t> axis) {
  if (!axis) return insert(ravel(x), place, values, 0);
  const int64_t along = axis_of_rank(*axis, x.ndim(), "insert"), size = x.size(along);
  if (place < -size || place > size)
    refuse("insert", "expected a place in [" + std::to_string(-size) + ", " + std::to_string(size) +
                         "], received " + std::to_string(place));
  Ints one = x.shape();
  one[static_cast<size_t>(along)] = 1;
  const NdArrays parts = split(x, Ints{place}, along);
  const NdArray added = broadcast_to(as_array(values, x.dtype()), one);
  return concatenate({parts[0], added, parts[1]}, along);
}

NdArray flip(const NdArray& x, const Axes& axis) {
  const Ints axes = axis.of_rank(x.ndim(), "flip");
  return axes.empty() ? x : NdArray(composit::flip(x, axes));
}
NdArray fliplr(const NdArray& x) { return flip(x, 1); }
NdArray flipud(const NdArray& x) { return flip(x, 0); }

NdArray rot90(const NdArray& x, int64_t k, std::pair<int64_t, int64_t> axes) {
  const Ints both = Axes({axes.first, axes.second}).of_rank(x.ndim(), "rot90");
  return apply_one("aten::rot90", {x, k, both});
}

NdArray roll(const NdArray& x, int64_t shift, const Axes& axis) {
  if (axis.is_none()) return reshape(roll(ravel(x), Ints{shift}, 0), x.shape());
  return roll(x, Ints(static_cast<size_t>(axis.count()), shift), axis);
}
NdArray roll(const NdArray& x, const Ints& shift, const Axes& axis) {
  const Ints axes = axis.of_rank(x.ndim(), "roll");
  if (axes.size() == 1)
    return apply_one("aten::roll",
                     {x, Ints{std::accumulate(shift.begin(), shift.end(), int64_t{0})}, axes});
  if (axes.size() != shift.size())
    refuse("roll", "expected a shift per axis, received " + str(shift) + " for axes " + str(axes));
  return axes.empty() ? x : NdArray(apply_one("aten::roll", {x, shift, axes}));
}

namespace {

int64_t modulo(int64_t a, int64_t n) { return ((a % n) + n) % n; }

// The index of the element that `place` shows. Both count from the first of `size` elements; a
// place beyond these shows another one of them.
int64_t source(int64_t place, int64_t size, std::string_view mode) {
  if (mode == "edge") return std::clamp<int64_t>(place, 0, size - 1);
  if (mode == "wrap") return modulo(place, size);
  const bool twice = mode == "symmetric";  // whether the edges are repeated
  const int64_t period = twice ? 2 * size : std::max<int64_t>(2 * size - 2, 1);
  const int64_t within = modulo(place, period);
  return within < size ? within : (twice ? period - 1 : period) - within;
}

NdArray padded_axis(const NdArray& x, int64_t axis, std::pair<int64_t, int64_t> width,
                    std::string_view mode) {
  if (width == std::pair<int64_t, int64_t>{0, 0}) return x;
  const int64_t size = x.size(axis);
  if (size == 0) refuse("pad", "expected elements along axis " + std::to_string(axis));
  Ints from;
  for (int64_t place = -width.first; place < size + width.second; ++place)
    from.push_back(source(place, size, mode));
  return take(x, asarray(from), axis);
}

NdArray padded_with(const NdArray& x, const PadWidth& width, const Operand& value) {
  Ints widths;
  for (auto axis = width.rbegin(); axis != width.rend(); ++axis)
    widths.insert(widths.end(), {axis->first, axis->second});
  if (value.is_number())
    return apply_one("aten::constant_pad_nd", {x, widths, Scalar(value.number())});
  const NdArray inside = composit::full(x.shape(), true, DType::bool_);
  return composit::where(padded_with(inside, width, false), padded_with(x, width, 0),
                         as_array(value, x.dtype()));
}

}  // namespace

NdArray pad(const NdArray& x, const PadWidth& width, std::string_view mode,
            const Operand& constant_values) {
  if (static_cast<int64_t>(width.size()) != x.ndim())
    refuse("pad", "expected widths for " + std::to_string(x.ndim()) + " axes, received " +
                      std::to_string(width.size()));
  for (const auto& [before, after] : width)
    if (before < 0 || after < 0) refuse("pad", "expected widths of at least 0");
  if (mode == "constant") return padded_with(x, width, constant_values);
  constexpr std::string_view modes[] = {"edge", "reflect", "symmetric", "wrap"};
  if (std::find(std::begin(modes), std::end(modes), mode) == std::end(modes))
    refuse("pad", "expected mode constant, edge, reflect, symmetric or wrap, received '" +
                      std::string(mode) + "'");
  NdArray y = x;
  for (size_t axis = 0; axis < width.size(); ++axis)
    y = padded_axis(y, static_cast<int64_t>(axis), width[axis], mode);
  return y;
}
NdArray pad(const NdArray& x, int64_t width, std::string_view mode,
            const Operand& constant_values) {
  return pad(x, PadWidth(static_cast<size_t>(x.ndim()), {width, width}), mode, constant_values);
}

}  // namespace composit::numpy
