#include "composit/numpy/indexing.h"

#include <algorithm>

#include "composit/eval/evaluate.h"
#include "composit/ir/error.h"
#include "composit/numpy/creation.h"
#include "composit/numpy/math.h"
#include "composit/numpy/result_type.h"
#include "composit/numpy/shape.h"
#include "composit/op/promotion.h"
#include "composit/ops/native.h"

namespace composit::numpy {
namespace {

// The value of a constant; an undefined array for anything else.
Array known_value(const NdArray& x) {
  const Node& node = *x.node;
  return node.op() == ops::kConstant ? node.attribute("value").as<Array>() : Array();
}

bool is_mask(const NdArray& x) { return x.dtype() == DType::bool_; }

// Keeps the axes that remain, and which of them an array of integers indexes.
class Indexer {
 public:
  Indexer(const NdArray& x, const Indices& indices) : x_(x), items_(indices.items()), rest_(x) {
    expand_ellipsis();
    expand_masks();
    has_arrays_ = std::any_of(items_.begin(), items_.end(), [](const IndexItem& item) {
      return std::holds_alternative<NdArray>(item.value());
    });
  }

  // x with `values` in the places of run().
  NdArray set(const NdArray& values) {
    const Ints chosen = Indexer(*this).run().shape();
    Ints shape = values.shape();  // axes of size 1 in front count for nothing
    while (shape.size() > chosen.size() && shape[0] == 1) shape.erase(shape.begin());
    const NdArray fitting = broadcast_to(reshape(values, shape), chosen);
    return is_view_of_slices() ? assigned(x_, 0, 0, fitting) : assigned_by_places(fitting);
  }

  NdArray run() {
    for (const IndexItem& item : items_)
      std::visit([&](const auto& v) { apply_item(v); }, item.value());
    if (std::none_of(places_.begin(), places_.end(),
                     [](const LazyTensor& t) { return t.defined(); }))
      return rest_;
    return call_as("get_item", "aten::index.Tensor", {LazyTensor(rest_), places_});
  }

 private:
  // The number of axes of x that an item indexes.
  static int64_t axes_of(const IndexItem& item) {
    if (const auto* array = std::get_if<NdArray>(&item.value()))
      return is_mask(*array) ? array->ndim() : 1;
    return std::holds_alternative<Ellipsis>(item.value()) ||
                   std::holds_alternative<None>(item.value())
               ? 0
               : 1;
  }

  // From now on there is an item for every axis.
  void expand_ellipsis() {
    const auto is_ellipsis = [](const IndexItem& item) {
      return std::holds_alternative<Ellipsis>(item.value());
    };
    int64_t used = 0;
    for (const IndexItem& item : items_) used += axes_of(item);
    if (std::count_if(items_.begin(), items_.end(), is_ellipsis) > 1)
      refuse("get_item", "expected one ellipsis at most");
    if (used > x_.ndim())
      refuse("get_item", "expected at most " + std::to_string(x_.ndim()) + " indices for shape " +
                             str(x_.shape()) + ", received " + std::to_string(used));
    auto place = std::find_if(items_.begin(), items_.end(), is_ellipsis);
    if (place != items_.end()) place = items_.erase(place);
    items_.insert(place, static_cast<size_t>(x_.ndim() - used), IndexItem(Slice{}));
  }

  // A mask stands for the places of its true elements.
  void expand_masks() {
    std::vector<IndexItem> expanded;
    int64_t axis = 0;
    for (const IndexItem& item : items_) {
      const auto* array = std::get_if<NdArray>(&item.value());
      if (array != nullptr && is_mask(*array)) {
        for (const NdArray& places : places_of(*array, axis)) expanded.emplace_back(places);
      } else {
        expanded.push_back(item);
      }
      axis += axes_of(item);
    }
    items_ = std::move(expanded);
  }
  NdArrays places_of(const NdArray& mask, int64_t axis) const {
    const Ints shape = x_.shape();
    const auto begin = shape.begin() + axis;
    if (mask.ndim() == 0 || mask.shape() != Ints(begin, begin + mask.ndim()))
      refuse("get_item", "expected a mask that fits shape " + str(shape) + ", received shape " +
                             str(mask.shape()));
    if (!known_value(mask).defined())
      refuse("get_item",
             "expected sizes that do not depend on values, received a mask that is no constant; "
             "use where or set_item");
    return nonzero(mask);
  }

  int64_t axis() const { return static_cast<int64_t>(places_.size()); }
  void keep_axis() { places_.emplace_back(); }

