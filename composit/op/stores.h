// Which places of a result the stores of a loop form write.
//
//   injective({2 * i + 1, j}, {0, 1}, analysis)      // true: no place twice
//   disjoint(first, first.stores[0], second, second.stores[0])
//
// By affine reasoning; where that does not tell, the answer is the one that promises nothing.
#pragma once

#include <optional>
#include <vector>

#include "composit/op/affine.h"
#include "composit/op/loops.h"

namespace composit {

// The axes a store runs over: the parallel and the scan axes, which come first.
std::vector<size_t> store_axes(const Statement& statement);

// True if the indices `at` determine the axes `over`: no two points of these axes give the same
// indices.
bool injective(const std::vector<Expr>& at, const std::vector<size_t>& over,
               IndexAnalysis& analysis);
// The same for one index, of the axes that it has.
bool injective(const Affine& index, const IndexAnalysis& analysis);

// True if the two stores, which have the same result, never write the same element.
bool disjoint(const Statement& a, const Store& store_a, const Statement& b, const Store& store_b);

// The predicate that `store` writes `place`, a place of the result over axes of any statement;
// nothing where it is not known before the statement runs.
std::optional<Expr> writes(const Statement& statement, const Store& store,
                           const std::vector<Expr>& place);

}  // namespace composit
