// An operation as one adds it: this file is put into composit/ops/rows of a copy of the sources.
#include "composit/ops/functions.h"

namespace composit {

void add_scratch_row_rows(OperationTable& rows) {
  rows.add({.schema = "scratch::squash(Tensor x, Tensor slope, float bound=1.0) -> Tensor",
            .promote = Promote::to_float,
            .scalar =
                [](Expr x, Expr slope, double bound) {
                  if (bound <= 0) throw UserError("expected a bound above 0");
                  return bound * tanh(slope * x);
                },
            .vjp =
                [](Vjp v, LazyTensor x, LazyTensor slope, double bound) {
                  const LazyTensor scaled = v.results[0] * (1 / bound);
                  const LazyTensor inner = v.cotangents[0] * bound * (1.0 - scaled * scaled);
                  return Gradients{sum_to_size(inner * slope, x.sizes()),
                                   sum_to_size(inner * x, slope.sizes())};
                },
            .samples = "f32[2,3] f32[3] | f32[2,3] f32[2,1] 2.5 | i64[3] f32[]",
            .bad = "f32[2] f32[3]: do not broadcast | f32[2] f32[2] 0.0: a bound above 0"});
}

}  // namespace composit
