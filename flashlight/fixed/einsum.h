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

// The loops of any einsum: over the result's axes but the last, then the sums, then the last axis,
// which vectors are made of.
template <class How, class... Shapes>
struct EinsumLoops {
  static constexpr size_t kLoops = How::kAll.count, kParallel = How::kResult.size();
  // The label of each loop.
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
  static constexpr auto kStrides = [] {
    std::array<Sizes<kLoops>, sizeof...(Shapes) + 1> strides{};
    const auto set = [](Sizes<kLoops>& to, const Labels& labels, const auto& own) {
      for (size_t loop = 0; loop < kLoops; ++loop)
        for (size_t axis = 0; axis < labels.count; ++axis)
          if (labels.letters[axis] == How::kAll.letters[kOrder[loop]]) to[loop] += own[axis];
    };
    set(strides[0], How::kEquation.result, row_major(How::kResult));
    size_t operand = 0;
    ((set(strides[operand + 1], How::kEquation.operands[operand], row_major(Shapes::kSizes)),
      ++operand),
     ...);
    return strides;
  }();
};

template <class How, AnyTensor... Operands>
auto einsum_loops(const Operands&... operands) {
  using T = std::common_type_t<typename Operands::Element...>;
  TensorOf<T, typename How::type> y;
  for_each_index<EinsumLoops<How, typename Operands::Shape...>>(
      [](T* to, const auto*... from) { *to = static_cast<T>(*to + (... * *from)); }, y.data(),
      operands.data()...);
  return y;
}

// The product of two operands whose labels are batch axes (in both and in the result), rows (left
// and result), columns (right and result) and terms (both): products of matrices.
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

template <size_t... kAxes, AnyTensor X>
auto permute(const X& x, std::index_sequence<kAxes...>) {
  if constexpr (std::is_same_v<std::index_sequence<kAxes...>, std::make_index_sequence<X::kRank>>)
    return x;
  else
    return transpose<static_cast<int64_t>(kAxes)...>(x);
}

template <class How>
constexpr int64_t elements_of(const Labels& labels) {
  int64_t elements = 1;
  for (size_t i = 0; i < labels.count; ++i)
    elements *= How::kByLabel.sizes[How::kAll.find(labels.letters[i])];
  return elements;
}

// An einsum as a product of matrices: the orders of axes that make it one.
template <class How>
struct EinsumProduct {
  static constexpr ProductLabels kBy = product_labels(How::kEquation);
  static constexpr Labels kLeft = How::kEquation.operands[0], kRight = How::kEquation.operands[1];
  using LeftOrder = SequenceOf<in_order<kLeft.count>(kLeft, kBy.batch, kBy.rows, kBy.terms)>;
  using RightOrder = SequenceOf<in_order<kRight.count>(kRight, kBy.batch, kBy.terms, kBy.columns)>;
  static constexpr int64_t kBatch = elements_of<How>(kBy.batch), kRows = elements_of<How>(kBy.rows),
                           kColumns = elements_of<How>(kBy.columns),
                           kTerms = elements_of<How>(kBy.terms);
  // The axes of the product, and their order in the result.
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
  using Made = ShapeOf<kSizes>;
  using ResultOrder =
      SequenceOf<in_order<kMade.count>(kMade, How::kEquation.result, Labels{}, Labels{})>;
};

template <class How, AnyTensor A, AnyTensor B>
auto einsum_product(const A& a, const B& b) {
  using P = EinsumProduct<How>;
  const auto y =
      matmul(reshape<P::kBatch, P::kRows, P::kTerms>(permute(a, typename P::LeftOrder())),
             reshape<P::kBatch, P::kTerms, P::kColumns>(permute(b, typename P::RightOrder())));
  return permute(TensorOf<typename A::Element, typename P::Made>::copy_of(y.data()),
                 typename P::ResultOrder());
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
