// Batch norms whose schemas say that they write the running values. New values of these are the
// last results, outside of training the old ones.
#include "composit/ops/functions.h"

namespace composit {
namespace {

using Optional = std::optional<LazyTensor>;

LazyTensors updating(const LazyTensor& x, const Optional& weight, const Optional& bias,
                     const LazyTensor& mean, const LazyTensor& var, bool training, double momentum,
                     double eps) {
  LazyTensors results =
      apply("aten::native_batch_norm", {x, weight, bias, mean, var, training, momentum, eps});
  if (!training) results.insert(results.end(), {mean, var});
  return results;
}

// In training, with the place that some devices need for what their backward pass reads: empty.
LazyTensors updating_with_reserve(const LazyTensor& x, const Optional& weight, const Optional& bias,
                                  const LazyTensor& mean, const LazyTensor& var, double momentum,
                                  double eps) {
  LazyTensors results = updating(x, weight, bias, mean, var, true, momentum, eps);
  results.insert(results.begin() + 3, zeros({0}, DType::uint8));
  return results;
}

}  // namespace

void add_batch_norm_updates_rows(OperationTable& rows) {
  constexpr std::string_view kFixed = "running_mean running_var";
  rows.add({.schema = "aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, "
                      "Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float "
                      "momentum, float eps) -> (Tensor, Tensor, Tensor)",
            .kind = OpKind::normalisation,
            .decompose =
                [](LazyTensor x, Optional weight, Optional bias, LazyTensor mean, LazyTensor var,
                   bool training, double momentum, double eps) {
                  return updating(x, weight, bias, mean, var, training, momentum, eps);
                },
            .samples = "f32[4,3,2] f32[3] f32[3] f32[3] f32[3]=0.5..2 True 0.1 1e-05 | f32[4,3] "
                       "f32[3] f32[3] f32[3] f32[3]=0.5..2 False 0.1 1e-05",
            .bad = "f32[3] None None f32[3] f32[3] True 0.1 1e-05: 2 axes",
            .nondifferentiable = kFixed});
  for (const std::string_view schema :
       {"aten::_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) "
        "running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, "
        "Tensor, Tensor)",
        "aten::_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, "
        "Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, "
        "Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)"})
    rows.add({.schema = schema,
              .kind = OpKind::normalisation,
              .decompose =
                  [](LazyTensor x, Optional weight, Optional bias, LazyTensor mean, LazyTensor var,
                     double momentum, double eps) {
                    return updating_with_reserve(x, weight, bias, mean, var, momentum, eps);
                  },
              .samples = "f32[4,3,2] f32[3] f32[3] f32[3] f32[3]=0.5..2 0.1 1e-05",
              .nondifferentiable = kFixed});
}

}  // namespace composit
