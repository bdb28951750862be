// Sizes of tensors as types, and the sizes that operations give. A program whose sizes do not fit
// does not compile; the message says which operation asks for what, and the two numbers.
//
//   using Rows = Shape<128, 768>;
//   static_assert(std::is_same_v<Product<Rows, Shape<768, 64>>, Shape<128, 64>>);
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace flashlight::fixed {

// The sizes of a tensor's axes, the outermost first. None: a tensor of one element.
template <int64_t... kAxes>
struct Shape {
  static_assert(((kAxes >= 0) && ...), "a size is not negative");
  static constexpr size_t kRank = sizeof...(kAxes);
  static constexpr std::array<int64_t, kRank> kSizes = {kAxes...};
  static constexpr int64_t kElements = (int64_t{1} * ... * kAxes);
};

namespace detail {

template <size_t kRank>
using Sizes = std::array<int64_t, kRank>;

template <auto kSizes, class Indices>
struct ShapeOfSizes;
template <auto kSizes, size_t... kIndices>
struct ShapeOfSizes<kSizes, std::index_sequence<kIndices...>> {
  using type = Shape<kSizes[kIndices]...>;
};

template <auto kArray, class Indices>
struct SequenceOfArray;
template <auto kArray, size_t... kIndices>
struct SequenceOfArray<kArray, std::index_sequence<kIndices...>> {
  using type = std::index_sequence<kArray[kIndices]...>;
};
// The numbers of an array as a type.
template <auto kArray>
using SequenceOf = typename SequenceOfArray<kArray, std::make_index_sequence<kArray.size()>>::type;

// The number of an axis, which may count from the end: -1 is the last one. Outside: the rank.
constexpr size_t axis_of(int64_t axis, size_t rank) {
  const auto axes = static_cast<int64_t>(rank);
  return axis < -axes || axis >= axes ? rank : static_cast<size_t>(axis < 0 ? axis + axes : axis);
}

template <size_t kCount>
constexpr bool contains(const std::array<size_t, kCount>& axes, size_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

template <size_t kCount>
constexpr bool all_different(std::array<size_t, kCount> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) == values.end();
}

// Elements from one index of an axis to the next.
template <size_t kRank>
constexpr Sizes<kRank> row_major(const Sizes<kRank>& sizes) {
  Sizes<kRank> strides{};
  int64_t stride = 1;
  for (size_t axis = kRank; axis-- > 0; stride *= sizes[axis]) strides[axis] = stride;
  return strides;
}

// ---- broadcasting -------------------------------------------------------------------------------

// The size of `axis`, counted from the end, of sizes that have 1 in front of them.
template <size_t kRank>
constexpr int64_t from_end(const Sizes<kRank>& sizes, size_t axis) {
  return axis < kRank ? sizes[kRank - 1 - axis] : 1;
}

// The last two sizes that do not broadcast; equal ones where all do.
struct Pair {
  int64_t left = 0, right = 0;
};
template <size_t kA, size_t kB>
constexpr Pair clash(const Sizes<kA>& a, const Sizes<kB>& b) {
  for (size_t axis = 0; axis < std::min(kA, kB); ++axis)
    if (const int64_t x = from_end(a, axis), y = from_end(b, axis); x != y && x != 1 && y != 1)
      return {x, y};
  return {};
}

template <size_t kA, size_t kB>
constexpr auto broadcast(const Sizes<kA>& a, const Sizes<kB>& b) {
  constexpr size_t kRank = std::max(kA, kB);
  Sizes<kRank> sizes{};
  for (size_t axis = 0; axis < kRank; ++axis) {
    const int64_t x = from_end(a, axis), y = from_end(b, axis);
    sizes[kRank - 1 - axis] = x == 1 ? y : x;
  }
  return sizes;
}

// Strides that walk `sizes` as if they were `to`: 0 along axes that are repeated.
template <size_t kRank, size_t kTo>
constexpr Sizes<kTo> broadcast_strides(const Sizes<kRank>& sizes, const Sizes<kTo>& to) {
  const Sizes<kRank> own = row_major(sizes);
  Sizes<kTo> strides{};
  for (size_t axis = 0; axis < kRank; ++axis)
    if (sizes[axis] == to[kTo - kRank + axis] && sizes[axis] != 1)
      strides[kTo - kRank + axis] = own[axis];
  return strides;
}

// ---- products -----------------------------------------------------------------------------------

// The sizes of all axes of matrices but the last two; a vector has none.
template <size_t kRank>
constexpr auto batch_of(const Sizes<kRank>& sizes) {
  Sizes<(kRank > 2 ? kRank - 2 : 0)> batch{};
  std::copy_n(sizes.begin(), batch.size(), batch.begin());
  return batch;
}
// A vector is one row on the left, and one column on the right.
template <size_t kRank>
constexpr int64_t rows_of(const Sizes<kRank>& left) {
  return kRank > 1 ? left[kRank - 2] : 1;
}
template <size_t kRank>
constexpr int64_t columns_of(const Sizes<kRank>& right) {
  return kRank > 1 ? right[kRank - 1] : 1;
}
template <size_t kRank>
constexpr int64_t terms_of(const Sizes<kRank>& right) {
  return right[kRank > 1 ? kRank - 2 : 0];
}

template <size_t kA, size_t kB>
constexpr auto product_sizes(const Sizes<kA>& a, const Sizes<kB>& b) {
  const auto batch = broadcast(batch_of(a), batch_of(b));
  Sizes<batch.size() + (kA > 1) + (kB > 1)> sizes{};
  auto next = std::copy(batch.begin(), batch.end(), sizes.begin());
  if constexpr (kA > 1) *next++ = rows_of(a);
  if constexpr (kB > 1) *next = columns_of(b);
  return sizes;
}

// ---- other operations ---------------------------------------------------------------------------

template <size_t kRank, size_t kCount>
constexpr Sizes<kRank> kept(Sizes<kRank> sizes, const std::array<size_t, kCount>& axes) {
  for (const size_t axis : axes) sizes[axis] = 1;
  return sizes;
}
template <size_t kCount, size_t kRank>
constexpr auto left_out(const Sizes<kRank>& sizes, const std::array<size_t, kCount>& axes) {
  Sizes<kRank - kCount> rest{};
  size_t next = 0;
  for (size_t axis = 0; axis < kRank; ++axis)
    if (!contains(axes, axis)) rest[next++] = sizes[axis];
  return rest;
}

template <size_t kRank>
constexpr Sizes<kRank> permuted(const Sizes<kRank>& sizes, const std::array<size_t, kRank>& axes) {
  Sizes<kRank> result{};
  for (size_t axis = 0; axis < kRank; ++axis) result[axis] = sizes[axes[axis]];
  return result;
}

}  // namespace detail

// The shape of an array of sizes.
template <auto kSizes>
using ShapeOf =
    typename detail::ShapeOfSizes<kSizes, std::make_index_sequence<kSizes.size()>>::type;

namespace detail {

template <class A, class B>
struct BroadcastShape {
  static constexpr Pair kClash = clash(A::kSizes, B::kSizes);
  static constexpr int64_t kLeft = kClash.left, kRight = kClash.right;
  static_assert(
      kLeft == kRight,
      "sizes do not broadcast: counted from the last axis, two sizes are equal, or one of "
      "them is 1");
  using type = ShapeOf<broadcast(A::kSizes, B::kSizes)>;
};

template <class First, class... Others>
struct BroadcastOf {
  using type = First;
};
template <class First, class Second, class... Others>
struct BroadcastOf<First, Second, Others...>
    : BroadcastOf<typename BroadcastShape<First, Second>::type, Others...> {};

template <class A, class B>
struct ProductShape {
  static_assert(A::kRank >= 1 && B::kRank >= 1, "matmul: expected a vector or a matrix");
  static constexpr int64_t kTermsOfLeft = A::kSizes[A::kRank - 1];
  static constexpr int64_t kTermsOfRight = terms_of(B::kSizes);
  static_assert(kTermsOfLeft == kTermsOfRight,
                "matmul: the left tensor has other columns than the right one has rows");
  static constexpr Pair kClash = clash(batch_of(A::kSizes), batch_of(B::kSizes));
  static constexpr int64_t kLeftBatch = kClash.left, kRightBatch = kClash.right;
  static_assert(kLeftBatch == kRightBatch, "matmul: the axes before the matrices do not broadcast");
  using type = ShapeOf<product_sizes(A::kSizes, B::kSizes)>;
};

template <class S, bool kKeep, int64_t... kAxes>
struct ReducedShape {
  static_assert(((axis_of(kAxes, S::kRank) < S::kRank) && ...),
                "a reduction is over axes that the tensor has");
  // All axes, if none is named.
  static constexpr auto kWhich = [] {
    if constexpr (sizeof...(kAxes) > 0) {
      return std::array<size_t, sizeof...(kAxes)>{axis_of(kAxes, S::kRank)...};
    } else {
      std::array<size_t, S::kRank> all{};
      for (size_t axis = 0; axis < S::kRank; ++axis) all[axis] = axis;
      return all;
    }
  }();
  static_assert(all_different(kWhich), "a reduction names an axis twice");
  using Kept = ShapeOf<kept(S::kSizes, kWhich)>;
  using type = std::conditional_t<kKeep, Kept, ShapeOf<left_out<kWhich.size()>(S::kSizes, kWhich)>>;
};

template <class S, int64_t... kAxes>
struct PermutedShape {
  static constexpr size_t kNamed = sizeof...(kAxes);
  static_assert(kNamed == S::kRank, "transpose: expected every axis once");
  static constexpr std::array<size_t, kNamed> kWhich = {axis_of(kAxes, S::kRank)...};
  static_assert(((axis_of(kAxes, S::kRank) < S::kRank) && ...) && all_different(kWhich),
                "transpose: expected every axis once");
  using type = ShapeOf<permuted(S::kSizes, kWhich)>;
};

}  // namespace detail

// The shape of a result of operands that broadcast as in NumPy.
template <class... Shapes>
using Broadcast = typename detail::BroadcastOf<Shapes...>::type;
// The shape of a product by matmul: matrices are the last two axes, those before broadcast, a
// vector is one row (left) or one column (right) that the result does not have.
template <class A, class B>
using Product = typename detail::ProductShape<A, B>::type;
// The shape of a reduction over these axes, all if none is named; kKeep: they stay, with size 1.
template <class S, bool kKeep, int64_t... kAxes>
using Reduced = typename detail::ReducedShape<S, kKeep, kAxes...>::type;
// Axis i of the result is axis kAxes[i].
template <class S, int64_t... kAxes>
using Permuted = typename detail::PermutedShape<S, kAxes...>::type;

}  // namespace flashlight::fixed
