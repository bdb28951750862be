// Dropout as far as it draws nothing: outside of training, and where everything is kept or dropped.
#include "composit/ops/functions.h"

namespace composit {

static LazyTensor dropped(const LazyTensor& x, double p, bool train) {
  if (p < 0 || p > 1)
    throw UserError("expected a probability from 0 to 1, received " + std::to_string(p));
  if (!train || p == 0) return x;
  if (p == 1) return x * 0;
  throw UserError(
      "training draws random numbers, which a decomposition does not; capture in eval mode, or "
      "apply a mask that is an input");
}

void add_dropout_rows(OperationTable& rows) {
  rows.add(
      {.schema = "aten::dropout(Tensor input, float p, bool train) -> Tensor",
       .kind = OpKind::random,
       .decompose = [](LazyTensor x, double p,
                       bool train) { return LazyTensors{dropped(x, p, train)}; },
       .samples = "f32[2,3] 0.5 False | f32[2,3] 0.0 True | f32[2,3] 1.0 True",
       .bad = "f32[2] 0.5 True: random numbers | f32[2] 1.5 False: from 0 to 1",
       .also = {"aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout"}});
  rows.add(
      {.schema = "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
       .kind = OpKind::random,
       .decompose =
           [](LazyTensor x, double p, std::optional<bool> train) {
             const bool kept = !train.value_or(true) || p < 1;
             return LazyTensors{dropped(x, p, train.value_or(true)),
                                full(x.sizes(), Number(Scalar(kept)), DType::bool_)};
           },
       // The mask keeps with probability 1 - p.
       .opened =
           [](const Opening& open, LazyTensor x, double p) {
             const LazyTensor mask =
                 open.draw("aten::bernoulli.p", {{Symbol("p"), 1 - p}}, open.results[1]);
             return LazyTensors{x * mask * (p < 1 ? 1 / (1 - p) : 0), mask};
           },
       .samples = "f32[2,3] 0.5 False | f32[2,3] 0.0 True | f32[2,3] 1.0 None",
       .bad = "f32[2] 0.5 None: random numbers"});
  rows.add({.schema = "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) "
                      "-> Tensor",
            .kind = OpKind::random,
            .scalar = [](Expr g, Expr mask, double scale) { return g * (mask * scale); },
            .samples = "f32[2,3] bool[2,3] 2.0"});
}

}  // namespace composit
