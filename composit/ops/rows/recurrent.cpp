// Recurrent networks, step by step: LSTM, GRU, and plain cells with tanh or relu.
#include <algorithm>

#include "composit/ops/linear_algebra.h"

namespace composit {
namespace {

// Weights of one layer in one direction. Bias may be missing; `projection` is an LSTM's.
struct Weights {
  LazyTensor input, hidden;
  std::optional<LazyTensor> input_bias, hidden_bias, projection;
};

// The state that a cell carries from step to step: h, and an LSTM's c.
using State = LazyTensors;

// One step; `x` is the input's part, W x + b, worked out for all steps at once.
using Cell = State (*)(const LazyTensor& x, const State& state, const Weights& w);

LazyTensors gates_of(const LazyTensor& x, int64_t count) {
  if (x.size(-1) % count != 0)
    throw UserError("expected weights of " + std::to_string(count) + " gates, received sizes " +
                    str(x.sizes()));
  return apply("aten::chunk", {x, count, -1});
}

State lstm_step(const LazyTensor& x, const State& state, const Weights& w) {
  const LazyTensors gates = gates_of(x + linear(state[0], w.hidden, w.hidden_bias), 4);
  const LazyTensor c = sigmoid(gates[1]) * state[1] + sigmoid(gates[0]) * tanh(gates[2]);
  const LazyTensor h = sigmoid(gates[3]) * tanh(c);
  return {w.projection ? linear(h, *w.projection, {}) : h, c};
}

State gru_step(const LazyTensor& x, const State& state, const Weights& w) {
  const LazyTensors in = gates_of(x, 3),
                    kept = gates_of(linear(state[0], w.hidden, w.hidden_bias), 3);
  const LazyTensor reset = sigmoid(in[0] + kept[0]), update = sigmoid(in[1] + kept[1]);
  const LazyTensor candidate = tanh(in[2] + reset * kept[2]);
  return {(state[0] - candidate) * update + candidate};
}

State tanh_step(const LazyTensor& x, const State& state, const Weights& w) {
  return {tanh(x + linear(state[0], w.hidden, w.hidden_bias))};
}
State relu_step(const LazyTensor& x, const State& state, const Weights& w) {
  return {relu(x + linear(state[0], w.hidden, w.hidden_bias))};
}

// One layer in one direction over x of [time, batch, features]: outputs of all steps, last state.
std::pair<LazyTensor, State> run(Cell cell, const LazyTensor& x, State state, const Weights& w,
                                 bool backwards) {
  const LazyTensor inputs = linear(x, w.input, w.input_bias);
  const int64_t steps = x.size(0);
  LazyTensors outputs(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t time = backwards ? steps - 1 - i : i;
    state = cell(select_at(inputs, 0, time), state, w);
    outputs[static_cast<size_t>(time)] = state[0];
  }
  return {apply_one("aten::stack", {outputs, 0}), state};
}

struct Network {
  bool has_bias;
  int64_t layers;
  bool bidirectional, batch_first;

