// Guards: questions about values that a captured program asked on the host. A guard computes no
// value; the graph is valid only if its answers are those that were recorded.
//
//   const Call call = call_of(node, guard_of(node)->schema, blocks);
//   LazyTensor number = guard_of(node)->answer({.call = &call});
//
// They are numbers of tensors, comparisons of two, asserted conditions, errors that factorisations
// report.
#pragma once

#include <string_view>

#include "composit/ir/node.h"
#include "composit/op/rule.h"

namespace composit {

struct Guard {
  enum class Expected : uint8_t {
    types,     // that the types are what they are, which a graph says already
    captured,  // the number that the node names as `expected`
    zero,
    nonzero
  };
  Schema schema;
  Expected expected;
  // The number in question; an absent one stands for 0. No rule: the operand itself.
  Rule<LazyTensor> answer = {};
  std::string_view failure = {};  // says that the number is not zero, or not another number
};

// nullptr: the node asks nothing.
const Guard* guard_of(const Node& node);

// The number that the answer has to be; 0 for the kinds that name none.
Scalar expected_of(const Guard& guard, const Node& node);

}  // namespace composit
