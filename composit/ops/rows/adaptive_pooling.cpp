// Pools to a size that is given: window y goes from floor(y * in / out) to ceil((y + 1) * in /
// out).
#include <algorithm>

#include "composit/ops/functions.h"
#include "composit/ops/places.h"

namespace composit {
namespace {

// The windows over the last axes.
struct Adaptive {
  Ints lead, in, out;

  Adaptive(const Ints& sizes, size_t axes, const Ints& output) {
    expect_axes(sizes, axes);
    out = output.size() == 1 ? Ints(axes, output[0]) : output;
    if (out.size() != axes || *std::min_element(out.begin(), out.end()) < 0)
      throw UserError("expected " + std::to_string(axes) +
                      " sizes of at least 0 for the output, received " + str(output));
    const auto split = sizes.end() - static_cast<int64_t>(axes);
    lead.assign(sizes.begin(), split);
    in.assign(split, sizes.end());
  }
  Ints input() const { return joined(lead, in); }
};

struct Place {
  Index x;     // of the last axes
  Expr count;  // elements of the window
};

// Element k of the window at y, where `axis` makes the axes of the windows' elements.
template <class MakeAxis>
Place place(Nest& nest, const Adaptive& a, const Index& y, MakeAxis axis) {
  Place result{{}, 1};
  for (size_t i = 0; i < a.in.size(); ++i) {
    const int64_t in = a.in[i], out = a.out[i];
    const bool even = in % out == 0;
    const Expr k = axis(even ? in / out : in / out + 2);
    if (even) {
      result.x.push_back(y[i] * (in / out) + k);
      result.count = result.count * (in / out);
      continue;
    }
    const Expr begin = floor_divide(y[i] * in, out);
    const Expr end = floor_divide((y[i] + 1) * in + (out - 1), out);
    result.x.push_back(begin + k);
    nest.where(result.x[i] < end);
    result.count = result.count * (end - begin);
  }
  return result;
}

Loops average(const In& x, const Adaptive& a) {
  Nest nest;
  const Index lead = nest.parallel(a.lead), y = nest.parallel(a.out);
  const Place p = place(nest, a, y, [&](int64_t extent) { return nest.reduction(extent); });
  const DType wide = opmath_dtype(x.dtype());
  const Expr total = nest.sum(cast(x(joined(lead, p.x)), wide));
  return nest.store(cast(total / cast(p.count, wide), x.dtype())).loops();
}

Loops average_back(const In& g, const Adaptive& a) {
  Nest nest;
  const Index lead = nest.parallel(a.lead), y = nest.parallel(a.out);
  const Place p = place(nest, a, y, [&](int64_t extent) { return nest.parallel(extent); });
  const DType wide = opmath_dtype(g.dtype());
  const Expr share = cast(g(joined(lead, y)), wide) / cast(p.count, wide);
  return nest.store(a.input(), joined(lead, p.x), cast(share, g.dtype()), true).loops();
}

Loops maximum(const In& x, const Adaptive& a) {
  Nest nest;
  const Index lead = nest.parallel(a.lead), y = nest.parallel(a.out);
  const Place p = place(nest, a, y, [&](int64_t extent) { return nest.reduction(extent); });
  const auto best = nest.fold({0, -1}, {x(joined(lead, p.x)), flattened(p.x, a.in)}, first_largest);
  return nest.store(best[0]).store(best[1]).loops();
}

template <size_t kAxes>
void add_average(OperationTable& rows, std::string_view schema, std::string_view backward,
                 std::string_view samples, std::string_view backward_samples,
                 std::string_view bad) {
  static const std::string backward_name(backward.substr(0, backward.find('(')));
  rows.add({.schema = schema,
            .kind = OpKind::reduction,
            .loops =
                [](In x, Ints output) {
                  return average(x, {x.sizes(), kAxes, output});
                },
            .vjp =
                [](Vjp v, LazyTensor x) {
                  return Gradients{apply_one(backward_name, {v.cotangents[0], x})};
                },
            .samples = samples,
            .bad = bad});
  rows.add({.schema = backward,
            .kind = OpKind::reduction,
            .loops =
                [](In g, In x) {
                  const Ints sizes = g.sizes();
                  if (sizes.size() < kAxes)
                    throw UserError("expected a gradient of as many axes as the input, received " +
                                    str(sizes));
                  return average_back(
                      g, {x.sizes(), kAxes, {sizes.end() - int64_t{kAxes}, sizes.end()}});
                },
            .samples = backward_samples});
}

bool all_ones(const Ints& output) {
  return std::all_of(output.begin(), output.end(), [](int64_t size) { return size == 1; });
}

void add_averages(OperationTable& rows) {
  add_average<2>(rows, "aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
                 "aten::_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor",
                 "f32[2,3,4,6] [2,3] | f32[2,5,7] [3,2] | f32[1,2,3,3] [1,1] | f32[1,1,2,3] [4,4]",
                 "f32[2,3,2,3] f32[2,3,4,6] | f32[2,3,2] f32[2,5,7]",
                 "f32[2,2] [1,1]: 3 or 4 axes");
  add_average<3>(rows, "aten::_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
                 "aten::_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor",
                 "f32[1,2,2,4,3] [1,2,2] | f32[2,3,3,2] [2,2,2]", "f32[1,2,1,2,2] f32[1,2,2,4,3]",
                 "f32[2,2,2] [1,1,1]: 4 or 5 axes");
  rows.add({.schema = "aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
            .kind = OpKind::reduction,
            .decompose =
                [](LazyTensor x, Ints output) {
                  if (all_ones(output)) return LazyTensors{mean(x, {-2, -1}, true)};
                  return LazyTensors{apply_one("aten::_adaptive_avg_pool2d", {x, output})};
                },
            .samples = "f32[2,3,4,6] [2,3] | f32[1,2,3,3] [1,1]"});
  rows.add({.schema = "aten::adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
            .decompose =
                [](LazyTensor x, Ints output) {
                  if (all_ones(output)) return LazyTensors{mean(x, {-3, -2, -1}, true)};
                  return LazyTensors{apply_one("aten::_adaptive_avg_pool3d", {x, output})};
                },
            .samples = "f32[1,2,2,4,3] [1,2,2] | f32[1,2,2,2,3] 1"});
  rows.add({.schema = "aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
            .kind = OpKind::reduction,
            .loops =
                [](In x, Ints output) {
                  return average(x, {x.sizes(), 1, output});
                },
            .samples = "f32[2,3,6] 2 | f32[3,7] 3 | f32[1,2,5] 1",
            .bad = "f32[3] 1: 2 or 3 axes"});
}

template <size_t kAxes>
void add_maximum(OperationTable& rows, std::string_view schema, std::string_view backward,
                 std::string_view samples, std::string_view backward_samples,
                 std::string_view bad) {
  static const std::string backward_name(backward.substr(0, backward.find('(')));
  rows.add({.schema = schema,
            .kind = OpKind::reduction,
            .loops =
                [](In x, Ints output) {
                  return maximum(x, {x.sizes(), kAxes, output});
                },
            .vjp =
                [](Vjp v, LazyTensor x) {
                  return Gradients{apply_one(backward_name, {v.cotangents[0], x, v.results[1]})};
                },
            .samples = samples,
            .bad = bad});
  rows.add({.schema = backward,
            .kind = OpKind::reduction,
            .loops = [](In g, In x, In indices) { return at_maxima(g, indices, x, kAxes); },
            .samples = backward_samples});
}

void add_maxima(OperationTable& rows) {
  add_maximum<2>(
      rows, "aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
      "aten::adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> "
      "Tensor",
      "f32[2,3,4,6] [2,3] | f32[2,5,7] [3,2] | f32[1,1,4,4]=nan 2",
      "f32[1,2,2,2] f32[1,2,4,4] i64[1,2,2,2]<16", "f32[2,2] 1: 3 or 4 axes");
  add_maximum<3>(
      rows, "aten::adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
      "aten::adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> "
      "Tensor",
      "f32[1,2,2,4,3] [1,2,2] | f32[2,3,3,2] [2,2,2]",
      "f32[1,2,1,2,2] f32[1,2,2,4,3] i64[1,2,1,2,2]<24", "f32[2,2,2] 1: 4 or 5 axes");
  rows.add({.schema = "aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, "
                      "Tensor)",
            .decompose =
                [](LazyTensor x, Ints output) {
                  const LazyTensors both =
                      apply("aten::adaptive_max_pool2d", {unsqueeze(x, -2), Ints{1, output.at(0)}});
                  return LazyTensors{squeeze(both[0], {-2}), squeeze(both[1], {-2})};
                },
            .samples = "f32[2,3,6] 2 | f32[3,7] 3"});
}

}  // namespace

void add_adaptive_pooling_rows(OperationTable& rows) {
  add_averages(rows);
  add_maxima(rows);
}

}  // namespace composit
