// Subscripts of einsum, read by the compiler.
//
//   using How = EinsumShape<"bqd,bkd->bqk", Shape<2, 8, 4>, Shape<2, 9, 4>>;
//   static_assert(std::is_same_v<How::type, Shape<2, 8, 9>>);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "flashlight/fixed/shape.h"

namespace flashlight::fixed {

// A string as an argument of a template: einsum<"ij,jk->ik">(a, b).
template <size_t kLength>
struct Subscripts {
  // NOLINTNEXTLINE: a literal is the argument
  consteval Subscripts(const char (&literal)[kLength]) {
    for (size_t i = 0; i < kLength; ++i) text[i] = literal[i];
  }
  char text[kLength] = {};
};

namespace detail {

// Some letters, one per axis.
struct Labels {
  static constexpr size_t kMost = 16;
  std::array<char, kMost> letters{};
  size_t count = 0;

  constexpr void add(char letter) { letters[count++] = letter; }
  // The first axis of that label; `count`: none.
  constexpr size_t find(char letter) const {
    size_t axis = 0;
    while (axis < count && letters[axis] != letter) ++axis;
    return axis;
  }
  constexpr bool has(char letter) const { return find(letter) < count; }
};

// The reason why a text is no equation.
enum class Problem : uint8_t { none, character, operands, arrow, length, repeated, unknown };

// "ij,jk->ik", taken apart.
template <size_t kOperands>
struct Equation {
  std::array<Labels, kOperands> operands{};
  Labels result;
  Problem problem = Problem::none;
};

template <size_t kOperands, size_t kLength>
constexpr Equation<kOperands> equation_of(const Subscripts<kLength>& subscripts) {
  Equation<kOperands> equation;
  size_t operand = 0;
  bool arrow = false;
  for (size_t i = 0; i + 1 < kLength; ++i) {
    const char c = subscripts.text[i];
    if (c == ' ') continue;
    if (c == ',' && !arrow) {
      if (++operand == kOperands) return equation.problem = Problem::operands, equation;
    } else if (c == '-' && !arrow && subscripts.text[i + 1] == '>') {
      arrow = true, ++i;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      Labels& labels = arrow ? equation.result : equation.operands[operand];
      if (labels.count == Labels::kMost) return equation.problem = Problem::length, equation;
      if (arrow && labels.has(c)) equation.problem = Problem::repeated;
      labels.add(c);
    } else {
      return equation.problem = Problem::character, equation;
    }
  }
  if (!arrow) equation.problem = Problem::arrow;
  if (operand + 1 != kOperands) equation.problem = Problem::operands;
  for (size_t i = 0; i < equation.result.count; ++i) {
    bool known = false;
    for (const Labels& labels : equation.operands)
      known = known || labels.has(equation.result.letters[i]);
    if (!known) equation.problem = Problem::unknown;
  }
  return equation;
}

// All labels: those of the result, then those that are summed over.
template <size_t kOperands>
constexpr Labels all_labels(const Equation<kOperands>& equation) {
  Labels all = equation.result;
  for (const Labels& labels : equation.operands)
    for (size_t i = 0; i < labels.count; ++i)
      if (!all.has(labels.letters[i])) all.add(labels.letters[i]);
  return all;
}

template <Subscripts kSubscripts, class... Operands>
struct EinsumShape {
  static constexpr size_t kOperands = sizeof...(Operands);
  static constexpr Equation<kOperands> kEquation = equation_of<kOperands>(kSubscripts);
  static constexpr Problem kProblem = kEquation.problem;
  static_assert(kProblem != Problem::character, "einsum: expected letters, ',' and '->'");
  static_assert(kProblem != Problem::operands,
                "einsum: the subscripts have another number of operands, by ','");
  static_assert(kProblem != Problem::arrow, "einsum: expected '->' and the axes of the result");
  static_assert(kProblem != Problem::length, "einsum: expected at most 16 axes");
  static_assert(kProblem != Problem::repeated, "einsum: the result has an axis twice");
  static_assert(kProblem != Problem::unknown, "einsum: the result has an axis of no operand");

  static constexpr std::array<size_t, kOperands> kRanks = {Operands::kRank...};
  static constexpr size_t kWrong = [] {  // the first operand with another rank
    size_t operand = 0;
    while (operand < kOperands && kEquation.operands[operand].count == kRanks[operand]) ++operand;
    return operand;
  }();
  static constexpr size_t kNamedAxes =
      kWrong < kOperands ? kEquation.operands[kWrong % kOperands].count : 0;
  static constexpr size_t kAxesOfOperand = kWrong < kOperands ? kRanks[kWrong % kOperands] : 0;
  static_assert(kNamedAxes == kAxesOfOperand,
                "einsum: an operand has other axes than its subscripts name");

  static constexpr Labels kAll = all_labels(kEquation);
  // Sizes by label; and two that one label has, if any.
  struct ByLabel {
    std::array<int64_t, kAll.count> sizes{};
    Pair clash;
  };
  static constexpr ByLabel kByLabel = [] {
    ByLabel by;
    for (int64_t& size : by.sizes) size = -1;
    const auto add = [&]<size_t kRank>(const Labels& labels, const Sizes<kRank>& sizes) {
      for (size_t axis = 0; axis < kRank && axis < labels.count; ++axis) {
        int64_t& size = by.sizes[kAll.find(labels.letters[axis])];
        if (size != -1 && size != sizes[axis]) by.clash = {size, sizes[axis]};
        size = sizes[axis];
      }
    };
    size_t operand = 0;
    (add(kEquation.operands[operand++], Operands::kSizes), ...);
    for (int64_t& size : by.sizes) size = size < 0 ? 0 : size;  // of a label that is refused
    return by;
  }();
  static constexpr int64_t kLeft = kByLabel.clash.left, kRight = kByLabel.clash.right;
  static_assert(kLeft == kRight, "einsum: one letter stands for two sizes");

  static constexpr auto kResult = [] {
    Sizes<kEquation.result.count> sizes{};
    for (size_t axis = 0; axis < sizes.size(); ++axis) sizes[axis] = kByLabel.sizes[axis];
    return sizes;
  }();
  using type = ShapeOf<kResult>;
};

}  // namespace detail
}  // namespace flashlight::fixed
