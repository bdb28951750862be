// Changes of resolution: nearest, linear and cubic interpolation over one to three axes.
#include <array>
#include <cmath>
#include <utility>

#include "composit/ops/functions.h"
#include "composit/ops/places.h"

namespace composit {
namespace {

enum class Kind { nearest, nearest_exact, linear, cubic };
using Scale = std::optional<double>;

// An element that an output is made of; no weight stands for 1.
struct Tap {
  Expr at, weight;
};
using Taps = std::vector<Tap>;

struct Axis {
  int64_t in, out;
  bool align_corners;
  Scale scale;
  DType dtype;

  // torch works out places in the input's own precision (float32 for the half ones).
  DType work() const { return dtype == DType::float64 ? dtype : DType::float32; }
  Expr step(DType work) const {
    if (align_corners) return Expr::literal(out > 1 ? double(in - 1) / double(out - 1) : 0.0, work);
    return Expr::literal(scale && *scale > 0 ? 1 / *scale : double(in) / double(out), work);
  }
  // The position of output `y` among the inputs: corners on corners, or middles on middles.
  Expr place(const Expr& y) const {
    const Expr at = cast(y, work());
    return align_corners ? at * step(work()) : (at + 0.5) * step(work()) - 0.5;
  }
};

Taps nearest(const Expr& y, const Axis& axis, double middle) {
  const bool whole = axis.out % axis.in == 0;
  if (whole && (!axis.scale || *axis.scale == double(axis.out) / double(axis.in)))
    return {{axis.out == axis.in ? y : floor_divide(y, axis.out / axis.in), {}}};
  const Expr at = cast(y, DType::float32);
  const Expr place = (middle == 0 ? at : at + middle) * axis.step(DType::float32);
  // Never below 0, as compilers shall see.
  return {{min(max(cast(floor(place), DType::int64), 0), axis.in - 1), {}}};
}

Taps linear(const Expr& y, const Axis& axis) {
  const Expr place = axis.align_corners ? axis.place(y) : max(axis.place(y), 0.0);
  const Expr low = min(cast(place, DType::int64), axis.in - 1);
  const Expr weight = min(max(place - cast(low, axis.work()), 0.0), 1.0);
  return {{low, cast(1 - weight, axis.dtype)},
          {min(low + 1, axis.in - 1), cast(weight, axis.dtype)}};
}

// Keys' cubic convolution with a = -3/4: of a tap at distance `d` up to 1, and from 1 to 2.
Expr near_weight(const Expr& d) { return ((1.25 * d - 2.25) * d) * d + 1.0; }
Expr far_weight(const Expr& d) { return ((-0.75 * d + 3.75) * d - 6.0) * d + 3.0; }

Taps cubic(const Expr& y, const Axis& axis) {
  const Expr place = axis.place(y);
  const Expr begin = floor(place), t = place - begin;
  const std::array weights = {far_weight(t + 1.0), near_weight(t), near_weight(1.0 - t),
                              far_weight(2.0 - t)};
  Taps taps;
  for (int64_t i = 0; i < 4; ++i)
    taps.push_back({min(max(cast(begin, DType::int64) + (i - 1), 0), axis.in - 1),
                    cast(weights[static_cast<size_t>(i)], axis.dtype)});
  return taps;
}

Taps taps_of(Kind kind, const Expr& y, const Axis& axis) {
  switch (kind) {
    case Kind::linear:
      return linear(y, axis);
    case Kind::cubic:
      return cubic(y, axis);
    default:
      return nearest(y, axis, kind == Kind::nearest_exact ? 0.5 : 0.0);
  }
}

Expr weighted(const Tap& tap, const Expr& x) { return tap.weight.defined() ? tap.weight * x : x; }

// The sum over all taps of the axes from at.size() - lead on.
Expr interpolated(const In& x, const std::vector<Taps>& taps, const Index& at, size_t lead) {
  if (at.size() == lead + taps.size()) return x(at);
  Expr total;
  for (const Tap& tap : taps[at.size() - lead]) {
    Index next = at;
    next.push_back(tap.at);
    const Expr part = weighted(tap, interpolated(x, taps, next, lead));
    total = total.defined() ? total + part : part;
  }
  return total;
}

struct Resize {
  Kind kind;
  Ints in, out;  // all sizes
  bool align_corners;
  std::vector<Scale> scales;
  DType dtype;

