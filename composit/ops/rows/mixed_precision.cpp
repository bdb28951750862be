// What torch.amp.GradScaler calls: gradients are divided by the scale of the loss and looked at,
// and the scale is changed.
#include "composit/ops/functions.h"

namespace composit {
namespace {

LazyTensor is_not_finite(const LazyTensor& x) {
  return apply_one("aten::any",
                   {apply_one("aten::logical_not", {apply_one("aten::isfinite", {x})})});
}

// Gradients times the inverse of the scale, then `found_inf`: 1 where one of them is not finite,
// else as it was.
LazyTensors checked_and_unscaled(const LazyTensors& gradients, const LazyTensor& found_inf,
                                 const LazyTensor& inverse) {
  LazyTensors results;
  LazyTensor found;
  for (const LazyTensor& x : gradients) {
    expect_floating(x.dtype());
    // Of 16-bit floats in float32, rounded once. A scale of 1 leaves all as it is, NaN included.
    results.push_back(to(to(x, DType::float32) * inverse, x.dtype()));
    const LazyTensor one = is_not_finite(x);
    found = found ? apply_one("aten::logical_or", {found, one}) : one;
  }
  results.push_back(found ? where(found, 1, found_inf) : found_inf);
  return results;
}

// In double precision, as the factors are, and rounded once.
LazyTensor times(const LazyTensor& scale, double factor) {
  return to(to(scale, DType::float64) * factor, scale.dtype());
}

LazyTensors updated_scale(const LazyTensor& scale, const LazyTensor& tracker,
                          const LazyTensor& found_inf, double growth, double backoff,
                          int64_t interval) {
  const LazyTensor failed = ne(found_inf, 0), count = tracker + 1, grows = eq(count, interval),
                   grown = times(scale, growth);
  const LazyTensor larger = where(apply_one("aten::isfinite", {grown}), grown, scale);
  return {where(failed, times(scale, backoff), where(grows, larger, scale)),
          to(where(apply_one("aten::logical_or", {failed, grows}), 0, count), tracker.dtype())};
}

}  // namespace

void add_mixed_precision_rows(OperationTable& rows) {
  rows.add({.schema = "aten::_amp_foreach_non_finite_check_and_unscale(Tensor[] self, Tensor "
                      "found_inf, Tensor inv_scale) -> (Tensor[] self_out, Tensor found_inf_out)",
            .decompose =
                [](LazyTensors gradients, LazyTensor found_inf, LazyTensor inverse) {
                  return checked_and_unscaled(gradients, found_inf, inverse);
                },
            .samples = "[f32[2,3],f32[4]] f32[]=[0] f32[] | [f32[3]=[1,inf,2]] f32[]=[0] f32[] | "
                       "[f32[3]=[1,nan,2],f32[2]] f32[]=[0] f32[]",
            .nondifferentiable = "self found_inf inv_scale"});
  rows.add({.schema = "aten::_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor "
                      "found_inf, float scale_growth_factor, float scale_backoff_factor, int "
                      "growth_interval) -> Tensor(a!)",
            .decompose =
                [](LazyTensor scale, LazyTensor tracker, LazyTensor found_inf, double growth,
                   double backoff, int64_t interval) {
                  return updated_scale(scale, tracker, found_inf, growth, backoff, interval);
                },
            .samples =
                "f32[] i32[]<3 f32[]=[0] 2.0 0.5 2000 | f32[] i32[]=[4] f32[]=[0] 2.0 0.5 5 | "
                "f32[] i32[]<3 f32[]=[1] 2.0 0.5 2000",
            .nondifferentiable = "self found_inf"});
}

}  // namespace composit
