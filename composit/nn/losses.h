// Losses: how far an input is from its target.
//
//   LazyTensor loss = nn::cross_entropy(logits, labels, {.label_smoothing = 0.1});
//
// Names, arguments and defaults are those of torch.nn.functional. The result is one number, or with
// Reduction::none one of each element or sample.
#pragma once

#include "composit/ops/functions.h"

namespace composit::nn {

// Numbered as ATen's. `batch_mean`: the sum over the number of samples; for kl_div only.
enum class Reduction : int8_t { none, mean, sum, batch_mean };

// Losses of input and target, which broadcast: the square of their difference; its absolute value;
// log(1 + exp(-target * input)).
LazyTensor mse_loss(const LazyTensor& input, const LazyTensor& target,
                    Reduction reduction = Reduction::mean);
LazyTensor l1_loss(const LazyTensor& input, const LazyTensor& target,
                   Reduction reduction = Reduction::mean);
LazyTensor soft_margin_loss(const LazyTensor& input, const LazyTensor& target,
                            Reduction reduction = Reduction::mean);

// The options of `smooth_l1_loss`.
struct SmoothL1Options {
  Reduction reduction = Reduction::mean;  // how losses of elements are combined
  double beta = 1;                        // up to this distance it is quadratic
};
// Quadratic near the target, linear far from it.
LazyTensor smooth_l1_loss(const LazyTensor& input, const LazyTensor& target,
                          const SmoothL1Options& options = {});

// The options of `huber_loss`.
struct HuberOptions {
  Reduction reduction = Reduction::mean;  // how losses of elements are combined
  double delta = 1;                       // up to this distance it is quadratic
};
// smooth_l1_loss times `delta`.
LazyTensor huber_loss(const LazyTensor& input, const LazyTensor& target,
                      const HuberOptions& options = {});

struct CrossEntropyOptions {
  LazyTensor weight = {};                 // one per class
  int64_t ignore_index = -100;            // samples of this class do not count
  Reduction reduction = Reduction::mean;  // how losses of samples are combined
  double label_smoothing = 0;  // share of each sample that goes to all classes alike, 0 to 1
};
// `input`: logits [samples, classes, ...] or [classes]. `target`: the class of each sample,
// integers [samples, ...], or a probability of each class, of the input's sizes.
LazyTensor cross_entropy(const LazyTensor& input, const LazyTensor& target,
                         const CrossEntropyOptions& options = {});

// The options of `nll_loss`.
struct NllOptions {
  LazyTensor weight = {};                 // one per class
  int64_t ignore_index = -100;            // samples of this class do not count
  Reduction reduction = Reduction::mean;  // how losses of samples are combined
};
// `input`: logarithms of probabilities, otherwise as cross_entropy.
LazyTensor nll_loss(const LazyTensor& input, const LazyTensor& target,
                    const NllOptions& options = {});

struct BinaryCrossEntropyOptions {
  LazyTensor weight = {};                 // broadcast to the input
  Reduction reduction = Reduction::mean;  // how losses of elements are combined
};
// `input`: probabilities.
LazyTensor binary_cross_entropy(const LazyTensor& input, const LazyTensor& target,
                                const BinaryCrossEntropyOptions& options = {});

struct BinaryCrossEntropyWithLogitsOptions {
  LazyTensor weight = {};                 // broadcast to the input
  Reduction reduction = Reduction::mean;  // how losses of elements are combined
  LazyTensor pos_weight = {};             // weight of positive samples; broadcasts to the input
};
// `input`: logits; `target`: from 0 to 1.
LazyTensor binary_cross_entropy_with_logits(
    const LazyTensor& input, const LazyTensor& target,
    const BinaryCrossEntropyWithLogitsOptions& options = {});

struct KlDivOptions {
  Reduction reduction = Reduction::mean;  // how losses of elements are combined
  bool log_target = false;                // the target holds logarithms, too
};
// `input`: logarithms of probabilities; `target`: probabilities.
LazyTensor kl_div(const LazyTensor& input, const LazyTensor& target,
                  const KlDivOptions& options = {});

// The options of `poisson_nll_loss`.
struct PoissonNllOptions {
  bool log_input = true;                  // the input is the logarithm of the expected count
  double eps = 1e-8;                      // added to it otherwise
  Reduction reduction = Reduction::mean;  // how losses of elements are combined
};
// `target`: counts. Without torch's approximation of the term that depends on the target only.
LazyTensor poisson_nll_loss(const LazyTensor& input, const LazyTensor& target,
                            const PoissonNllOptions& options = {});

// The options of `gaussian_nll_loss`.
struct GaussianNllOptions {
  double eps = 1e-6;                      // the least variance; no gradient flows to smaller ones
  Reduction reduction = Reduction::mean;  // how losses of elements are combined
};
// `var`: the variance of each element. The constant log(2 pi) / 2 is left out.
LazyTensor gaussian_nll_loss(const LazyTensor& input, const LazyTensor& target,
                             const LazyTensor& var, const GaussianNllOptions& options = {});

// The options of losses with a margin.
struct MarginOptions {
  double margin = 0;                      // see each loss
  Reduction reduction = Reduction::mean;  // how losses of samples are combined
};
// `target` is 1 where `input1` should be the larger one, -1 where the other.
LazyTensor margin_ranking_loss(const LazyTensor& input1, const LazyTensor& input2,
                               const LazyTensor& target, const MarginOptions& options = {});
// `target` is 1 where the two should be alike, -1 where not.
LazyTensor cosine_embedding_loss(const LazyTensor& input1, const LazyTensor& input2,
                                 const LazyTensor& target, const MarginOptions& options = {});
// `input`: distances; `target` is 1 where they should be small, -1 where at least the margin.
LazyTensor hinge_embedding_loss(const LazyTensor& input, const LazyTensor& target,
                                const MarginOptions& options = {.margin = 1});

// The options of `triplet_margin_loss`.
struct TripletMarginOptions {
  double margin = 1;  // how much more distant the negative should be
  double p = 2;       // distances are p-norms
  double eps = 1e-6;  // added to each difference
  bool swap = false;  // the negative is compared with the positive, too, and the nearer one counts
  Reduction reduction = Reduction::mean;  // how losses of samples are combined
};
// All three [samples, size]: the anchor should be nearer to the positive than to the negative.
LazyTensor triplet_margin_loss(const LazyTensor& anchor, const LazyTensor& positive,
                               const LazyTensor& negative,
                               const TripletMarginOptions& options = {});

}  // namespace composit::nn