  void apply_item(int64_t place) {
    const int64_t size = rest_.size(axis());
    if (place < -size || place >= size)
      refuse("get_item", "expected an index in [" + std::to_string(-size) + ", " +
                             std::to_string(size) + "), received " + std::to_string(place));
    if (has_arrays_)  // NumPy takes it for an array without axes then
      places_.push_back(asarray(place));
    else
      rest_ = select_at(rest_, axis(), place);
  }
  void apply_item(const Slice& slice) {
    rest_ = sliced(rest_, axis(), slice);
    keep_axis();
  }
  void apply_item(Ellipsis) {}
  void apply_item(None) {
    rest_ = unsqueeze(rest_, axis());
    keep_axis();
  }
  void apply_item(const NdArray& places) {
    if (category(places.dtype()) != DTypeCategory::integer)
      refuse("get_item", "expected places of an integer dtype or a mask, received " +
                             std::string(name(places.dtype())));
    places_.push_back(to(places, DType::int64));
  }

  // The part of an axis that a slice chooses: `count` indices from `start` on.
  struct Range {
    int64_t start, step, count;
    bool is_all(int64_t size) const { return start == 0 && step == 1 && count == size; }
    int64_t last() const { return start + (count - 1) * step; }
  };
  static Range range_of(const Slice& slice, int64_t size) {
    const int64_t step = slice.step.value_or(1);
    if (step == 0) refuse("get_item", "expected a step other than 0");
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    const auto bound = [&](std::optional<int64_t> place, int64_t fallback) {
      if (!place) return fallback;
      return std::clamp(*place < 0 ? *place + size : *place, low, high);
    };
    const int64_t start = bound(slice.start, step > 0 ? low : high);
    const int64_t stop = bound(slice.stop, step > 0 ? high : low);
    const int64_t way = step > 0 ? stop - start : start - stop, stride = std::abs(step);
    return {start, step, way <= 0 ? 0 : (way + stride - 1) / stride};
  }
  static NdArray sliced(const NdArray& x, int64_t axis, const Slice& slice) {
    const Range range = range_of(slice, x.size(axis));
    if (range.is_all(x.size(axis))) return x;
    if (range.count == 0) return composit::slice(x, axis, 0, 0);
    if (range.step > 0) return composit::slice(x, axis, range.start, range.last() + 1, range.step);
    return composit::flip(composit::slice(x, axis, range.last(), range.start + 1, -range.step),
                          {axis});
  }

  // x with `values` where `items_` from number `item` on choose of its axes from `axis` on.
  NdArray assigned(const NdArray& x, size_t item, int64_t axis, const NdArray& values) const {
    if (item == items_.size()) return broadcast_to(values, x.shape());
    if (const auto* place = std::get_if<int64_t>(&items_[item].value())) {
      const NdArray part = assigned(select_at(x, axis, *place), item + 1, axis, values);
      return apply_one("aten::select_scatter", {x, part, axis, *place});
    }
    const Range range = range_of(std::get<Slice>(items_[item].value()), x.size(axis));
    if (range.is_all(x.size(axis))) return assigned(x, item + 1, axis + 1, values);
    const int64_t end = range.count == 0 ? range.start : range.last() + 1;
    const NdArray old = composit::slice(x, axis, range.start, end, range.step);
    const NdArray part = assigned(old, item + 1, axis + 1, values);
    return apply_one("aten::slice_scatter", {x, part, axis, range.start, end, range.step});
  }
  bool is_view_of_slices() const {
    return std::all_of(items_.begin(), items_.end(), [](const IndexItem& item) {
      const auto* slice = std::get_if<Slice>(&item.value());
      return std::holds_alternative<int64_t>(item.value()) ||
             (slice != nullptr && slice->step.value_or(1) > 0);
    });
  }
  // The index applied to the numbers of all elements tells which of them are replaced.
  NdArray assigned_by_places(const NdArray& values) const {
    Indexer numbered(reshape(arange(x_.size()), x_.shape()), items_);
    const NdArray places = numbered.run();
    return reshape(
        apply_one("aten::index_put", {LazyTensor(ravel(x_)), LazyTensors{ravel(places)},
                                      ravel(broadcast_to(values, places.shape())), false}),
        x_.shape());
  }

