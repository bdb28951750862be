#include "composit/nn/losses.h"

namespace composit::nn {

static int64_t number(Reduction reduction) { return static_cast<int64_t>(reduction); }

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  return apply_one("aten::mse_loss", {input, target, number(reduction)});
}
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  return apply_one("aten::l1_loss", {input, target, number(reduction)});
}
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  return apply_one("aten::soft_margin_loss", {input, target, number(reduction)});
}
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1Options& o) {
  return apply_one("aten::smooth_l1_loss", {input, target, number(o.reduction), o.beta});
}
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberOptions& o) {
  return apply_one("aten::huber_loss", {input, target, number(o.reduction), o.delta});
}

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o) {
  return apply_one("aten::cross_entropy_loss", {input, target, o.weight, number(o.reduction),
                                                o.ignore_index, o.label_smoothing});
}
Tensor nll_loss(const Tensor& input, const Tensor& target, const NllOptions& o) {
  return apply_one("aten::nll_loss_nd",
                   {input, target, o.weight, number(o.reduction), o.ignore_index});
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyOptions& o) {
  return apply_one("aten::binary_cross_entropy", {input, target, o.weight, number(o.reduction)});
}
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsOptions& o) {
  return apply_one("aten::binary_cross_entropy_with_logits",
                   {input, target, o.weight, o.pos_weight, number(o.reduction)});
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KlDivOptions& o) {
  const bool per_batch = o.reduction == Reduction::batch_mean;
  const Tensor loss =
      apply_one("aten::kl_div",
                {input, target, number(per_batch ? Reduction::sum : o.reduction), o.log_target});
  return per_batch && input.rank() > 0 ? loss / input.size(0) : loss;
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNllOptions& o) {
  const Tensor loss =
      o.log_input ? exp(input) - target * input : input - target * log(input + o.eps);
  return reduced(loss, number(o.reduction));
}
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianNllOptions& o) {
  const Tensor variance = apply_one("aten::clamp_min", {var, o.eps});
  return reduced((log(variance) + square(input - target) / variance) / 2, number(o.reduction));
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginOptions& o) {
  return apply_one("aten::margin_ranking_loss",
                   {input1, input2, target, o.margin, number(o.reduction)});
}
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const MarginOptions& o) {
  return apply_one("aten::cosine_embedding_loss",
                   {input1, input2, target, o.margin, number(o.reduction)});
}
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, const MarginOptions& o) {
  return apply_one("aten::hinge_embedding_loss", {input, target, o.margin, number(o.reduction)});
}
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginOptions& o) {
  return apply_one("aten::triplet_margin_loss",
                   {anchor, positive, negative, o.margin, o.p, o.eps, o.swap, number(o.reduction)});
}

}  // namespace composit::nn
