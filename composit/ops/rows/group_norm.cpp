// Norms over groups of channels.
#include "composit/ops/moments.h"

namespace composit {

static void expect_groups(const LazyTensor& x, int64_t groups) {
  if (x.rank() < 2 || groups < 1 || x.size(1) % groups != 0)
    throw UserError("expected channels that divide into " + std::to_string(groups) +
                    " groups, received sizes " + str(x.sizes()));
}

// Elements of one channel; also where there are no channels or no samples.
static int64_t per_channel_count(const LazyTensor& x) {
  int64_t count = 1;
  for (int64_t axis = 2; axis < x.rank(); ++axis) count *= x.size(axis);
  return count;
}

static LazyTensor by_group(const LazyTensor& x, int64_t groups) {
  return reshape(x, {x.size(0), groups, x.size(1) / groups * per_channel_count(x)});
}

// LibTorch's kernels take nothing else.
static LazyTensor contiguous(const LazyTensor& x) { return apply_one("aten::contiguous", {x}); }

// y, mean and rstd per group.
static LazyTensors group_norm(const LazyTensor& x, const std::optional<LazyTensor>& weight,
                              const std::optional<LazyTensor>& bias, int64_t groups, double eps) {
  expect_groups(x, groups);
  const DType saved = moments_dtype(x, {weight, bias});
  const Moments m = moments(by_group(widened(x), groups), {2}, eps);
  const LazyTensor y = reshape(m.centered * m.rstd, x.sizes());
  return {to(affine(y, per_channel(weight, x), per_channel(bias, x)), x.dtype()),
          to(squeeze(m.mean, {2}), saved), to(squeeze(m.rstd, {2}), saved)};
}

static LazyTensors group_norm_back(const LazyTensor& g, const LazyTensor& x, const LazyTensor& mean,
                                   const LazyTensor& rstd, const std::optional<LazyTensor>& weight,
                                   int64_t groups, const std::vector<bool>& mask) {
  expect_groups(x, groups);
  const LazyTensor scale = unsqueeze(rstd, 2);
  const LazyTensor normalized = (by_group(x, groups) - unsqueeze(mean, 2)) * scale;
  LazyTensors results(3);
  if (mask[0]) {
    const LazyTensor inner = by_group(affine(g, per_channel(weight, x), {}), groups);
    results[0] = reshape(normalized_back(inner, normalized, scale, {2}), x.sizes());
  }
  if (mask[1]) results[1] = channel_sum(g * reshape(normalized, x.sizes()));
  if (mask[2]) results[2] = channel_sum(g);
  return results;
}

void add_group_norm_rows(OperationTable& rows) {
  rows.add({.schema = "aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? "
                      "bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
            .kind = OpKind::normalisation,
            .decompose =
                [](LazyTensor x, int64_t groups, std::optional<LazyTensor> weight,
                   std::optional<LazyTensor> bias, double eps) {
                  expect_groups(x, groups);
                  return LazyTensors{apply("aten::native_group_norm",
                                           {contiguous(x), weight, bias, x.size(0), x.size(1),
                                            per_channel_count(x), groups, eps})[0]};
                },
            .samples = "f32[2,4,3] 2 f32[4] f32[4] | f32[2,6,2,2] 3 | f32[0,4,3] 2",
            .bad = "f32[2,4,3] 3: divide into"});
  rows.add(
      {.schema = "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt "
                 "N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
       .kind = OpKind::normalisation,
       .decompose = [](LazyTensor x, std::optional<LazyTensor> weight,
                       std::optional<LazyTensor> bias, int64_t, int64_t, int64_t, int64_t groups,
                       double eps) { return group_norm(x, weight, bias, groups, eps); },
       .vjp =
           [](Vjp v, LazyTensor x, std::optional<LazyTensor> weight, std::optional<LazyTensor>,
              int64_t n, int64_t c, int64_t rest, int64_t groups) {
             if (v.cotangents[1].defined() || v.cotangents[2].defined()) return Gradients{};
             return apply("aten::native_group_norm_backward",
                          {contiguous(v.cotangents[0]), x, v.results[1], v.results[2], weight, n, c,
                           rest, groups, v.wanted});
           },
       .samples = "f32[2,4,3] f32[4] f32[4] 2 4 3 2 1e-05 | f32[1,6,2,2] None None 1 6 4 3 0.1",
       .bad = "f32[2,4,3] None None 2 4 3 3 0.1: divide into"});
  rows.add({.schema = "aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor "
                      "mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int "
                      "group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
            .kind = OpKind::normalisation,
            .decompose =
                [](LazyTensor g, LazyTensor x, LazyTensor mean, LazyTensor rstd,
                   std::optional<LazyTensor> weight, int64_t, int64_t, int64_t, int64_t groups,
                   std::vector<bool> mask) {
                  const std::optional<LazyTensor> saved = mean;
                  return norm_gradients(
                      group_norm_back(widened(g), widened(x), mean, rstd, weight, groups, mask),
                      x.dtype(), moments_dtype(x, {weight, saved}));
                },
            .samples = "f32[2,4,3] f32[2,4,3] f32[2,2] f32[2,2] f32[4] 2 4 3 2 [True,True,True] | "
                       "f32[1,6,2] f32[1,6,2] f32[1,3] f32[1,3] None 1 6 2 3 [True,False,False]"});
}

}  // namespace composit
