#include <algorithm>

#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"
#include "composit/ops/control_flow.h"

namespace composit::onnx_read {
namespace {

// Operands of LSTM, GRU and RNN, sequences first.
struct Recurrence {
  LazyTensor x, w, r, b;  // [steps, batch, in], [directions, gates * size, …], bias: may be absent
  int64_t directions = 1, size = 0;
  bool reverse = false, batch_first = false;
};

Recurrence recurrence_of(const OperatorCall& call, int64_t gates,
                         const std::vector<std::string>& activations) {
  Recurrence all{call.operand(0), call.operand(1), call.operand(2), call.optional(3)};
  const std::string direction = call.text("direction", "forward");
  expect_one_of("direction", direction, {"forward", "reverse", "bidirectional"});
  all.directions = direction == "bidirectional" ? 2 : 1;
  all.reverse = direction == "reverse";
  all.batch_first = call.version() >= 14 && call.integer("layout", 0) != 0;
  if (all.x.rank() != 3 || all.w.rank() != 3 || all.r.rank() != 3)
    call.refuse("expected operands of three axes");
  if (all.batch_first) all.x = transpose(all.x, 0, 1);
  all.size = all.r.size(2);
  if (all.w.size(0) != all.directions || all.r.size(0) != all.directions ||
      all.w.size(1) != gates * all.size || all.r.size(1) != gates * all.size)
    call.refuse("its weights have other sizes than its directions and gates say");
  if (all.b && all.b.sizes() != Dims{all.directions, 2 * gates * all.size})
    call.refuse("its bias has other sizes than its gates say");
  if (call.has("hidden_size") && call.integer("hidden_size") != all.size)
    call.refuse("hidden_size is not that of its weights");
  if (call.has("clip")) call.refuse("clip is not read");
  if (call.has("activations")) {
    std::vector<std::string> given;
    for (int64_t i = 0; i < all.directions; ++i)
      given.insert(given.end(), activations.begin(), activations.end());
    std::string expected, received;
    for (const std::string& one : given) expected += " " + one;
    for (const std::string& one : call.texts("activations")) received += " " + one;
    if (expected != received)
      call.refuse("activations: expected" + expected + ", received" + received);
  }
  if (call.optional(4)) {
    const Ints lengths = call.known_ints(4);
    if (std::any_of(lengths.begin(), lengths.end(),
                    [&](int64_t length) { return length != all.x.size(0); }))
      call.refuse("sequences of several lengths are not read");
  }
  return all;
}

// The gates of one direction in another order.
LazyTensor reordered(const LazyTensor& rows, const Ints& order, int64_t size) {
  LazyTensors parts;
  for (const int64_t gate : order) parts.push_back(slice(rows, 0, gate * size, (gate + 1) * size));
  return parts.size() == 1 ? parts[0] : cat(parts, 0);
}

// torch's parameters, of each direction in turn.
LazyTensors parameters_of(const Recurrence& all, const Ints& order) {
  LazyTensors parameters;
  const auto gates = static_cast<int64_t>(order.size()) * all.size;
  for (int64_t i = 0; i < all.directions; ++i) {
    parameters.push_back(reordered(select_at(all.w, 0, i), order, all.size));
    parameters.push_back(reordered(select_at(all.r, 0, i), order, all.size));
    if (!all.b) continue;
    const LazyTensor bias = select_at(all.b, 0, i);
    parameters.push_back(reordered(slice(bias, 0, 0, gates), order, all.size));
    parameters.push_back(reordered(slice(bias, 0, gates, 2 * gates), order, all.size));
  }
  return parameters;
}

LazyTensor state_of(const OperatorCall& call, size_t index, const Recurrence& all) {
  const LazyTensor given = call.optional(index);
  if (!given) return zeros({all.directions, all.x.size(1), all.size}, all.x.dtype());
  return all.batch_first ? transpose(given, 0, 1) : given;
}

// Results of torch, [steps, batch, directions * size] and states, as ONNX has them.
LazyTensors results_of(const Recurrence& all, LazyTensor y, LazyTensors states) {
  if (all.reverse) y = flip(y, {0});
  y = reshape(y, {y.size(0), y.size(1), all.directions, all.size});
  y = permute(y, all.batch_first ? Ints{1, 0, 2, 3} : Ints{0, 2, 1, 3});
  LazyTensors results = {y};
  for (const LazyTensor& state : states)
    results.push_back(all.batch_first ? transpose(state, 0, 1) : state);
  return results;
}

LazyTensor sequence_of(const Recurrence& all) { return all.reverse ? flip(all.x, {0}) : all.x; }

LazyTensors lstm(const OperatorCall& call) {
  const Recurrence all = recurrence_of(call, 4, {"Sigmoid", "Tanh", "Tanh"});
  if (call.optional(7)) call.refuse("peepholes are not read");
  if (call.flag("input_forget")) call.refuse("input_forget is not read");
  const LazyTensors made =
      apply("aten::lstm.input",
            {sequence_of(all), LazyTensors{state_of(call, 5, all), state_of(call, 6, all)},
             parameters_of(all, {0, 2, 3, 1}), all.b.defined(), int64_t{1}, 0.0, false,
             all.directions == 2, false});
  return results_of(all, made[0], {made[1], made[2]});
}

// One direction of a GRU whose gate is applied before the product, as torch's is not.
ScanStep gru_before(const Recurrence& all, int64_t direction, const LazyTensor& x,
                    const LazyTensor& start) {
  const int64_t size = all.size;
  const LazyTensor w = select_at(all.w, 0, direction), r = select_at(all.r, 0, direction);
  LazyTensor inputs = matmul(x, transpose(w, 0, 1));
  if (all.b) {
    const LazyTensor b = select_at(all.b, 0, direction);
    inputs = inputs + slice(b, 0, 0, 3 * size) + slice(b, 0, 3 * size, 6 * size);
  }
  const LazyTensor gates = transpose(slice(r, 0, 0, 2 * size), 0, 1);
  const LazyTensor hidden = transpose(slice(r, 0, 2 * size, 3 * size), 0, 1);
  return scan(
      [&](const LazyTensors& carried, const LazyTensors& slots) {
        const LazyTensor &h = carried[0], &in = slots[0];
        const LazyTensor both = sigmoid(slice(in, 1, 0, 2 * size) + mm(h, gates));
        const LazyTensor z = slice(both, 1, 0, size), reset = slice(both, 1, size, 2 * size);
        const LazyTensor n = tanh(slice(in, 1, 2 * size, 3 * size) + mm(reset * h, hidden));
        const LazyTensor next = (1 - z) * n + z * h;
        return ScanStep{.carried = {next}, .outputs = {next}};
      },
      {start}, {inputs});
}

LazyTensors gru(const OperatorCall& call) {
  const Recurrence all = recurrence_of(call, 3, {"Sigmoid", "Tanh"});
  const LazyTensor start = state_of(call, 5, all);
  if (call.flag("linear_before_reset")) {
    const LazyTensors made = apply(
        "aten::gru.input", {sequence_of(all), start, parameters_of(all, {1, 0, 2}), all.b.defined(),
                            int64_t{1}, 0.0, false, all.directions == 2, false});
    return results_of(all, made[0], {made[1]});
  }
  LazyTensors steps, states;
  for (int64_t i = 0; i < all.directions; ++i) {
    const bool backwards = all.reverse || i == 1;
    const LazyTensor x = backwards ? flip(all.x, {0}) : all.x;
    const ScanStep made = gru_before(all, i, x, select_at(start, 0, i));
    // results_of turns a single direction round itself.
    steps.push_back(i == 1 ? flip(made.outputs[0], {0}) : made.outputs[0]);
    states.push_back(unsqueeze(made.carried[0], 0));
  }
  return results_of(all, cat(steps, 2), {cat(states, 0)});
}

LazyTensors rnn(const OperatorCall& call) {
  const bool relu = call.has("activations") && !call.texts("activations").empty() &&
                    call.texts("activations")[0] == "Relu";
  const Recurrence all = recurrence_of(call, 1, {relu ? "Relu" : "Tanh"});
  const LazyTensors made =
      apply(relu ? "aten::rnn_relu.input" : "aten::rnn_tanh.input",
            {sequence_of(all), state_of(call, 5, all), parameters_of(all, {0}), all.b.defined(),
             int64_t{1}, 0.0, false, all.directions == 2, false});
  return results_of(all, made[0], {made[1]});
}

}  // namespace

void add_recurrent_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"GRU", gru}, {"LSTM", lstm}, {"RNN", rnn}});
}

}  // namespace composit::onnx_read