  size_t axes() const { return in.size() - 2; }
  std::vector<Taps> taps(const Index& y) const {
    std::vector<Taps> result;
    for (size_t i = 2; i < in.size(); ++i)
      result.push_back(taps_of(kind, y[i], {in[i], out[i], align_corners, scales[i - 2], dtype}));
    return result;
  }
};

Resize resize(Kind kind, const Ints& in, const Ints& output, bool align_corners,
              std::vector<Scale> scales, DType dtype) {
  bool fits = in.size() == scales.size() + 2 && output.size() == scales.size();
  for (int64_t size : output) fits = fits && size > 0;
  if (!fits)
    throw UserError("expected an input of " + std::to_string(scales.size() + 2) + " axes and " +
                    std::to_string(scales.size()) + " output sizes above 0, received sizes " +
                    str(in) + " and " + str(output));
  return {kind, in, joined({in[0], in[1]}, output), align_corners, std::move(scales), dtype};
}

Loops forward(const In& x, const Resize& r) {
  Nest nest;
  const Index y = nest.parallel(r.out);
  return nest.store(interpolated(x, r.taps(y), {y[0], y[1]}, 2)).loops();
}

// Every output gives its gradient to the taps it was made of.
Loops backward(const In& g, const Resize& r) {
  if (g.sizes() != r.out)
    throw UserError("expected a gradient of sizes " + str(r.out) + ", received " + str(g.sizes()));
  Nest nest;
  const Index y = nest.parallel(r.out);
  std::vector<std::pair<Index, Expr>> stores{{{y[0], y[1]}, g(y)}};
  for (const Taps& taps : r.taps(y)) {
    std::vector<std::pair<Index, Expr>> next;
    for (const auto& [at, value] : stores)
      for (const Tap& tap : taps) next.emplace_back(joined(at, {tap.at}), weighted(tap, value));
    stores = std::move(next);
  }
  nest.store(r.in, stores[0].first, stores[0].second, true);
  for (size_t i = 1; i < stores.size(); ++i)
    nest.store_into(0, stores[i].first, stores[i].second, true);
  return nest.loops();
}

// ---- rows: rules have a parameter per axis ------------------------------------------------------

template <size_t>
using ScaleOf = Scale;
constexpr bool has_corners(Kind kind) { return kind == Kind::linear || kind == Kind::cubic; }

ArgumentValue value(const Scale& scale) { return scale ? ArgumentValue(*scale) : ArgumentValue(); }

// Names of the rows of one kind and number of axes; rules find them by their own type.
template <Kind kKind, size_t kAxes>
struct Names {
  static inline std::string forward, backward;
};

template <Kind kKind, class Axes, bool kCorners = has_corners(kKind)>
struct Rules;

template <Kind kKind, size_t... I>
struct Rules<kKind, std::index_sequence<I...>, false> {
  using Name = Names<kKind, sizeof...(I)>;
  struct Forward {
    Loops operator()(In x, Ints out, ScaleOf<I>... scales) const {
      return forward(x, resize(kKind, x.sizes(), out, false, {scales...}, x.dtype()));
    }
  };
  struct Backward {
    Loops operator()(In g, Ints out, Ints in, ScaleOf<I>... scales) const {
      return backward(g, resize(kKind, in, out, false, {scales...}, g.dtype()));
    }
  };
  struct Gradient {
    Gradients operator()(Vjp v, LazyTensor x, Ints out, ScaleOf<I>... scales) const {
      return {apply_one(Name::backward, {v.cotangents[0], out, x.sizes(), value(scales)...})};
    }
  };
  struct Vec {
    LazyTensors operator()(LazyTensor x, std::optional<Ints> out,
                           std::optional<std::vector<double>> scales) const;
  };
};

template <Kind kKind, size_t... I>
struct Rules<kKind, std::index_sequence<I...>, true> {
  using Name = Names<kKind, sizeof...(I)>;
  struct Forward {
    Loops operator()(In x, Ints out, bool corners, ScaleOf<I>... scales) const {
      return forward(x, resize(kKind, x.sizes(), out, corners, {scales...}, x.dtype()));
    }
  };
  struct Backward {
    Loops operator()(In g, Ints out, Ints in, bool corners, ScaleOf<I>... scales) const {
      return backward(g, resize(kKind, in, out, corners, {scales...}, g.dtype()));
    }
  };
  struct Gradient {
    Gradients operator()(Vjp v, LazyTensor x, Ints out, bool corners, ScaleOf<I>... scales) const {
      return {
          apply_one(Name::backward, {v.cotangents[0], out, x.sizes(), corners, value(scales)...})};
    }
  };
  struct Vec {
    LazyTensors operator()(LazyTensor x, std::optional<Ints> out, bool corners,
                           std::optional<std::vector<double>> scales) const;
  };
};

// The arguments of the plain row: sizes, which factors give too, and the factors.
struct Target {
  Ints out;
  std::vector<ArgumentValue> scales;
};

Target target(const LazyTensor& x, size_t axes, const std::optional<Ints>& out,
              const std::optional<std::vector<double>>& scales) {
  if (out.has_value() == scales.has_value())
    throw UserError("expected either output_size or scale_factors");
  if (out) return {*out, std::vector<ArgumentValue>(axes)};
  if (scales->size() != axes || x.rank() != static_cast<int64_t>(axes) + 2)
    throw UserError("expected " + std::to_string(axes) + " scale factors and an input of " +
                    std::to_string(axes + 2) + " axes, received " + std::to_string(scales->size()) +
                    " and sizes " + str(x.sizes()));
  Target result;
  for (size_t i = 0; i < axes; ++i) {
    const double size = static_cast<double>(x.sizes()[i + 2]) * (*scales)[i];
    result.out.push_back(static_cast<int64_t>(size));
    result.scales.emplace_back((*scales)[i]);
  }
  return result;
}

template <Kind kKind, size_t... I>
LazyTensors Rules<kKind, std::index_sequence<I...>, false>::Vec::operator()(
    LazyTensor x, std::optional<Ints> out, std::optional<std::vector<double>> scales) const {
  const Target t = target(x, sizeof...(I), out, scales);
  return {apply_one(Name::forward, {x, t.out, t.scales[I]...})};
}

template <Kind kKind, size_t... I>
LazyTensors Rules<kKind, std::index_sequence<I...>, true>::Vec::operator()(
    LazyTensor x, std::optional<Ints> out, bool corners,
    std::optional<std::vector<double>> scales) const {
  const Target t = target(x, sizeof...(I), out, scales);
  return {apply_one(Name::forward, {x, t.out, corners, t.scales[I]...})};
}

struct Samples {
  std::string_view forward, backward, vec;
};

// "aten::upsample_nearest" and "2d" give the three rows of that name.
template <Kind kKind, size_t kAxes>
void add(OperationTable& rows, const std::string& name, const Samples& samples) {
  using R = Rules<kKind, std::make_index_sequence<kAxes>>;
  const std::string n = std::to_string(kAxes), size = "SymInt[" + n + "] output_size";
  const std::string corners = has_corners(kKind) ? ", bool align_corners" : "";
  constexpr std::array<std::string_view, 3> all = {"d", "h", "w"};
  std::string scales;
  for (size_t i = 3 - kAxes; i < 3; ++i)
    scales += ", float? scales" + (kAxes == 1 ? "" : "_" + std::string(all[i])) + "=None";
  static std::string forward, backward, vec;
  forward = name + "(Tensor self, " + size + corners + scales + ") -> Tensor";
  backward = name + "_backward(Tensor grad_output, " + size + ", SymInt[" +
             std::to_string(kAxes + 2) + "] input_size" + corners + scales + ") -> Tensor";
  vec = name + ".vec(Tensor input, SymInt[]? output_size" + corners +
        ", float[]? scale_factors) -> Tensor";
  Names<kKind, kAxes>::forward = name;
  Names<kKind, kAxes>::backward = name + "_backward";
  rows.add({.schema = forward,
            .kind = OpKind::movement,
            .loops = typename R::Forward(),
            .vjp = typename R::Gradient(),
            .samples = samples.forward,
            .bad = has_corners(kKind) ? "f32[2,2] [4] False: output sizes above 0"
                                      : "f32[2,2] [4]: output sizes above 0"});
  rows.add({.schema = backward,
            .kind = OpKind::movement,
            .loops = typename R::Backward(),
            .samples = samples.backward});
  rows.add({.schema = vec,
            .kind = OpKind::movement,
            .decompose = typename R::Vec(),
            .samples = samples.vec});
}

}  // namespace

void add_resolution_rows(OperationTable& rows) {
  add<Kind::nearest, 1>(rows, "aten::upsample_nearest1d",
                        {"f32[1,2,3] [6] | f32[1,1,5] [4] | f32[1,2,3] [7] 2.5",
                         "f32[1,2,5] [5] [1,2,3]", "f32[1,2,3] [6] None | f32[1,2,3] None [1.5]"});
  add<Kind::nearest, 2>(
      rows, "aten::upsample_nearest2d",
      {"f32[1,2,2,3] [4,6] | f32[1,1,3,5] [5,4] | f32[1,2,2,2] [4,4] 2.0 2.0",
       "f32[1,2,4,5] [4,5] [1,2,2,3]",
       "f32[1,2,2,3] [4,6] None | f32[1,2,2,3] None [2.0,2.0] | f32[1,1,3,3] None [1.5,0.7]"});
  add<Kind::nearest, 3>(rows, "aten::upsample_nearest3d",
                        {"f32[1,1,2,2,3] [4,3,6]", "f32[1,1,3,2,4] [3,2,4] [1,1,2,2,3]",
                         "f32[1,1,2,2,3] None [2.0,1.5,1.0]"});
  add<Kind::nearest_exact, 1>(
      rows, "aten::_upsample_nearest_exact1d",
      {"f32[1,2,3] [6] | f32[1,1,5] [4]", "f32[1,2,5] [5] [1,2,3]", "f32[1,2,3] None [1.5]"});
  add<Kind::nearest_exact, 2>(
      rows, "aten::_upsample_nearest_exact2d",
      {"f32[1,2,2,3] [4,6] | f32[1,1,3,5] [5,4]", "f32[1,2,4,5] [4,5] [1,2,2,3]",
       "f32[1,2,2,3] [4,6] None | f32[1,1,3,3] None [1.5,0.7]"});
  add<Kind::nearest_exact, 3>(rows, "aten::_upsample_nearest_exact3d",
                              {"f32[1,1,2,2,3] [4,3,5]", "f32[1,1,3,2,4] [3,2,4] [1,1,2,2,3]",
                               "f32[1,1,2,2,3] None [2.0,1.5,1.0]"});
  add<Kind::linear, 1>(rows, "aten::upsample_linear1d",
                       {"f32[1,2,3] [6] False | f32[1,1,5] [4] True",
                        "f32[1,2,5] [5] [1,2,3] False", "f32[1,2,3] None False [1.5]"});
  add<Kind::linear, 2>(
      rows, "aten::upsample_bilinear2d",
      {"f32[1,2,2,3] [4,6] False | f32[1,1,3,5] [5,4] True | f32[1,1,4,4] [2,2] False",
       "f32[1,2,4,5] [4,5] [1,2,2,3] False | f32[1,1,3,2] [3,2] [1,1,4,4] True",
       "f32[1,2,2,3] [4,6] False None | f32[1,2,2,3] None True [2.0,2.0] | f32[1,1,3,3] None False "
       "[1.5,0.7]"});
  add<Kind::linear, 3>(
      rows, "aten::upsample_trilinear3d",
      {"f32[1,1,2,2,3] [4,3,5] False | f32[1,1,2,2,3] [3,3,2] True",
       "f32[1,1,3,2,4] [3,2,4] [1,1,2,2,3] False", "f32[1,1,2,2,3] None False [2.0,1.5,1.0]"});
  add<Kind::cubic, 2>(
      rows, "aten::upsample_bicubic2d",
      {"f32[1,2,3,4] [5,6] False | f32[1,1,3,5] [5,4] True", "f32[1,1,4,5] [4,5] [1,1,2,3] False",
       "f32[1,1,2,3] [4,6] False None | f32[1,1,3,3] None False [1.5,0.7]"});
}

}  // namespace composit
