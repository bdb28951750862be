#include <algorithm>
#include <limits>
#include <numeric>

#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"
#include "composit/ops/native.h"

namespace composit::onnx_read {
namespace {

LazyTensors reshape_row(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  Ints sizes = call.known_ints(1);
  const bool zero_is_zero = call.version() >= 14 && call.flag("allowzero");
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < -1) call.refuse("a size is " + std::to_string(sizes[i]));
    if (sizes[i] == 0 && !zero_is_zero)
      sizes[i] = x.size(axis_of_rank(static_cast<int64_t>(i), x.rank()));
  }
  return {reshape(x, sizes)};
}

LazyTensors transpose_row(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  Ints order = call.ints("perm");
  if (!call.has("perm")) {
    order.resize(static_cast<size_t>(x.rank()));
    std::iota(order.rbegin(), order.rend(), 0);
  }
  return {permute(x, order)};
}

LazyTensors flatten(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const int64_t given = call.integer("axis", 1);
  const int64_t axis = given == x.rank() ? given : axis_of_rank(given, x.rank());
  return {joined_axes(joined_axes(x, axis, x.rank()), 0, axis)};
}

Ints wrapped_axes(Ints axes, int64_t rank) {
  for (int64_t& axis : axes) axis = axis_of_rank(axis, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    throw UserError("an axis is given twice");
  return axes;
}

LazyTensors squeeze_row(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const auto given = call.ints_of(1, "axes");
  Dims sizes;
  const Ints axes = wrapped_axes(given.value_or(Ints()), x.rank());
  for (int64_t i = 0; i < x.rank(); ++i) {
    const bool named = std::binary_search(axes.begin(), axes.end(), i);
    if (named && x.size(i) != 1) call.refuse("axis " + std::to_string(i) + " is not of size 1");
    if (!(given ? named : x.size(i) == 1)) sizes.push_back(x.size(i));
  }
  return {reshape(x, sizes)};
}

LazyTensors unsqueeze_row(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const Ints given = call.ints_of(1, "axes").value_or(Ints());
  const auto rank = x.rank() + static_cast<int64_t>(given.size());
  const Ints axes = wrapped_axes(given, rank);
  LazyTensor result = x;
  for (const int64_t axis : axes) result = unsqueeze(result, axis);
  return {result};
}

LazyTensors concat(const OperatorCall& call) {
  LazyTensors parts;
  for (size_t i = 0; i < call.size(); ++i) parts.push_back(call.operand(i));
  if (parts.empty()) call.refuse("it has no operands");
  for (const LazyTensor& part : parts)
    if (part.rank() != parts[0].rank() || part.dtype() != parts[0].dtype())
      call.refuse("its operands differ in their number of axes, or in their dtype");
  const int64_t axis = call.axis("axis", {}, parts[0]);
  // torch passes over operands without elements whatever their other sizes are.
  for (const LazyTensor& part : parts)
    for (int64_t i = 0; i < part.rank(); ++i)
      if (i != axis && part.size(i) != parts[0].size(i))
        call.refuse("its operands differ in sizes");
  return {cat(parts, axis)};
}

LazyTensors split(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const int64_t axis = call.axis("axis", 0, x);
  const auto results = static_cast<int64_t>(call.results());
  const int64_t count = call.integer("num_outputs", results);
  if (count < results || count > 65536) call.refuse("num_outputs is not the number of its results");
  Ints sizes = call.ints_of(1, "split").value_or(Ints());
  if (sizes.empty()) {  // the last one is smaller where they cannot be equal
    if (count == 0) call.refuse("it has no results");
    const int64_t each = (x.size(axis) + count - 1) / count;
    for (int64_t i = 0; i < count; ++i)
      sizes.push_back(std::max<int64_t>(0, std::min(each, x.size(axis) - i * each)));
  }
  int64_t place = 0;
  LazyTensors parts;
  for (const int64_t size : sizes) {
    if (size < 0 || size > x.size(axis) - place) call.refuse("its parts are more than there is");
    parts.push_back(slice(x, axis, place, place + size));
    place += size;
  }
  if (place != x.size(axis)) call.refuse("its parts are less than there is");
  return parts;
}

// Indices begin, begin + step, … before end, counted from the end where they are negative.
LazyTensor sliced(const LazyTensor& x, int64_t axis, int64_t begin, int64_t end, int64_t step) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const int64_t size = x.size(axis);
  if (step == 0) throw UserError("a step is 0");
  if (step == kLeast) ++step;  // past the end all the same
  const auto bound = [&](int64_t place, int64_t low, int64_t high) {
    return std::min(std::max(place < 0 ? place + size : place, low), high);
  };
  if (step > 0)
    return slice(x, axis, bound(begin, 0, size),
                 std::max(bound(begin, 0, size), bound(end, 0, size)), std::min(step, size + 1));
  // Backwards: forwards in the reversed tensor, where index i is size - 1 - i.
  const int64_t first = bound(begin, std::min<int64_t>(0, size - 1), size - 1),
                last = bound(end, -1, size - 1);
  const LazyTensor reversed = flip(x, {axis});
  const int64_t from = size - 1 - first, to = std::max(from, size - 1 - last);
  return slice(reversed, axis, from, to, std::min(-step, size + 1));
}

