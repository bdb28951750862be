// Values of arrays.
//
//   Array y = cnp::evaluate(a);
//   auto [u, v] = cnp::evaluate(a, b);                          // what both need is computed once
//   std::vector<Array> all = cnp::evaluate({a, b}, backend);
//   Values values = cnp::evaluate_all({a, b});                  // and all intermediate ones
//   values[c];
//
// Arrays with a name have the value they were made of, unless another is given
// (composit::evaluate).
#pragma once

#include <array>
#include <vector>

#include "composit/eval/evaluate.h"
#include "composit/numpy/ndarray.h"

namespace composit::numpy {

using composit::evaluate_all;

// Values of arrays, in order. UserError for an input that has no value.
std::vector<Array> evaluate(const NdArrays& arrays, const Backend& backend = reference());

// The same for arrays given one by one.
template <class... Rest>
requires(sizeof...(Rest) > 0 && (std::convertible_to<Rest, NdArray> && ...))
    std::array<Array, 1 + sizeof...(Rest)> evaluate(const NdArray& first, const Rest&... rest) {
  const std::vector<Array> values = evaluate(NdArrays{first, NdArray(rest)...});
  std::array<Array, 1 + sizeof...(Rest)> result;
  std::copy(values.begin(), values.end(), result.begin());
  return result;
}

// The value of one array.
inline Array evaluate(const NdArray& array, const Backend& backend = reference()) {
  return evaluate(NdArrays{array}, backend)[0];
}

}  // namespace composit::numpy
