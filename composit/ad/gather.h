// Turns "scatter" into "gather": from adding to computed places to a sum for each place.
//
//   // for y, k:  dx[2 * y + k] += g[y] * w[k]           y < 14, k < 3, dx has 29 places
//   gather({.axes = axes, .at = {2 * y + k}, .value = g(y) * w(k)}, {29});
//   // for y:  dx[y] = sum over k of g[(y - k) / 2] * w[k] where (y - k) % 2 == 0, 0 <= y - k <= 26
#pragma once

#include <optional>
#include <vector>

#include "composit/op/loops.h"

namespace composit {

// At each point of the axes (parallel, whatever their kind says) where `domain` holds,
// result[at] += value. In the domain, places are those of the result.
struct Contribution {
  std::vector<Axis> axes;
  Expr domain = {};
  std::vector<Expr> at;
  Expr value;
};

// The statement that adds up `contribution` for a result of these sizes; nothing where there is
// none to add. Its only store has `add` set unless it writes no place twice.
//
// For each axis of the result the index, affine or floor(affine / literal), is solved for one axis
// of the contribution, that of the largest extent, for which the result's axis is substituted; what
// has to hold for the point to exist becomes the domain. Axes that the place does not depend on
// become reductions. An index that gives its axes as digits (2 * y + k, k < 2) stays, as they may
// run in parallel; so does any other index, and then the statement adds.
std::optional<Statement> gather(const Contribution& contribution, const Dims& sizes);

// `statement` with its expressions simplified, and without parallel axes of extent 1.
Statement tidy(const Statement& statement);

}  // namespace composit
