// A size, or an integer attribute that is a size: an integer today, an affine expression of input
// sizes tomorrow.
//
//   Dim rows = 32;   rows == Dim(32);   rows.value() == 32;
//
// Passes ask a Dim whether it equals another; they take its value only where a number is needed.
#pragma once

#include <cstdint>
#include <vector>

namespace composit {

class Dim {
 public:
  // An integer is a size.
  constexpr Dim(int64_t value = 0) : value_(value) {}  // NOLINT: an integer is a Dim
  constexpr int64_t value() const { return value_; }   // the integer
  bool operator==(const Dim&) const = default;

 private:
  int64_t value_;
};

using Dims = std::vector<Dim>;  // the sizes of a tensor

}  // namespace composit
