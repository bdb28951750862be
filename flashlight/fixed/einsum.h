// Sums of products over named axes, as numpy.einsum's.
//
//   auto scores = einsum<"bqd,bkd->bqk">(q, k);
//   auto trace = einsum<"ii->">(m);
//
// The result's axes stand behind '->'; all others are summed over.
#pragma once

#include <utility>

#include "flashlight/fixed/functions.h"
#include "flashlight/fixed/subscripts.h"

namespace flashlight::fixed {
namespace detail {

// By operand, how its elements lie for loops over labels in the order kOrder (of kAll).
template <class How, auto kOrder, class... Operands>
constexpr auto einsum_strides() {
  constexpr size_t kLoops = kOrder.size();
  std::array<Sizes<kLoops>, sizeof...(Operands) + 1> strides{};
  constexpr auto kResult = row_major(How::kResult);
  const auto add = [&](Sizes<kLoops>& to, const Labels& labels, const auto& own) {
    for (size_t loop = 0; loop < kLoops; ++loop)
      for (size_t axis = 0; axis < labels.count; ++axis)
        if (labels.letters[axis] == How::kAll.letters[kOrder[loop]]) to[loop] += own[axis];
  };
  add(strides[0], How::kEquation.result, kResult);
  size_t operand = 0;
  ((add(strides[operand + 1], How::kEquation.operands[operand], row_major(Operands::Shape::kSizes)),
    ++operand),
   ...);
  return strides;
}

// The loops of any einsum: over the result's axes but the last, then the sums, then the last axis,
// which vectors are made of.
template <class How>
struct EinsumLoops {
  static constexpr size_t kLoops = How::kAll.count, kParallel = How::kResult.size();
  static constexpr auto kOrder = [] {
    std::array<size_t, kLoops> order{};
    size_t next = 0;
    for (size_t label = 0; label < kLoops; ++label)
      if (label + 1 != kParallel) order[next++] = label;
    if (kParallel > 0) order[next] = kParallel - 1;
    return order;
  }();
  static constexpr auto kSizes = [] {
    Sizes<kLoops> sizes{};
    for (size_t loop = 0; loop < kLoops; ++loop) sizes[loop] = How::kByLabel.sizes[kOrder[loop]];
    return sizes;
  }();
};

template <class How, AnyTensor... Operands>
auto einsum_loops(const Operands&... operands) {
  using T = std::common_type_t<typename Operands::Element...>;
  using Loops = EinsumLoops<How>;
  TensorOf<T, typename How::type> y;
  for_each_index<Loops::kSizes, einsum_strides<How, Loops::kOrder, Operands...>()>(
      [](T* to, const auto*... from) { *to = static_cast<T>(*to + (... * *from)); }, y.data(),
      operands.data()...);
  return y;
}

// Of two operands whose labels are batch axes (in both and in the result), rows (left and result),
// columns (right and result) and terms (both): a product of matrices.
struct ProductLabels {
  Labels batch, rows, columns, terms;
  bool fits = true;
};
constexpr ProductLabels product_labels(const Equation<2>& equation) {
  ProductLabels by;
  const auto& [left, right] = equation.operands;
  for (size_t axis = 0; axis < left.count; ++axis) {
    const char label = left.letters[axis];
    const bool shared = right.has(label), stays = equation.result.has(label);
    if (left.find(label) != axis || (!shared && !stays)) by.fits = false;
    (shared ? (stays ? by.batch : by.terms) : by.rows).add(label);
  }
  for (size_t axis = 0; axis < right.count; ++axis) {
    const char label = right.letters[axis];
    if (right.find(label) != axis) by.fits = false;
    if (left.has(label)) continue;
    if (!equation.result.has(label)) by.fits = false;
    by.columns.add(label);
  }
  return by;
}

// The axes of `labels` in the order of these groups.
template <size_t kRank>
constexpr std::array<size_t, kRank> in_order(const Labels& labels, const Labels& a, const Labels& b,
                                             const Labels& c) {
  std::array<size_t, kRank> axes{};
  size_t next = 0;
  for (const Labels* group : {&a, &b, &c})
    for (size_t i = 0; i < group->count; ++i) axes[next++] = labels.find(group->letters[i]);
  return axes;
}

template <auto kAxes, AnyTensor X>
auto permute(const X& x) {
  return [&]<size_t... kWhich>(std::index_sequence<kWhich...>) {
    if constexpr (((kAxes[kWhich] == kWhich) && ...))
      return x;
    else
      return transpose<static_cast<int64_t>(kAxes[kWhich])...>(x);
  }
  (std::make_index_sequence<kAxes.size()>());
}

template <class How>
constexpr int64_t elements_of(const Labels& labels) {
  int64_t elements = 1;
  for (size_t i = 0; i < labels.count; ++i)
    elements *= How::kByLabel.sizes[How::kAll.find(labels.letters[i])];
  return elements;
}

template <class How, AnyTensor A, AnyTensor B>
auto einsum_product(const A& a, const B& b) {
  static constexpr ProductLabels kBy = product_labels(How::kEquation);
  constexpr int64_t kBatch = elements_of<How>(kBy.batch), kRows = elements_of<How>(kBy.rows),
                    kColumns = elements_of<How>(kBy.columns), kTerms = elements_of<How>(kBy.terms);
  constexpr auto kLeft =
      in_order<A::kRank>(How::kEquation.operands[0], kBy.batch, kBy.rows, kBy.terms);
  constexpr auto kRight =
      in_order<B::kRank>(How::kEquation.operands[1], kBy.batch, kBy.terms, kBy.columns);
  const auto y = matmul(reshape<kBatch, kRows, kTerms>(permute<kLeft>(a)),
                        reshape<kBatch, kTerms, kColumns>(permute<kRight>(b)));
  // From batch, rows, columns to the order of the result.
  static constexpr Labels kMade = [] {
    Labels made;
    for (const Labels* group : {&kBy.batch, &kBy.rows, &kBy.columns})
      for (size_t i = 0; i < group->count; ++i) made.add(group->letters[i]);
    return made;
  }();
  static constexpr auto kSizes = [] {
    Sizes<kMade.count> sizes{};
    for (size_t i = 0; i < kMade.count; ++i)
      sizes[i] = How::kByLabel.sizes[How::kAll.find(kMade.letters[i])];
    return sizes;
  }();
  constexpr auto kBack = in_order<kMade.count>(kMade, How::kEquation.result, Labels{}, Labels{});
  return permute<kBack>(TensorOf<typename A::Element, ShapeOf<kSizes>>::copy_of(y.data()));
}

template <class How>
constexpr bool is_product() {
  if constexpr (How::kOperands == 2)
    return product_labels(How::kEquation).fits && product_labels(How::kEquation).terms.count > 0;
  else
    return false;
}

}  // namespace detail

// kSubscripts: a letter per axis of each operand, then "->" and those of the result.
template <Subscripts kSubscripts, AnyTensor First, AnyTensor... Others>
auto einsum(const First& first, const Others&... others) {
  static_assert((std::is_same_v<typename First::Element, typename Others::Element> && ...),
                "einsum: the elements of all operands have one type");
  using How = detail::EinsumShape<kSubscripts, typename First::Shape, typename Others::Shape...>;
  if constexpr (detail::is_product<How>())
    return detail::einsum_product<How>(first, others...);
  else
    return detail::einsum_loops<How>(first, others...);
}

}  // namespace flashlight::fixed
