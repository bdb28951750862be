// A stack of LSTM cells with diagonal weights that predicts the next character: ADBench's second
// objective (https://github.com/microsoft/ADBench, src/cpp/shared/lstm.h). As there, 2 is added
// inside of logsumexp.
//
//   cnp::NdArray loss = lstm({layers, ends}, state, sequence);
//
// Per layer, element by element, with input x, and hidden and cell from the step before:
//   forget = sigmoid(x wf + bf)            ingate = sigmoid(hidden wi + bi)
//   outgate = sigmoid(x wo + bo)           change = tanh(hidden wc + bc)
//   cell = cell forget + ingate change     hidden = outgate tanh(cell)
#pragma once

#include "composit/numpy/ndarray.h"
#include "examples/objectives/problem.h"

namespace objectives {

struct LstmParameters {
  composit::numpy::NdArray layers;  // [l, 8, h]: weights, then biases, of forget, in, out, change
  composit::numpy::NdArray ends;    // [3, h]: input weight, output weight, output bias
};

// Zero-dimensional: the loss per element. state: [l, 2, h], hidden and cell; sequence: [c, h].
composit::numpy::NdArray lstm(const LstmParameters& parameters,
                              const composit::numpy::NdArray& state,
                              const composit::numpy::NdArray& sequence);

struct LstmSizes {
  int64_t layers, characters, hidden;
};
// Inputs: layers, ends, state, sequence. Objective: the loss; gradient: the loss and the
// derivatives by layers and ends.
Problem lstm_problem(const LstmSizes& sizes, composit::DType dtype = composit::DType::float64);

}  // namespace objectives
