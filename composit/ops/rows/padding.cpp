// Axes made longer, or shorter where padding is negative: by a number, or by elements of the tensor
// itself.
#include "composit/ops/functions.h"

namespace composit {

// The numbers of elements added before and after each axis. `pad` has pairs, the last axis first.
using Padding = std::vector<std::pair<int64_t, int64_t>>;

static Padding padding_of(int64_t rank, const Ints& pad) {
  if (pad.size() % 2 != 0 || static_cast<int64_t>(pad.size()) > 2 * rank)
    throw UserError("expected at most " + std::to_string(rank) + " pairs of padding, received " +
                    str(pad));
  Padding padding(static_cast<size_t>(rank));
  for (size_t i = 0; i + 1 < pad.size(); i += 2)
    padding[padding.size() - 1 - i / 2] = {pad[i], pad[i + 1]};
  return padding;
}

static Ints padded_sizes(const Ints& sizes, const Padding& padding) {
  Ints result = sizes;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    result[axis] += padding[axis].first + padding[axis].second;
    if (result[axis] < 0)
      throw UserError("expected padding that leaves sizes of at least 0, received sizes " +
                      str(sizes) + " and " + str(result) + " after it");
  }
  return result;
}

static Loops constant_pad(const In& x, const Ints& pad, const Scalar& value) {
  const Padding padding = padding_of(x.rank(), pad);
  Nest nest;
  Index at = nest.parallel(padded_sizes(x.sizes(), padding));
  Expr inside = true;
  for (size_t axis = 0; axis < at.size(); ++axis) {
    const auto [before, behind] = padding[axis];
    at[axis] = at[axis] - before;
    if (before > 0) inside = inside && at[axis] >= 0;
    if (behind > 0) inside = inside && at[axis] < x.sizes()[axis];
  }
  return nest.store(select(inside, x(at), cast(Expr(value), x.dtype()))).loops();
}

// ---- by elements of the tensor ------------------------------------------------------------------

enum class Mode { reflection, replication, circular };

// What padding leaves of an axis: negative numbers crop.
struct Kept {
  int64_t first, size;
};
static Kept kept_of(int64_t size, const std::pair<int64_t, int64_t>& padding) {
  const int64_t first = std::max<int64_t>(0, -padding.first);
  return {first, size - first - std::max<int64_t>(0, -padding.second)};
}

// The place along an axis of `size` elements that stands for `i`, which may be out of range. What
// is left of the axis goes around.
static Expr place_for(Mode mode, const Expr& i, int64_t size, const Kept& kept) {
  switch (mode) {
    case Mode::reflection:
      return select(i < 0, -i, select(i >= size, 2 * (size - 1) - i, i));
    case Mode::replication:
      return max(min(i, size - 1), 0);
    default:
      if (kept.first == 0) return remainder(i, kept.size);
      return remainder(i - kept.first, kept.size) + kept.first;
  }
}

static void expect_enough(Mode mode, const Ints& sizes, const Padding& padding) {
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const auto [before, behind] = padding[axis];
    if (before == 0 && behind == 0) continue;
    const int64_t size = sizes[axis];
    const int64_t most = mode == Mode::reflection ? size - 1
                         : mode == Mode::circular ? kept_of(size, padding[axis]).size
                                                  : std::max(before, behind);
    if (size == 0 || before > most || behind > most)
      throw UserError("expected padding of at most " + std::to_string(most) + " for axis " +
                      std::to_string(axis) + " of sizes " + str(sizes) + ", received " +
                      std::to_string(before) + " and " + std::to_string(behind));
  }
}

// Sizes of the padded tensor, and where in the tensor the element at `at` of it is from.
static Ints sizes_padded_by(Mode mode, const Ints& sizes, const Padding& padding) {
  expect_enough(mode, sizes, padding);
  return padded_sizes(sizes, padding);
}
static Index source(Mode mode, const Ints& sizes, const Padding& padding, Index at) {
  for (size_t axis = 0; axis < at.size(); ++axis)
    if (padding[axis] != std::pair<int64_t, int64_t>())
      at[axis] = place_for(mode, at[axis] - padding[axis].first, sizes[axis],
                           kept_of(sizes[axis], padding[axis]));
  return at;
}

