#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

// The negative of each target's entry of `x` [batch, classes, …], weighted and reduced.
LazyTensor negative_log_likelihood(const OperatorCall& call, const LazyTensor& x) {
  if (x.rank() < 2) call.refuse("expected a batch and classes");
  const LazyTensor target = cast(call.operand(1), DType::int64);
  const std::string reduction = call.text("reduction", "mean");
  expect_one_of("reduction", reduction, {"none", "mean", "sum"});
  LazyTensor place = target, weight;
  LazyTensor counts;
  if (call.has("ignore_index")) {
    counts = ne(target, Number(call.integer("ignore_index")));
    place = where(counts, target, 0);
  }
  if (call.optional(2))
    weight = reshape(
        op("aten::index_select", {call.operand(2), int64_t{0}, reshape(place, {place.numel()})}),
        place.sizes());
  if (counts) {
    const LazyTensor counted = cast(counts, x.dtype());
    weight = weight ? weight * counted : counted;
  }
  const LazyTensor entry = op("aten::gather", {x, int64_t{1}, unsqueeze(place, 1)});
  LazyTensor loss = -reshape(entry, place.sizes());
  if (counts) loss = where(counts, loss, zeros_like(loss));
  if (weight) loss = loss * weight;
  if (reduction == "none") return loss;
  if (reduction == "sum") return sum(loss);
  return weight ? sum(loss) / sum(weight) : mean(loss);
}

LazyTensors nll_loss(const OperatorCall& call) {
  return {negative_log_likelihood(call, call.operand(0))};
}

LazyTensors cross_entropy(const OperatorCall& call) {
  const LazyTensor logarithms = op("aten::log_softmax.int", {call.operand(0), int64_t{1}});
  return {negative_log_likelihood(call, logarithms), logarithms};
}

}  // namespace

void add_loss_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"NegativeLogLikelihoodLoss", nll_loss},
                           {"SoftmaxCrossEntropyLoss", cross_entropy}});
}

}  // namespace composit::onnx_read
