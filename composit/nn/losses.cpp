#include "composit/nn/losses.h"

namespace composit::nn {

static int64_t number(Reduction reduction) { return static_cast<int64_t>(reduction); }

LazyTensor mse_loss(const LazyTensor& input, const LazyTensor& target, Reduction reduction) {
  return apply_one("aten::mse_loss", {input, target, number(reduction)});
}
LazyTensor l1_loss(const LazyTensor& input, const LazyTensor& target, Reduction reduction) {
  return apply_one("aten::l1_loss", {input, target, number(reduction)});
}
LazyTensor soft_margin_loss(const LazyTensor& input, const LazyTensor& target,
                            Reduction reduction) {
  return apply_one("aten::soft_margin_loss", {input, target, number(reduction)});
}
LazyTensor smooth_l1_loss(const LazyTensor& input, const LazyTensor& target,
                          const SmoothL1Options& o) {
  return apply_one("aten::smooth_l1_loss", {input, target, number(o.reduction), o.beta});
}
LazyTensor huber_loss(const LazyTensor& input, const LazyTensor& target, const HuberOptions& o) {
  return apply_one("aten::huber_loss", {input, target, number(o.reduction), o.delta});
}

LazyTensor cross_entropy(const LazyTensor& input, const LazyTensor& target,
                         const CrossEntropyOptions& o) {
  return apply_one("aten::cross_entropy_loss", {input, target, o.weight, number(o.reduction),
                                                o.ignore_index, o.label_smoothing});
}
LazyTensor nll_loss(const LazyTensor& input, const LazyTensor& target, const NllOptions& o) {
  return apply_one("aten::nll_loss_nd",
                   {input, target, o.weight, number(o.reduction), o.ignore_index});
}

LazyTensor binary_cross_entropy(const LazyTensor& input, const LazyTensor& target,
                                const BinaryCrossEntropyOptions& o) {
  return apply_one("aten::binary_cross_entropy", {input, target, o.weight, number(o.reduction)});
}
LazyTensor binary_cross_entropy_with_logits(const LazyTensor& input, const LazyTensor& target,
                                            const BinaryCrossEntropyWithLogitsOptions& o) {
  return apply_one("aten::binary_cross_entropy_with_logits",
                   {input, target, o.weight, o.pos_weight, number(o.reduction)});
}

LazyTensor kl_div(const LazyTensor& input, const LazyTensor& target, const KlDivOptions& o) {
  const bool per_batch = o.reduction == Reduction::batch_mean;
  const LazyTensor loss =
      apply_one("aten::kl_div",
                {input, target, number(per_batch ? Reduction::sum : o.reduction), o.log_target});
  return per_batch && input.rank() > 0 ? loss / input.size(0) : loss;
}

LazyTensor poisson_nll_loss(const LazyTensor& input, const LazyTensor& target,
                            const PoissonNllOptions& o) {
  const LazyTensor loss =
      o.log_input ? exp(input) - target * input : input - target * log(input + o.eps);
  return reduced(loss, number(o.reduction));
}
LazyTensor gaussian_nll_loss(const LazyTensor& input, const LazyTensor& target,
                             const LazyTensor& var, const GaussianNllOptions& o) {
  const LazyTensor variance = apply_one("aten::clamp_min", {var, o.eps});
  return reduced((log(variance) + square(input - target) / variance) / 2, number(o.reduction));
}

LazyTensor margin_ranking_loss(const LazyTensor& input1, const LazyTensor& input2,
                               const LazyTensor& target, const MarginOptions& o) {
  return apply_one("aten::margin_ranking_loss",
                   {input1, input2, target, o.margin, number(o.reduction)});
}
LazyTensor cosine_embedding_loss(const LazyTensor& input1, const LazyTensor& input2,
                                 const LazyTensor& target, const MarginOptions& o) {
  return apply_one("aten::cosine_embedding_loss",
                   {input1, input2, target, o.margin, number(o.reduction)});
}
LazyTensor hinge_embedding_loss(const LazyTensor& input, const LazyTensor& target,
                                const MarginOptions& o) {
  return apply_one("aten::hinge_embedding_loss", {input, target, o.margin, number(o.reduction)});
}
LazyTensor triplet_margin_loss(const LazyTensor& anchor, const LazyTensor& positive,
                               const LazyTensor& negative, const TripletMarginOptions& o) {
  return apply_one("aten::triplet_margin_loss",
                   {anchor, positive, negative, o.margin, o.p, o.eps, o.swap, number(o.reduction)});
}

}  // namespace composit::nn