  int64_t directions() const { return bidirectional ? 2 : 1; }
};

// Parameters in torch's order: per layer and direction w_ih, w_hh, b_ih, b_hh, w_hr.
std::vector<Weights> weights_of(const Network& net, const LazyTensors& parameters, bool projected) {
  const size_t per_cell = 2 + (net.has_bias ? 2 : 0) + (projected ? 1 : 0);
  const auto cells = static_cast<size_t>(net.layers * net.directions());
  if (parameters.size() != cells * per_cell)
    throw UserError("expected " + std::to_string(cells * per_cell) + " parameters, received " +
                    std::to_string(parameters.size()));
  std::vector<Weights> all;
  for (size_t i = 0; i < parameters.size(); i += per_cell) {
    Weights w{.input = parameters[i],
              .hidden = parameters[i + 1],
              .input_bias = {},
              .hidden_bias = {},
              .projection = {}};
    if (net.has_bias) {
      w.input_bias = parameters[i + 2];
      w.hidden_bias = parameters[i + 3];
    }
    if (projected) w.projection = parameters[i + per_cell - 1];
    all.push_back(std::move(w));
  }
  return all;
}

void expect_deterministic(double dropout, bool train) {
  if (dropout > 0 && train)
    throw UserError(
        "dropout draws random numbers, which a decomposition does not; apply it outside");
}

// Outputs, then the last value of each state: [layers * directions, batch, features].
LazyTensors recurrent(Cell cell, const Network& net, LazyTensor x, const LazyTensors& begin,
                      const std::vector<Weights>& weights) {
  if (x.rank() != 3)
    throw UserError("expected an input of 3 axes, received sizes " + str(x.sizes()));
  if (net.batch_first) x = transpose(x, 0, 1);
  if (x.size(0) == 0) throw UserError("expected a step at least, received sizes " + str(x.sizes()));
  std::vector<LazyTensors> last(begin.size());
  for (int64_t layer = 0; layer < net.layers; ++layer) {
    LazyTensors outputs;
    for (int64_t direction = 0; direction < net.directions(); ++direction) {
      const int64_t number = layer * net.directions() + direction;
      State state;
      for (const LazyTensor& all : begin) state.push_back(select_at(all, 0, number));
      const auto [output, end] =
          run(cell, x, state, weights[static_cast<size_t>(number)], direction == 1);
      outputs.push_back(output);
      for (size_t i = 0; i < end.size(); ++i) last[i].push_back(end[i]);
    }
    x = outputs.size() == 1 ? outputs[0] : cat(outputs, -1);
  }
  LazyTensors results{net.batch_first ? transpose(x, 0, 1) : x};
  for (const LazyTensors& states : last) results.push_back(apply_one("aten::stack", {states, 0}));
  return results;
}

Weights one_cell(const LazyTensor& input, const LazyTensor& hidden,
                 const std::optional<LazyTensor>& input_bias,
                 const std::optional<LazyTensor>& hidden_bias) {
  return {input, hidden, input_bias, hidden_bias, {}};
}

void add_lstm(OperationTable& rows) {
  rows.add(
      {.schema = "aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, "
                 "int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) "
                 "-> (Tensor, Tensor, Tensor)",
       .kind = OpKind::contraction,
       .decompose =
           [](LazyTensor x, LazyTensors states, LazyTensors parameters, bool has_bias,
              int64_t layers, double dropout, bool train, bool bidirectional, bool batch_first) {
             expect_deterministic(dropout, train);
             if (states.size() != 2)
               throw UserError("expected states h and c, received " +
                               std::to_string(states.size()));
             const Network net{has_bias, layers, bidirectional, batch_first};
             const bool projected = states[0].size(-1) != states[1].size(-1);
             return recurrent(lstm_step, net, x, states, weights_of(net, parameters, projected));
           },
       .samples =
           "f32[3,2,4] [f32[1,2,3],f32[1,2,3]] [f32[12,4],f32[12,3],f32[12],f32[12]] True 1 0.0 "
           "False False False | f32[2,3,1] [f32[4,2,1],f32[4,2,1]] "
           "[f32[4,1],f32[4,1],f32[4,1],f32[4,1],f32[4,2],f32[4,1],f32[4,2],f32[4,1]] False 2 0.0 "
           "True True True | f32[2,1,2] [f32[1,1,2],f32[1,1,3]] "
           "[f32[12,2],f32[12,2],f32[12],f32[12],f32[2,3]] True 1 0.0 False False False | "
           "f32[2,1,2] [f32[1,1,2],f32[1,1,2]] [f32[8,2],f32[8,2]] False 1 0.5 False False False",
       .bad = "f32[2,4] [f32[1,3],f32[1,3]] [f32[12,4],f32[12,3]] False 1 0.0 False False False: "
              "of 3 axes | f32[3,2,4] [f32[1,2,3]] [f32[12,4],f32[12,3]] False 1 0.0 False False "
              "False: h and "
              "c | f32[3,2,4] [f32[1,2,3],f32[1,2,3]] [f32[12,4]] False 1 0.0 False False False: 2 "
              "parameters | f32[3,2,4] [f32[1,2,3],f32[1,2,3]] [f32[12,4],f32[12,3]] False 1 0.5 "
              "True False False: dropout"});
  rows.add({.schema = "aten::lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, "
                      "Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
            .kind = OpKind::contraction,
            .decompose =
                [](LazyTensor x, LazyTensors states, LazyTensor input, LazyTensor hidden,
                   std::optional<LazyTensor> input_bias, std::optional<LazyTensor> hidden_bias) {
                  if (states.size() != 2)
                    throw UserError("expected states h and c, received " +
                                    std::to_string(states.size()));
                  return lstm_step(linear(x, input, input_bias), states,
                                   one_cell(input, hidden, input_bias, hidden_bias));
                },
            .samples = "f32[2,4] [f32[2,3],f32[2,3]] f32[12,4] f32[12,3] f32[12] f32[12] | "
                       "f32[2,4] [f32[2,3],f32[2,3]] f32[12,4] f32[12,3]",
            .bad = "f32[2,4] [f32[2,3]] f32[12,4] f32[12,3]: h and c"});
}

// Networks with one state.
template <Cell kCell>
void add_plain(OperationTable& rows, std::string_view network, std::string_view cell,
               std::string_view samples, std::string_view cell_samples) {
  rows.add(
      {.schema = network,
       .kind = OpKind::contraction,
       .decompose =
           [](LazyTensor x, LazyTensor state, LazyTensors parameters, bool has_bias, int64_t layers,
              double dropout, bool train, bool bidirectional, bool batch_first) {
             expect_deterministic(dropout, train);
             const Network net{has_bias, layers, bidirectional, batch_first};
             return recurrent(kCell, net, x, {state}, weights_of(net, parameters, false));
           },
       .samples = samples});
  rows.add({.schema = cell,
            .kind = OpKind::contraction,
            .decompose =
                [](LazyTensor x, LazyTensor state, LazyTensor input, LazyTensor hidden,
                   std::optional<LazyTensor> input_bias, std::optional<LazyTensor> hidden_bias) {
                  return kCell(linear(x, input, input_bias), {state},
                               one_cell(input, hidden, input_bias, hidden_bias));
                },
            .samples = cell_samples});
}

constexpr std::string_view kPlainSamples =
    "f32[3,2,4] f32[1,2,3] [f32[3,4],f32[3,3],f32[3],f32[3]] True 1 0.0 False False False | "
    "f32[2,3,1] f32[4,2,1] "
    "[f32[1,1],f32[1,1],f32[1,1],f32[1,1],f32[1,2],f32[1,1],f32[1,2],f32[1,1]] False 2 0.0 True "
    "True True";
constexpr std::string_view kPlainCellSamples =
    "f32[2,4] f32[2,3] f32[3,4] f32[3,3] f32[3] f32[3] | f32[2,4] f32[2,3] f32[3,4] f32[3,3]";

}  // namespace

void add_recurrent_rows(OperationTable& rows) {
  add_lstm(rows);
  add_plain<gru_step>(
      rows,
      "aten::gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
      "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
      "aten::gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
      "Tensor? b_hh=None) -> Tensor",
      "f32[3,2,4] f32[1,2,3] [f32[9,4],f32[9,3],f32[9],f32[9]] True 1 0.0 False False False | "
      "f32[2,3,1] f32[4,2,1] "
      "[f32[3,1],f32[3,1],f32[3,1],f32[3,1],f32[3,2],f32[3,1],f32[3,2],f32[3,1]] False 2 0.0 True "
      "True True",
      "f32[2,4] f32[2,3] f32[9,4] f32[9,3] f32[9] f32[9] | f32[2,4] f32[2,3] f32[9,4] f32[9,3]");
  add_plain<tanh_step>(
      rows,
      "aten::rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int "
      "num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, "
      "Tensor)",
      "aten::rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
      "Tensor? b_hh=None) -> Tensor",
      kPlainSamples, kPlainCellSamples);
  add_plain<relu_step>(
      rows,
      "aten::rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int "
      "num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, "
      "Tensor)",
      "aten::rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
      "Tensor? b_hh=None) -> Tensor",
      kPlainSamples, kPlainCellSamples);
}

}  // namespace composit
