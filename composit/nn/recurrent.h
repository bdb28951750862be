// Recurrent networks: layers that walk over a sequence.
//
//   auto [output, h, c] = nn::lstm(x, h0, c0, {{w_ih, w_hh, b_ih, b_hh}}, {.batch_first = true});
//
// As torch.nn has them, without dropout: x [steps, batch, size], or [batch, steps, size] where
// `batch_first`; states [layers * directions, batch, hidden size]; one item of `weights` per layer
// and direction, both directions of a layer side by side.
#pragma once

#include <vector>

#include "composit/ops/functions.h"

namespace composit::nn {

// Gates are stacked in torch's order: w_ih [gates * hidden, size], w_hh [gates * hidden, hidden].
struct RecurrentWeights {
  LazyTensor w_ih, w_hh;            // weights of the input and of the state
  LazyTensor b_ih = {}, b_hh = {};  // for all layers, or for none
};

// The options of recurrent layers.
struct RecurrentOptions {
  bool bidirectional = false;  // also from the end to the beginning
  bool batch_first = false;    // x and output are [batch, steps, size]
};

// The results of recurrent layers.
struct RecurrentResult {
  LazyTensor output;  // [steps, batch, directions * hidden size], or batch first
  LazyTensor h;       // the last states
};
// h = tanh(w_ih x + b_ih + w_hh h + b_hh), or relu.
RecurrentResult rnn_tanh(const LazyTensor& x, const LazyTensor& h,
                         const std::vector<RecurrentWeights>& weights,
                         const RecurrentOptions& options = {});
RecurrentResult rnn_relu(const LazyTensor& x, const LazyTensor& h,
                         const std::vector<RecurrentWeights>& weights,
                         const RecurrentOptions& options = {});
// Cho et al. 2014, with torch's three gates: reset, update, new.
RecurrentResult gru(const LazyTensor& x, const LazyTensor& h,
                    const std::vector<RecurrentWeights>& weights,
                    const RecurrentOptions& options = {});

struct LstmResult {
  LazyTensor output, h, c;  // as in RecurrentResult; c are the last cells
};
// Hochreiter and Schmidhuber 1997, with torch's four gates: input, forget, cell, output.
LstmResult lstm(const LazyTensor& x, const LazyTensor& h, const LazyTensor& c,
                const std::vector<RecurrentWeights>& weights, const RecurrentOptions& options = {});

}  // namespace composit::nn
