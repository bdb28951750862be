// Programs over one input of two sizes, and captures of them.
#pragma once

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "composit/family/family.h"
#include "composit/ops/operations.h"

namespace composit::test {

// A program over %x, whose sizes are a batch, a number of tokens, and 8.
using Program = std::function<LazyTensor(const LazyTensor& x, int64_t batch, int64_t tokens)>;

struct Sizes {
  int64_t batch, tokens;
  // By name.
  SizeValues values() const { return {{"batch", batch}, {"tokens", tokens}}; }
};
inline Sizes of_values(const SizeValues& values) {
  return {values.at("batch"), values.at("tokens")};
}

inline LazyTensor call(std::string_view name, std::vector<ArgumentValue> arguments) {
  return apply(name, std::move(arguments)).at(0);
}
inline Ints ints(std::vector<int64_t> numbers) { return numbers; }

// The program at these sizes.
inline Graph captured(const Program& program, Sizes sizes) {
  const LazyTensor x = input("x", tensor_type(DType::float32, {sizes.batch, sizes.tokens, 8}));
  return without_incidentals(
      Graph({.inputs = {x}, .outputs = {program(x, sizes.batch, sizes.tokens)}}));
}

// Examples whose sizes differ.
inline const std::vector<Sizes> kExamples = {{2, 16}, {3, 23}, {5, 12}};

}  // namespace composit::test