static Loops pad_by(Mode mode, const In& x, const Ints& pad) {
  const Padding padding = padding_of(x.rank(), pad);
  Nest nest;
  const Index at = nest.parallel(sizes_padded_by(mode, x.sizes(), padding));
  return nest.store(x(source(mode, x.sizes(), padding, at))).loops();
}

// Beside the padded axes there is that of the channels, and there may be that of a batch.
static void expect_axes(const In& x, const Ints& pad, int64_t axes) {
  if (static_cast<int64_t>(pad.size()) != 2 * axes)
    throw UserError("expected " + std::to_string(2 * axes) + " numbers of padding, received " +
                    str(pad));
  if (x.rank() != axes + 1 && x.rank() != axes + 2)
    throw UserError("expected " + std::to_string(axes + 1) + " or " + std::to_string(axes + 2) +
                    " axes, received sizes " + str(x.sizes()));
}

static Loops pad_axes(Mode mode, int64_t axes, const In& x, const Ints& pad) {
  expect_axes(x, pad, axes);
  return pad_by(mode, x, pad);
}

static Loops pad_axes_back(Mode mode, int64_t axes, const In& g, const In& x, const Ints& pad) {
  expect_axes(x, pad, axes);
  const Padding padding = padding_of(x.rank(), pad);
  const Ints sizes = sizes_padded_by(mode, x.sizes(), padding);
  if (g.sizes() != sizes)
    throw UserError("expected grad_output of sizes " + str(sizes) + ", received " + str(g.sizes()));
  Nest nest;
  const Index at = nest.parallel(sizes);
  return nest.store(x.sizes(), source(mode, x.sizes(), padding, at), g(at), true).loops();
}

// clang-format off
#define COMPOSIT_PAD(mode, name, axes, length, forward, backward)                                 \
  rows.add({.schema = "aten::" name "(Tensor self, SymInt[" length "] padding) -> Tensor",        \
            .kind = OpKind::movement,                                                             \
            .loops = [](In x, Ints padding) { return pad_axes(Mode::mode, axes, x, padding); },   \
            .vjp = [](Vjp v, LazyTensor x, Ints padding) {                                            \
              return apply("aten::" name "_backward", {v.cotangents[0], x, padding});             \
            },                                                                                    \
            .samples = forward,                                                                   \
            .bad = "f32[2] 1: axes, received | f32[2,3] [1]: numbers of padding"});               \
  rows.add({.schema = "aten::" name "_backward(Tensor grad_output, Tensor self, SymInt[" length   \
                      "] padding) -> Tensor",                                                     \
            .kind = OpKind::movement,                                                             \
            .loops = [](In g, In x, Ints padding) {                                               \
              return pad_axes_back(Mode::mode, axes, g, x, padding);                              \
            },                                                                                    \
            .samples = backward});
// clang-format on

static void add_pads_of_axes(OperationTable& rows) {
  COMPOSIT_PAD(reflection, "reflection_pad1d", 1, "2", "f32[2,4] [1,2] | f32[2,3,4] [3,0]",
               "f32[2,7] f32[2,4] [1,2]")
  COMPOSIT_PAD(reflection, "reflection_pad2d", 2, "4",
               "f32[2,3,4] [1,2,0,2] | f32[1,2,3,4] [1,1,1,1]", "f32[2,5,7] f32[2,3,4] [1,2,0,2]")
  COMPOSIT_PAD(reflection, "reflection_pad3d", 3, "6", "f32[1,2,2,3] [1,2,0,1,1,0]",
               "f32[1,3,3,6] f32[1,2,2,3] [1,2,0,1,1,0]")
  COMPOSIT_PAD(replication, "replication_pad1d", 1, "2", "f32[2,3] [1,4] | f32[2,3,2] [0,3]",
               "f32[2,8] f32[2,3] [1,4]")
  COMPOSIT_PAD(replication, "replication_pad2d", 2, "4",
               "f32[2,2,3] [1,4,0,3] | f32[1,2,2,2] [1,1,1,1]", "f32[2,5,8] f32[2,2,3] [1,4,0,3]")
  COMPOSIT_PAD(replication, "replication_pad3d", 3, "6", "f32[1,2,2,2] [1,2,0,1,3,0]",
               "f32[1,5,3,5] f32[1,2,2,2] [1,2,0,1,3,0]")
}
#undef COMPOSIT_PAD

