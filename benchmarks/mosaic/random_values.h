// Values of a graph's inputs for benchmarks, and how far results are apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <random>
#include <vector>

#include "composit/ir/graph.h"

namespace benchmarks {

using composit::Array;

// Weights are small and the same at all sizes; whole numbers are numbers of words.
inline std::vector<Array> random_values(const composit::Graph& graph) {
  std::vector<Array> values;
  for (const composit::LazyTensor& input : graph.inputs()) {
    std::mt19937 random(static_cast<unsigned>(values.size()));  // weights are the same at all sizes
    const composit::Type type = composit::tensor_type(input.dtype(), input.type().sizes);
    const auto memory = std::make_shared<std::vector<std::byte>>(type.nbytes());
    const bool is_id = input.dtype() == composit::DType::int64;
    for (int64_t i = 0; i < type.numel(); ++i)
      if (is_id)
        reinterpret_cast<int64_t*>(memory->data())[i] = static_cast<int64_t>(random() % 30000);
      else
        reinterpret_cast<float*>(memory->data())[i] =
            0.1F * (static_cast<float>(random()) / 4294967296.0F - 0.5F);
    values.emplace_back(type, memory, memory->data());
  }
  return values;
}

inline double difference(const Array& a, const Array& b) {
  double largest = 0;
  const auto* x = reinterpret_cast<const float*>(a.data());
  const auto* y = reinterpret_cast<const float*>(b.data());
  for (int64_t i = 0; i < a.type().numel(); ++i)
    largest = std::max(largest, static_cast<double>(std::abs(x[i] - y[i])));
  return largest;
}

}  // namespace benchmarks
