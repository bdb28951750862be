// Losses: how far an input is from its target.
//
//   Tensor loss = nn::cross_entropy(logits, labels, {.label_smoothing = 0.1});
//
// Names, arguments and defaults are those of torch.nn.functional. The result is one number, or with
// Reduction::none one of each element or sample.
#pragma once

#include "composit/ops/functions.h"

namespace composit::nn {

// Numbered as ATen's. `batch_mean`: the sum over the number of samples; for kl_div only.
enum class Reduction : int8_t { none, mean, sum, batch_mean };

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                        Reduction reduction = Reduction::mean);

struct SmoothL1Options {
  Reduction reduction = Reduction::mean;
  double beta = 1;  // up to this distance it is quadratic
};
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                      const SmoothL1Options& options = {});

struct HuberOptions {
  Reduction reduction = Reduction::mean;
  double delta = 1;
};
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberOptions& options = {});

struct CrossEntropyOptions {
  Tensor weight = {};           // one per class
  int64_t ignore_index = -100;  // samples of this class do not count
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0;
};
// `input`: logits [samples, classes, ...] or [classes]. `target`: the class of each sample,
// integers [samples, ...], or a probability of each class, of the input's sizes.
Tensor cross_entropy(const Tensor& input, const Tensor& target,
                     const CrossEntropyOptions& options = {});

struct NllOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};
// `input`: logarithms of probabilities, otherwise as cross_entropy.
Tensor nll_loss(const Tensor& input, const Tensor& target, const NllOptions& options = {});

struct BinaryCrossEntropyOptions {
  Tensor weight = {};  // broadcast to the input
  Reduction reduction = Reduction::mean;
};
// `input`: probabilities.
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyOptions& options = {});

struct BinaryCrossEntropyWithLogitsOptions {
  Tensor weight = {};
  Reduction reduction = Reduction::mean;
  Tensor pos_weight = {};  // of positive samples; broadcast to the input
};
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsOptions& options = {});

struct KlDivOptions {
  Reduction reduction = Reduction::mean;
  bool log_target = false;  // the target holds logarithms, too
};
// `input`: logarithms of probabilities; `target`: probabilities.
Tensor kl_div(const Tensor& input, const Tensor& target, const KlDivOptions& options = {});

struct PoissonNllOptions {
  bool log_input = true;  // the input is the logarithm of the expected count
  double eps = 1e-8;      // added to it otherwise
  Reduction reduction = Reduction::mean;
};
// `target`: counts. Without torch's approximation of the term that depends on the target only.
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                        const PoissonNllOptions& options = {});

struct GaussianNllOptions {
  double eps = 1e-6;  // the least variance; no gradient flows to smaller ones
  Reduction reduction = Reduction::mean;
};
// `var`: the variance of each element. The constant log(2 pi) / 2 is left out.
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianNllOptions& options = {});

struct MarginOptions {
  double margin = 0;
  Reduction reduction = Reduction::mean;
};
// `target` is 1 where `input1` should be the larger one, -1 where the other.
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginOptions& options = {});
// `target` is 1 where the two should be alike, -1 where not.
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const MarginOptions& options = {});
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                            const MarginOptions& options = {.margin = 1});

struct TripletMarginOptions {
  double margin = 1;
  double p = 2;
  double eps = 1e-6;
  bool swap = false;
  Reduction reduction = Reduction::mean;
};
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginOptions& options = {});

}  // namespace composit::nn