  NdArray x_;
  std::vector<IndexItem> items_;
  bool has_arrays_ = false;
  NdArray rest_;        // x after slices, integers and new axes
  LazyTensors places_;  // per axis of rest_ dealt with; absent: the axis stays
};

// The mask that is the only index but for what comes before it.
const NdArray* only_mask(const Indices& indices) {
  if (indices.items().size() != 1) return nullptr;
  const auto* mask = std::get_if<NdArray>(&indices.items()[0].value());
  return mask != nullptr && is_mask(*mask) && !known_value(*mask).defined() ? mask : nullptr;
}

NdArray set_where(const NdArray& x, const NdArray& mask, const NdArray& value) {
  for (int64_t axis = 0; axis < mask.ndim(); ++axis)
    if (mask.ndim() > x.ndim() || mask.size(axis) != x.size(axis))
      refuse("set_item", "expected a mask that fits shape " + str(x.shape()) + ", received shape " +
                             str(mask.shape()));
  const int64_t rest = x.ndim() - mask.ndim();
  NdArray beside = value;
  if (value.ndim() > rest) {
    if (value.ndim() > rest + 1 || value.size(0) != 1)
      refuse("set_item",
             "expected one value for all elements that the mask chooses, received "
             "shape " +
                 str(value.shape()));
    beside = squeeze(value, 0);
  }
  Ints shape = mask.shape();
  shape.resize(static_cast<size_t>(x.ndim()), 1);
  return composit::where(reshape(mask, shape), beside, x);
}

}  // namespace

NdArray get_item(const NdArray& x, const Indices& indices) { return Indexer(x, indices).run(); }

NdArray set_item(const NdArray& x, const Indices& indices, const Operand& value) {
  const NdArray values = as_array(value, x.dtype());
  if (const NdArray* mask = only_mask(indices)) return set_where(x, *mask, values);
  return Indexer(x, indices).set(values);
}

NdArray take(const NdArray& x, const NdArray& indices, std::optional<int64_t> axis,
             std::string_view mode) {
  if (!axis) return take(ravel(x), indices, 0, mode);
  if (category(indices.dtype()) != DTypeCategory::integer)
    refuse("take", "expected integers, received " + std::string(name(indices.dtype())));
  const int64_t place = axis_of_rank(*axis, x.ndim(), "take"), size = x.size(place);
  NdArray from = to(indices, DType::int64);
  if (mode == "wrap")
    from = remainder(from, size);
  else if (mode == "clip")
    from = clip(from, 0, size - 1);
  else if (mode != "raise")
    refuse("take", "expected mode raise, wrap or clip, received '" + std::string(mode) + "'");
  LazyTensors places(static_cast<size_t>(place));
  places.push_back(from);
  return call_as("take", "aten::index.Tensor", {x, places});
}

NdArray take_along_axis(const NdArray& x, const NdArray& indices, std::optional<int64_t> axis) {
  if (!axis) return take_along_axis(ravel(x), indices, 0);
  if (x.ndim() != indices.ndim())
    refuse("take_along_axis", "expected indices of " + std::to_string(x.ndim()) +
                                  " axes, received shape " + str(indices.shape()));
  return apply_one("aten::take_along_dim", {x, to(indices, DType::int64),
                                            axis_of_rank(*axis, x.ndim(), "take_along_axis")});
}
NdArray put_along_axis(const NdArray& x, const NdArray& indices, const Operand& values,
                       int64_t axis) {
  axis = axis_of_rank(axis, x.ndim(), "put_along_axis");
  Ints shape = x.shape();
  if (x.ndim() != indices.ndim())
    refuse("put_along_axis", "expected indices of " + std::to_string(x.ndim()) +
                                 " axes, received shape " + str(indices.shape()));
  shape[static_cast<size_t>(axis)] = indices.size(axis);
  const NdArray from = to(broadcast_to(indices, shape), DType::int64);
  const NdArray places = where(from < 0, from + x.size(axis), from);
  return apply_one("aten::scatter.src",
                   {x, axis, LazyTensor(places), broadcast_to(as_array(values, x.dtype()), shape)});
}

NdArray choose(const NdArray& indices, const NdArrays& choices) {
  if (choices.empty()) refuse("choose", "expected an array to choose from, received none");
  NdArrays arrays = choices;
  arrays.push_back(indices);
  arrays = broadcast_arrays(arrays);
  const NdArray places = arrays.back();
  arrays.pop_back();
  return squeeze(take_along_axis(stack(arrays), expand_dims(places, 0), 0), 0);
}

NdArrays nonzero(const NdArray& x) {
  if (!known_value(x).defined())
    refuse("nonzero", "expected a constant: elsewhere sizes depend on values; use where");
  const auto numbers = elements<int64_t>(composit::evaluate({to(x, DType::bool_)})[0]);
  std::vector<std::vector<int64_t>> places(static_cast<size_t>(x.ndim()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 0) continue;
    auto rest = static_cast<int64_t>(i);
    for (int64_t axis = x.ndim(); axis-- > 0;) {
      places[static_cast<size_t>(axis)].push_back(rest % x.size(axis));
      rest /= x.size(axis);
    }
  }
  NdArrays result;
  for (const auto& axis : places) result.push_back(asarray(axis));
  return result;
}

NdArray unique(const NdArray& x) {
  const Array value = known_value(x);
  if (!value.defined()) refuse("unique", "expected a constant: elsewhere sizes depend on values");
  expect_real("unique", x.dtype());
  const auto distinct = [&]<class T>(std::vector<T> numbers) {
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    const Type type = tensor_type(x.dtype(), {static_cast<int64_t>(numbers.size())});
    return asarray(array_of(type, numbers));
  };
  return category(x.dtype()) == DTypeCategory::floating ? distinct(elements<double>(value))
                                                        : distinct(elements<int64_t>(value));
}

}  // namespace composit::numpy
