// What `unify` asks of a family that it made. For unify.cpp only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "composit/family/family.h"
#include "composit/family/fit.h"
#include "composit/family/unify.h"

namespace composit {

// An integer that several formulas give in all examples.
struct Ambiguity {
  std::string node;              // "%view = aten::view at gpt.cpp:31"
  std::string what;              // "'size'"
  std::vector<Fit> fits;         // the first is taken
  std::vector<SizeLeaf> leaves;  // the sizes that they read
  // The least and the greatest number that an example has for a size among `leaves`.
  std::pair<int64_t, int64_t> range_of(const LazyTensor& tensor, size_t axis) const;
};

// Sizes that are equal in all examples.
using Twins = std::vector<std::pair<LazyTensor, size_t>>;

// What examples leave open.
struct Doubts {
  std::vector<Ambiguity> integers;
  std::vector<Twins> twins;
};

// UserError with the first node where the family, bound to the sizes of an example, is not that
// example.
void expect_examples_again(const Family& family, const std::vector<Graph>& examples);

// UserError that names a node and sizes, among those `within` the range that was shown, at which
// two formulas for one integer differ, or two sizes that formulas may have meant and that examples
// do not tell apart.
void expect_one_meaning(const Family& family, const Doubts& doubts, const Within& within);

}  // namespace composit
