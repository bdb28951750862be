// Indices that are data, checked before memory of the caller's is written.
//
//   program = check_early(std::move(program), updates);      // after split_reductions
//   if (refuses(plan.routine, statement, checked)) ...       // buffers.cpp
//
// A program that writes rows of a cache where a tensor says (index_put_, index_copy_) may be given
// an index that is out of range. A call that throws has written nothing of the caller's, so such a
// cache could not be written in place: the next layer's index may be wrong. Here each of these
// indices gets a step that reads one element for each of its values, before the first layer writes.
// Who uses the same index behind that refuses no more.
#pragma once

#include <map>
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/mosaic/ids.h"

namespace flashlight::mosaic {

// An index by loaded elements: its axes are numbered from 0 on, in the order of the statement.
struct DataIndex {
  composit::Expr at;
  std::vector<int64_t> extents;  // of its axes
  int64_t size = 0;              // of the dimension
  bool operator==(const DataIndex& other) const {
    return at.same(other.at) && extents == other.extents && size == other.size;
  }
};

// In the program's own function: steps that check where `updates`, new values of inputs by result,
// are written, and what is read by data from there on. They stand before the first step that writes
// one, and no sooner than a guard or a call may decide how the program goes on. Indices that are
// computed behind that are checked where they are used. Values keep their numbers.
loops::Program check_early(loops::Program program, const std::map<ValueId, ValueId>& updates);
// True for one of these steps. No other step may share its loops.
bool is_early_check(const loops::Step& step);
// The indices that a step has checked for all that runs behind it.
std::vector<DataIndex> checked_by(const loops::Routine& routine, const loops::Step& step);
// True if a step may throw for some data, where these indices are known to be in range.
bool refuses(const loops::Routine& routine, const loops::Step& step,
             const std::vector<DataIndex>& checked);

}  // namespace flashlight::mosaic
