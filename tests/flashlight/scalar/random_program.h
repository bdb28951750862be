// Random functions of numbers with branches and loops, to run in every way there is: on doubles and
// dual numbers as C++ does, on symbolic numbers, and on tensors with the operations of control
// flow.
//
//   const Program program = random_program(seed);
//   std::vector<double> y = run(program, x, sequence);
//   std::string code = print(program);                    // as C++, for a test that failed
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "composit/ir/node.h"

namespace flashlight::test {

// Variables are numbered in the order in which they come to be; a block sees those around it.
struct Statement;
struct Block {
  std::vector<Statement> statements;
  std::vector<size_t> results;
};

enum class Kind : uint8_t {
  number,  // value
  add,
  subtract,
  multiply,
  sine,
  hyperbolic,
  least,
  largest,     // of a and b, or of a
  branch,      // a < b ? blocks[0] : blocks[1], two results each
  over_slots,  // blocks[0] of (carried, carried, slot) gives both and an output, for each slot of
               // the sequence; makes the carried values at the end, and the sum of the outputs
  repeat,      // the same without a slot, `trips` times
  until        // blocks[0] of (carried, carried) gives both, while the first is in (-value, value),
               // and at most `trips` times
};
struct Statement {
  Kind kind;
  size_t a = 0, b = 0;
  double value = 0;
  int64_t trips = 0;
  bool reverse = false;
  std::vector<Block> blocks = {};
};

constexpr size_t kInputs = 3, kSlots = 4;

struct Program {
  Block block;  // of `kInputs` variables; two results
};

Program random_program(uint64_t seed);
std::string print(const Program& program);

// ---- as C++ runs it -----------------------------------------------------------------------------

template <class T>
T number(double value) {
  return T(value);
}
template <class T>
T least(const T& x, const T& y) {
  using std::min;
  return min(x, y);
}
template <class T>
T largest(const T& x, const T& y) {
  using std::max;
  return max(x, y);
}

// The value of a statement without blocks.
template <class T>
T simple(const Statement& s, const T& a, const T& b) {
  using std::sin, std::tanh;
  switch (s.kind) {
    case Kind::number:
      return number<T>(s.value);
    case Kind::add:
      return a + b;
    case Kind::subtract:
      return a - b;
    case Kind::multiply:
      return a * b;
    case Kind::sine:
      return sin(a);
    case Kind::hyperbolic:
      return tanh(a);
    case Kind::least:
      return least(a, b);
    default:
      return largest(a, b);
  }
}

template <class T>
class Run {
 public:
  explicit Run(std::vector<T> sequence) : sequence_(std::move(sequence)) {}

  std::vector<T> operator()(const Block& block, std::vector<T> variables) const {
    for (const Statement& statement : block.statements)
      for (const T& made : values(statement, variables)) variables.push_back(made);
    std::vector<T> results;
    for (size_t result : block.results) results.push_back(variables[result]);
    return results;
  }

 private:
  std::vector<T> values(const Statement& s, const std::vector<T>& variables) const {
    const T &a = variables[s.a], &b = variables[s.b];
    switch (s.kind) {
      case Kind::branch:
        if (a < b) return (*this)(s.blocks[0], variables);
        return (*this)(s.blocks[1], variables);
      case Kind::over_slots:
      case Kind::repeat:
        return scanned(s, variables);
      case Kind::until:
        return looped(s, variables);
      default:
        return {simple(s, a, b)};
    }
  }

  std::vector<T> scanned(const Statement& s, const std::vector<T>& variables) const {
    T first = variables[s.a], second = variables[s.b], sum(0.0);
    for (int64_t trip = 0; trip < s.trips; ++trip) {
      std::vector<T> inner = variables;
      inner.push_back(first);
      inner.push_back(second);
      const auto slot = static_cast<size_t>(s.reverse ? s.trips - 1 - trip : trip);
      if (s.kind == Kind::over_slots) inner.push_back(sequence_[slot]);
      const std::vector<T> given = (*this)(s.blocks[0], inner);
      first = given[0];
      second = given[1];
      sum = sum + given[2];
    }
    return {first, second, sum};
  }

  std::vector<T> looped(const Statement& s, const std::vector<T>& variables) const {
    T first = variables[s.a], second = variables[s.b];
    for (int64_t trip = 0; trip < s.trips && first < T(s.value) && T(-s.value) < first; ++trip) {
      std::vector<T> inner = variables;
      inner.push_back(first);
      inner.push_back(second);
      const std::vector<T> given = (*this)(s.blocks[0], inner);
      first = given[0];
      second = given[1];
    }
    return {first, second};
  }

  std::vector<T> sequence_;
};

template <class T>
std::vector<T> run(const Program& program, const std::vector<T>& inputs,
                   const std::vector<T>& sequence) {
  return Run<T>(sequence)(program.block, inputs);
}

// ---- as a graph ---------------------------------------------------------------------------------

// `inputs`: float64[]; `sequence`: float64[kSlots].
composit::LazyTensors run(const Program& program, const composit::LazyTensors& inputs,
                          const composit::LazyTensor& sequence);

// ---- derivatives, forward -----------------------------------------------------------------------

// A value and its derivative along one direction.
template <class T>
struct Dual {
  T value, slope;
  Dual(double number) : value(number), slope(0.0) {}  // NOLINT: numbers are Duals
  Dual(T value, T slope) : value(value), slope(slope) {}

  friend Dual operator+(const Dual& x, const Dual& y) {
    return {x.value + y.value, x.slope + y.slope};
  }
  friend Dual operator-(const Dual& x, const Dual& y) {
    return {x.value - y.value, x.slope - y.slope};
  }
  friend Dual operator*(const Dual& x, const Dual& y) {
    return {x.value * y.value, x.slope * y.value + x.value * y.slope};
  }
  friend bool operator<(const Dual& x, const Dual& y) { return x.value < y.value; }
  friend Dual sin(const Dual& x) {
    using std::cos, std::sin;
    return {sin(x.value), x.slope * cos(x.value)};
  }
  friend Dual cos(const Dual& x) {
    using std::cos, std::sin;
    return {cos(x.value), T(0.0) - x.slope * sin(x.value)};
  }
  friend Dual tanh(const Dual& x) {
    using std::tanh;
    const T y = tanh(x.value);
    return {y, x.slope * (T(1.0) - y * y)};
  }
  // Equals share the derivative, as in torch.
  friend Dual min(const Dual& x, const Dual& y) {
    return x < y ? x : y < x ? y : Dual(x.value, (x.slope + y.slope) * T(0.5));
  }
  friend Dual max(const Dual& x, const Dual& y) {
    return y < x ? x : x < y ? y : Dual(x.value, (x.slope + y.slope) * T(0.5));
  }
};

}  // namespace flashlight::test
