#include "examples/objectives/lstm.h"

#include "composit/ad/chain_rule.h"
#include "composit/numpy/numpy.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "examples/objectives/uniform.h"

namespace objectives {
namespace {

namespace cnp = composit::numpy;

struct LayerState {
  cnp::NdArray hidden, cell;
};

cnp::NdArray sigmoid(const cnp::NdArray& x) { return composit::sigmoid(x); }

// layer: [8, h].
LayerState step(const cnp::NdArray& layer, const LayerState& state, const cnp::NdArray& x) {
  const auto gate = [&](int number, const cnp::NdArray& from) {
    return from * layer[number] + layer[4 + number];
  };
  const cnp::NdArray forget = sigmoid(gate(0, x));
  const cnp::NdArray ingate = sigmoid(gate(1, state.hidden));
  const cnp::NdArray outgate = sigmoid(gate(2, x));
  const cnp::NdArray change = cnp::tanh(gate(3, state.hidden));
  const cnp::NdArray cell = state.cell * forget + ingate * change;
  return {outgate * cnp::tanh(cell), cell};
}

// The prediction for the character after x; `states`, one per layer, go on to the next.
cnp::NdArray predict(const LstmParameters& parameters, std::vector<LayerState>& states,
                     const cnp::NdArray& x) {
  cnp::NdArray flow = x * parameters.ends[0];
  for (size_t layer = 0; layer < states.size(); ++layer) {
    states[layer] = step(parameters.layers[static_cast<int64_t>(layer)], states[layer], flow);
    flow = states[layer].hidden;
  }
  return flow * parameters.ends[1] + parameters.ends[2];
}

cnp::NdArray log_likelihood(const cnp::NdArray& prediction, const cnp::NdArray& character) {
  const cnp::NdArray normaliser = cnp::log(cnp::sum(cnp::exp(prediction)) + 2);
  return cnp::sum(character * (prediction - normaliser));
}

}  // namespace

cnp::NdArray lstm(const LstmParameters& parameters, const cnp::NdArray& state,
                  const cnp::NdArray& sequence) {
  composit::LazyTensors initial;  // hidden and cell of each layer
  for (int64_t layer = 0; layer < state.size(0); ++layer)
    for (int64_t part : {0, 1}) initial.push_back(state[{layer, part}]);

  const auto trip = [&](const composit::LazyTensors& before,
                        const composit::LazyTensors& characters) {
    std::vector<LayerState> states;
    for (size_t i = 0; i < before.size(); i += 2) states.push_back({before[i], before[i + 1]});
    const cnp::NdArray prediction = predict(parameters, states, characters[0]);
    composit::ScanStep after;
    after.outputs = {log_likelihood(prediction, characters[1])};
    for (const LayerState& layer : states)
      after.carried.insert(after.carried.end(), {layer.hidden, layer.cell});
    return after;
  };
  const cnp::NdArray now = sequence[{cnp::slice({}, -1)}], next = sequence[{cnp::slice(1, {})}];
  const cnp::NdArray likelihoods = composit::scan(trip, initial, {now, next}).outputs[0];
  return -cnp::sum(likelihoods) / next.size();
}

Problem lstm_problem(const LstmSizes& sizes, composit::DType dtype) {
  const auto [l, c, h] = sizes;
  Inputs inputs;
  const LstmParameters parameters = {
      inputs.add("layers", uniform({.sizes = {l, 8, h}, .seed = 11, .low = -1}, dtype)),
      inputs.add("ends", uniform({.sizes = {3, h}, .seed = 12, .low = -1}, dtype))};
  const cnp::NdArray state = inputs.add("state", uniform({.sizes = {l, 2, h}, .seed = 13}, dtype));
  const cnp::NdArray sequence =
      inputs.add("sequence", uniform({.sizes = {c, h}, .seed = 14}, dtype));

  const cnp::NdArray loss = lstm(parameters, state, sequence);
  const auto gradients = composit::grad(loss, {parameters.layers, parameters.ends});
  return inputs.problem(
      "lstm_l" + std::to_string(l) + "_c" + std::to_string(c) + "_h" + std::to_string(h), {loss},
      {loss, gradients[0], gradients[1]});
}

}  // namespace objectives
