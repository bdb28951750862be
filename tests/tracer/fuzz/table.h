// The operators of random programs and how their arguments are drawn.
#pragma once

#include <vector>

namespace flashlight::fuzz {

// One letter per argument, in the order of the schema; arguments without a letter take the schema's
// default.
//   tensors   T any   F floating   C complex   R real (not complex)   I integers   B bool   = of
//   the first's sizes
//             1 of one axis   2 of two axes   @ the first one again or any
//             U any without strides of 0: LibTorch's `cat.out` writes nothing into those
//   lists     L any tensors   M tensors of one size   N the same tensors again or others of their
//   sizes
//             O optional index tensors
//   numbers   s a number   a a small integer scalar   v a double   p a probability   k an axis
//   extent below 4
//             d an axis of the first tensor (settles the axis of x, b, e, j)   D another axis   x
//             an index in the axis b, e begin and end of a slice   j step 1 or 2   w extent of a
//             window in the axis
//   shapes    z sizes with as many elements as the first   q sizes it expands to   y any sizes   A
//   axes, some
//             P a permutation   G sizes, strides and offset within the first one's storage (three
//             arguments)
//   other     Y a dtype as wide as the first one's   Z any dtype   t true   f false   n none   h a
//   seed
struct Row {
  const char* op;
  const char* arguments;
  int weight;
};

const std::vector<Row>& rows();

}  // namespace flashlight::fuzz
