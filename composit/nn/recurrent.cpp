#include "composit/nn/recurrent.h"

namespace composit::nn {
namespace {

LazyTensors run(std::string_view name, const LazyTensor& x, const ArgumentValue& states,
                const std::vector<RecurrentWeights>& weights, const RecurrentOptions& o) {
  const size_t directions = o.bidirectional ? 2 : 1;
  if (weights.empty() || weights.size() % directions != 0)
    throw UserError("[" + std::string(name) + "] expected weights for each layer and direction, " +
                    "received " + std::to_string(weights.size()) + " for " +
                    std::to_string(directions) + " directions");
  const bool has_biases = weights[0].b_ih.defined();
  LazyTensors parameters;
  for (const RecurrentWeights& layer : weights) {
    if (layer.b_ih.defined() != has_biases || layer.b_hh.defined() != has_biases)
      throw UserError("[" + std::string(name) +
                      "] expected biases for all layers, or for none, received them for some");
    parameters.insert(parameters.end(), {layer.w_ih, layer.w_hh});
    if (has_biases) parameters.insert(parameters.end(), {layer.b_ih, layer.b_hh});
  }
  constexpr double kNoDropout = 0;
  return apply(name, {x, states, parameters, has_biases,
                      static_cast<int64_t>(weights.size() / directions), kNoDropout,
                      /*train=*/false, o.bidirectional, o.batch_first});
}

RecurrentResult run_plain(std::string_view name, const LazyTensor& x, const LazyTensor& h,
                          const std::vector<RecurrentWeights>& weights, const RecurrentOptions& o) {
  const LazyTensors results = run(name, x, h, weights, o);
  return {results[0], results[1]};
}

}  // namespace

RecurrentResult rnn_tanh(const LazyTensor& x, const LazyTensor& h,
                         const std::vector<RecurrentWeights>& weights,
                         const RecurrentOptions& options) {
  return run_plain("aten::rnn_tanh.input", x, h, weights, options);
}
RecurrentResult rnn_relu(const LazyTensor& x, const LazyTensor& h,
                         const std::vector<RecurrentWeights>& weights,
                         const RecurrentOptions& options) {
  return run_plain("aten::rnn_relu.input", x, h, weights, options);
}
RecurrentResult gru(const LazyTensor& x, const LazyTensor& h,
                    const std::vector<RecurrentWeights>& weights, const RecurrentOptions& options) {
  return run_plain("aten::gru.input", x, h, weights, options);
}
LstmResult lstm(const LazyTensor& x, const LazyTensor& h, const LazyTensor& c,
                const std::vector<RecurrentWeights>& weights, const RecurrentOptions& options) {
  const LazyTensors results = run("aten::lstm.input", x, LazyTensors{h, c}, weights, options);
  return {results[0], results[1], results[2]};
}

}  // namespace composit::nn
