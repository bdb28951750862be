// Losses.
#include "frontends/python/bindings/composit/nn.h"

namespace composit::python {
namespace {

using Text = std::string;

using Distance = LazyTensor (*)(const LazyTensor&, const LazyTensor&, nn::Reduction);
void distance(const Functional& def, const char* name, Distance function) {
  def(
      name,
      [function](const NdArray& input, const NdArray& target, const Text& reduction) {
        return NdArray(function(input, target, reduction_named(reduction)));
      },
      "input"_a, "target"_a, "reduction"_a = "mean");
}

void add_distances(const Functional& def) {
  distance(def, "mse_loss", &nn::mse_loss);
  distance(def, "l1_loss", &nn::l1_loss);
  distance(def, "soft_margin_loss", &nn::soft_margin_loss);
  def(
      "smooth_l1_loss",
      [](const NdArray& input, const NdArray& target, const Text& reduction, double beta) {
        return NdArray(nn::smooth_l1_loss(input, target,
                                          {.reduction = reduction_named(reduction), .beta = beta}));
      },
      "input"_a, "target"_a, "reduction"_a = "mean", "beta"_a = 1.0);
  def(
      "huber_loss",
      [](const NdArray& input, const NdArray& target, const Text& reduction, double delta) {
        return NdArray(nn::huber_loss(input, target,
                                      {.reduction = reduction_named(reduction), .delta = delta}));
      },
      "input"_a, "target"_a, "reduction"_a = "mean", "delta"_a = 1.0);
}

void add_classification(const Functional& def) {
  def(
      "cross_entropy",
      [](const NdArray& input, const NdArray& target, const OptionalArray& weight,
         int64_t ignore_index, const Text& reduction, double label_smoothing) {
        return NdArray(nn::cross_entropy(input, target,
                                         {.weight = tensor(weight),
                                          .ignore_index = ignore_index,
                                          .reduction = reduction_named(reduction),
                                          .label_smoothing = label_smoothing}));
      },
      "input"_a, "target"_a, "weight"_a = py::none(), py::kw_only(), "ignore_index"_a = -100,
      "reduction"_a = "mean", "label_smoothing"_a = 0.0);
  def(
      "nll_loss",
      [](const NdArray& input, const NdArray& target, const OptionalArray& weight,
         int64_t ignore_index, const Text& reduction) {
        return NdArray(nn::nll_loss(input, target,
                                    {.weight = tensor(weight),
                                     .ignore_index = ignore_index,
                                     .reduction = reduction_named(reduction)}));
      },
      "input"_a, "target"_a, "weight"_a = py::none(), py::kw_only(), "ignore_index"_a = -100,
      "reduction"_a = "mean");
  def(
      "binary_cross_entropy",
      [](const NdArray& input, const NdArray& target, const OptionalArray& weight,
         const Text& reduction) {
        return NdArray(nn::binary_cross_entropy(
            input, target, {.weight = tensor(weight), .reduction = reduction_named(reduction)}));
      },
      "input"_a, "target"_a, "weight"_a = py::none(), py::kw_only(), "reduction"_a = "mean");
  def(
      "binary_cross_entropy_with_logits",
      [](const NdArray& input, const NdArray& target, const OptionalArray& weight,
         const Text& reduction, const OptionalArray& pos_weight) {
        return NdArray(
            nn::binary_cross_entropy_with_logits(input, target,
                                                 {.weight = tensor(weight),
                                                  .reduction = reduction_named(reduction),
                                                  .pos_weight = tensor(pos_weight)}));
      },
      "input"_a, "target"_a, "weight"_a = py::none(), py::kw_only(), "reduction"_a = "mean",
      "pos_weight"_a = py::none());
}

void add_likelihoods(const Functional& def) {
  def(
      "kl_div",
      [](const NdArray& input, const NdArray& target, const Text& reduction, bool log_target) {
        return NdArray(nn::kl_div(
            input, target, {.reduction = reduction_named(reduction), .log_target = log_target}));
      },
      "input"_a, "target"_a, py::kw_only(), "reduction"_a = "mean", "log_target"_a = false);
  def(
      "poisson_nll_loss",
      [](const NdArray& input, const NdArray& target, bool log_input, double eps,
         const Text& reduction) {
        return NdArray(nn::poisson_nll_loss(
            input, target,
            {.log_input = log_input, .eps = eps, .reduction = reduction_named(reduction)}));
      },
      "input"_a, "target"_a, py::kw_only(), "log_input"_a = true, "eps"_a = 1e-8,
      "reduction"_a = "mean");
  def(
      "gaussian_nll_loss",
      [](const NdArray& input, const NdArray& target, const NdArray& var, double eps,
         const Text& reduction) {
        return NdArray(nn::gaussian_nll_loss(
            input, target, var, {.eps = eps, .reduction = reduction_named(reduction)}));
      },
      "input"_a, "target"_a, "var"_a, py::kw_only(), "eps"_a = 1e-6, "reduction"_a = "mean");
}

void add_margins(const Functional& def) {
  using Pair = LazyTensor (*)(const LazyTensor&, const LazyTensor&, const LazyTensor&,
                              const nn::MarginOptions&);
  const std::pair<const char*, Pair> pairs[] = {
      {"margin_ranking_loss", &nn::margin_ranking_loss},
      {"cosine_embedding_loss", &nn::cosine_embedding_loss}};
  for (const auto& [name, function] : pairs)
    def(
        name,
        [function = function](const NdArray& a, const NdArray& b, const NdArray& target,
                              double margin, const Text& reduction) {
          return NdArray(
              function(a, b, target, {.margin = margin, .reduction = reduction_named(reduction)}));
        },
        "input1"_a, "input2"_a, "target"_a, py::kw_only(), "margin"_a = 0.0,
        "reduction"_a = "mean");
  def(
      "hinge_embedding_loss",
      [](const NdArray& input, const NdArray& target, double margin, const Text& reduction) {
        return NdArray(nn::hinge_embedding_loss(
            input, target, {.margin = margin, .reduction = reduction_named(reduction)}));
      },
      "input"_a, "target"_a, py::kw_only(), "margin"_a = 1.0, "reduction"_a = "mean");
  def(
      "triplet_margin_loss",
      [](const NdArray& anchor, const NdArray& positive, const NdArray& negative, double margin,
         double p, double eps, bool swap, const Text& reduction) {
        return NdArray(nn::triplet_margin_loss(anchor, positive, negative,
                                               {.margin = margin,
                                                .p = p,
                                                .eps = eps,
                                                .swap = swap,
                                                .reduction = reduction_named(reduction)}));
      },
      "anchor"_a, "positive"_a, "negative"_a, "margin"_a = 1.0, "p"_a = 2.0, "eps"_a = 1e-6,
      "swap"_a = false, "reduction"_a = "mean");
}

}  // namespace

nn::Reduction reduction_named(const std::string& name) {
  if (name == "mean") return nn::Reduction::mean;
  if (name == "sum") return nn::Reduction::sum;
  if (name == "none") return nn::Reduction::none;
  if (name == "batchmean") return nn::Reduction::batch_mean;
  throw UserError("[loss] expected the reduction 'mean', 'sum', 'none' or 'batchmean', received '" +
                  name + "'");
}

void add_nn_losses(const Functional& def) {
  add_distances(def);
  add_classification(def);
  add_likelihoods(def);
  add_margins(def);
}

}  // namespace composit::python