// The operation that pads in `mode`, for as many axes as `pad` has.
static std::string pad_operation(const LazyTensor& x, const Ints& pad, const std::string& mode) {
  if (mode == "circular") return "aten::_pad_circular";
  if (mode != "reflect" && mode != "replicate")
    throw UserError("expected mode 'constant', 'reflect', 'replicate' or 'circular', received '" +
                    mode + "'");
  const auto axes = static_cast<int64_t>(pad.size() / 2);
  if (pad.size() % 2 != 0 || axes < 1 || axes > 3)
    throw UserError("expected padding of the last 1, 2 or 3 axes, received " + str(pad) +
                    " for sizes " + str(x.sizes()));
  const char* kind = mode == "reflect" ? "aten::reflection_pad" : "aten::replication_pad";
  return kind + std::to_string(axes) + "d";
}

void add_padding_rows(OperationTable& rows) {
  rows.add({.schema = "aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
            .kind = OpKind::movement,
            .loops = [](In x, Ints pad, Scalar value) { return constant_pad(x, pad, value); },
            .vjp =
                [](Vjp v, LazyTensor, Ints pad) {  // what was added is taken away
                  for (int64_t& number : pad) number = -number;
                  return apply("aten::constant_pad_nd", {v.cotangents[0], pad});
                },
            .samples = "f32[2,3] [1,2] | f32[2,3] [0,1,2,0] 1.5 | f32[4,5] [-1,2,-2,-1] | i64[3] "
                       "[1,1] 7 | f32[2,3] [] | f32[0,2] [1,1,2,0] | bool[2] [0,1] | f32[3] [0,2] "
                       "-inf",
            .bad = "f32[3] [1]: at most 1 pairs | f32[3] [1,1,1,1]: at most 1 pairs | f32[3] "
                   "[-2,-2]: at least 0"});
  add_pads_of_axes(rows);
  rows.add({.schema = "aten::_pad_circular(Tensor self, SymInt[] pad) -> Tensor",
            .loops =
                [](In x, Ints pad) {
                  expect_axes(x, pad, static_cast<int64_t>(pad.size() / 2));
                  return pad_by(Mode::circular, x, pad);
                },
            .samples = "f32[2,3] [1,3] | f32[2,3,4] [1,2,3,0] | f32[1,1,2,3] [2,1,-1,0]",
            .bad = "f32[2,3] [4,0]: at most 3 for axis 1"});
  rows.add({.schema = "aten::pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? "
                      "value=None) -> Tensor",
            .kind = OpKind::movement,
            .decompose =
                [](LazyTensor x, Ints pad, std::string mode, std::optional<double> value) {
                  if (mode == "constant")
                    return apply("aten::constant_pad_nd", {x, pad, value.value_or(0)});
                  if (value.value_or(0) != 0)
                    throw UserError("expected no value for mode '" + mode + "', received " +
                                    std::to_string(*value));
                  return apply(pad_operation(x, pad, mode), {x, pad});
                },
            .samples =
                "f32[2,3] [1,2] | f32[2,3] [1,2] 'constant' 1.5 | f32[2,3] [1,2] 'reflect' | "
                "f32[1,2,2,3] [1,2,0,1] 'replicate' | f32[2,3] [1,2] 'circular' | "
                "f32[1,2,2,2] [1,1,0,1,1,0] 'reflect'",
            .bad = "f32[2,3] [3,0] 'reflect': at most 2 for axis 1 | f32[2,3] [1,0] 'mirror': "
                   "expected mode | f32[2,3] [1,0] 'reflect' 2.0: no value"});
}

}  // namespace composit