LazyTensors slice_row(const OperatorCall& call) {
  LazyTensor x = call.operand(0);
  const bool old = call.version() < 10;
  const Ints begins = old ? call.ints("starts") : call.known_ints(1);
  const Ints ends = old ? call.ints("ends") : call.known_ints(2);
  Ints axes(begins.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (old && call.has("axes")) axes = call.ints("axes");
  if (!old && call.optional(3)) axes = call.known_ints(3);
  Ints steps(begins.size(), 1);
  if (!old && call.optional(4)) steps = call.known_ints(4);
  if (ends.size() != begins.size() || axes.size() != begins.size() || steps.size() != begins.size())
    call.refuse("its lists differ in length");
  for (size_t i = 0; i < begins.size(); ++i)
    x = sliced(x, axis_of_rank(axes[i], x.rank()), begins[i], ends[i], steps[i]);
  return {x};
}

LazyTensors expand_row(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const Ints sizes = call.known_ints(1);
  return {expand(x, expect_sizes(broadcast(x.sizes(), sizes)))};
}

LazyTensors tile(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const Ints repeats = call.known_ints(1);
  if (repeats.size() != static_cast<size_t>(x.rank())) call.refuse("expected a number per axis");
  Ints sizes;
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0) call.refuse("a number of repeats is negative");
    sizes.push_back(product_of({x.sizes()[i], repeats[i]}));
  }
  static_cast<void>(expect_sizes(sizes));
  return {op("aten::repeat", {x, repeats})};
}

// ---- padding ------------------------------------------------------------------------------------

// Indices of `x` along an axis that a padded one takes; -1 outside.
LazyTensor padded_by_index(const LazyTensor& x, int64_t axis, int64_t before, int64_t behind,
                           const std::string& mode) {
  const int64_t size = x.size(axis);
  if (size == 0) throw UserError("nothing can be repeated of an axis of size 0");
  Ints places;
  const int64_t period = 2 * (size - 1);
  for (int64_t i = -before; i < size + behind; ++i) {
    if (mode == "edge") {
      places.push_back(std::min(std::max<int64_t>(i, 0), size - 1));
    } else if (mode == "wrap") {
      places.push_back(((i % size) + size) % size);
    } else {
      const int64_t place = period == 0 ? 0 : ((i % period) + period) % period;
      places.push_back(std::min(place, period - place));
    }
  }
  return op("aten::index_select", {x, axis, integers(places)});
}

constexpr int64_t kMostPadding = int64_t{1} << 40;

struct Pads {
  Ints before, behind;  // per axis of x; negative: taken away
};

Pads pads_of(const OperatorCall& call, const LazyTensor& x) {
  const Ints pads = call.version() < 11 ? call.ints("pads") : call.known_ints(1);
  Ints axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  if (call.optional(3)) axes = call.known_ints(3);
  if (pads.size() != 2 * axes.size()) call.refuse("expected two numbers per axis");
  Pads result{Ints(x.sizes().size(), 0), Ints(x.sizes().size(), 0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axis_of_rank(axes[i], x.rank()));
    result.before[axis] = pads[i];
    result.behind[axis] = pads[axes.size() + i];
  }
  Ints sizes;
  for (size_t i = 0; i < result.before.size(); ++i) {
    for (const int64_t pad : {result.before[i], result.behind[i]})
      if (pad < -kMostPadding || pad > kMostPadding) call.refuse("a number is too large");
    sizes.push_back(x.sizes()[i] + result.before[i] + result.behind[i]);
  }
  static_cast<void>(expect_sizes(sizes));
  return result;
}

LazyTensors pad(const OperatorCall& call) {
  LazyTensor x = call.operand(0);
  const std::string mode = call.text("mode", "constant");
  expect_one_of("mode", mode, {"constant", "edge", "reflect", "wrap"});
  const Pads pads = pads_of(call, x);
  if (mode == "constant") {
    Ints list;  // torch's begins with the last axis
    for (size_t i = pads.before.size(); i-- > 0;) {
      list.push_back(pads.before[i]);
      list.push_back(pads.behind[i]);
    }
    if (call.version() >= 11 && call.optional(2)) {
      const LazyTensor value = reshape(call.operand(2), {});
      if (const auto known = call.find_value(2)) {
        if (is_floating_point(x.dtype()))
          return {op("aten::constant_pad_nd", {x, list, Scalar(elements<double>(*known)[0])})};
        return {op("aten::constant_pad_nd", {x, list, Scalar(elements<int64_t>(*known)[0])})};
      }
      const LazyTensor inside =
          op("aten::constant_pad_nd", {full(x.sizes(), 1, DType::bool_), list, Scalar(int64_t{0})});
      return {where(inside, op("aten::constant_pad_nd", {x, list, Scalar(int64_t{0})}), value)};
    }
    return {op("aten::constant_pad_nd",
               {x, list, Scalar(call.version() < 11 ? call.real("value", 0) : 0.0)})};
  }
  for (size_t i = 0; i < pads.before.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    const int64_t before = std::max<int64_t>(pads.before[i], 0);
    const int64_t behind = std::max<int64_t>(pads.behind[i], 0);
    const int64_t cut = std::min<int64_t>(pads.before[i], 0);
    const int64_t end = std::min<int64_t>(pads.behind[i], 0);
    if (cut != 0 || end != 0) x = slice(x, axis, -cut, x.size(axis) + end);
    if (before + behind > (int64_t{1} << 22)) call.refuse("a number is too large");
    if (before != 0 || behind != 0) x = padded_by_index(x, axis, before, behind, mode);
  }
  return {x};
}

// Around the middle to the sizes that are given, or away from it.
LazyTensors center_crop_pad(const OperatorCall& call) {
  LazyTensor x = call.operand(0);
  Ints axes = call.ints("axes");
  if (!call.has("axes")) {
    axes.resize(static_cast<size_t>(x.rank()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  const Ints sizes = call.known_ints(1);
  if (sizes.size() != axes.size()) call.refuse("expected a size per axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axis_of_rank(axes[i], x.rank()), size = x.size(axis);
    if (sizes[i] < 0 || sizes[i] > (int64_t{1} << 40)) call.refuse("a size is out of range");
    if (sizes[i] <= size) {
      const int64_t begin = (size - sizes[i]) / 2;
      x = slice(x, axis, begin, begin + sizes[i]);
      continue;
    }
    Ints list(2 * static_cast<size_t>(x.rank() - axis), 0);
    list[list.size() - 2] = (sizes[i] - size) / 2;
    list[list.size() - 1] = sizes[i] - size - (sizes[i] - size) / 2;
    x = op("aten::constant_pad_nd", {x, list, Scalar(int64_t{0})});
  }
  return {x};
}

LazyTensors depth_to_space(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const int64_t block = call.integer("blocksize");
  const std::string mode = call.text("mode", "DCR");
  expect_one_of("mode", mode, {"DCR", "CRD"});
  if (x.rank() != 4 || block <= 0 || block > 65536 || x.size(1) % (block * block) != 0)
    call.refuse("expected four axes, and channels that are a multiple of the block");
  if (mode == "CRD") return {op("aten::pixel_shuffle", {x, block})};
  const int64_t n = x.size(0), c = x.size(1) / (block * block), h = x.size(2), w = x.size(3);
  const LazyTensor blocks = reshape(x, {n, block, block, c, h, w});
  return {reshape(permute(blocks, {0, 3, 4, 1, 5, 2}), {n, c, h * block, w * block})};
}

LazyTensors space_to_depth(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const int64_t block = call.integer("blocksize");
  if (x.rank() != 4 || block <= 0 || block > 65536 || x.size(2) % block != 0 ||
      x.size(3) % block != 0)
    call.refuse("expected four axes, and sizes that are multiples of the block");
  const std::string mode = call.text("mode", "DCR");
  expect_one_of("mode", mode, {"DCR", "CRD"});
  const int64_t n = x.size(0), c = x.size(1), h = x.size(2) / block, w = x.size(3) / block;
  const LazyTensor blocks = reshape(x, {n, c, h, block, w, block});
  const Ints order = mode == "DCR" ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4};
  return {reshape(permute(blocks, order), {n, c * block * block, h, w})};
}

LazyTensors trilu(const OperatorCall& call) {
  const int64_t diagonal = call.optional(1) ? call.known_int(1) : 0;
  const LazyTensor& x = call.operand(0);
  if (x.rank() < 2) call.refuse("expected a matrix, or matrices");
  const int64_t bound = int64_t{1} << 40;  // what lies behind all elements is all the same
  const int64_t offset = std::min(std::max(diagonal, -bound), bound);
  return {op(call.flag("upper", true) ? "aten::triu" : "aten::tril", {x, offset})};
}

}  // namespace

void add_movement_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"CenterCropPad", center_crop_pad},
                           {"Concat", concat},
                           {"DepthToSpace", depth_to_space},
                           {"Expand", expand_row},
                           {"Flatten", flatten},
                           {"Pad", pad},
                           {"Reshape", reshape_row},
                           {"Slice", slice_row},
                           {"SpaceToDepth", space_to_depth},
                           {"Split", split},
                           {"Squeeze", squeeze_row},
                           {"Tile", tile},
                           {"Transpose", transpose_row},
                           {"Trilu", trilu},
                           {"Unsqueeze", unsqueeze_row}});
}

}  // namespace composit::onnx_read
