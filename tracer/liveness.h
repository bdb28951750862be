// Which records of a recording are needed, and which composite operators can stay closed.
#pragma once

#include <vector>

#include "tracer/recording.h"

namespace flashlight::tracer {

struct Liveness {
  std::vector<bool> record;     // is needed
  std::vector<bool> composite;  // contains a needed record
  std::vector<bool>
      open;  // a value made inside is used outside, and is neither its result nor a mutation
  // Values of memory that existed before the composite: further results of it.
  std::vector<std::vector<ValueId>> exports;
};

// Needed are `roots` and, with `effects`, the records that keep their place.
Liveness find_live(const Recording& recording, const std::vector<ValueId>& roots, bool effects);

// Calls `visit` with every operand value of a record or composite (kNone for absent ones).
template <class Visit>
void for_each_operand(const Recording& recording, uint32_t begin, uint32_t count, Visit visit) {
  for (uint32_t i = begin; i < begin + count; ++i) {
    const uint32_t operand = recording.operands[i];
    if (operand == kNone || operand < kListMark) visit(operand);
  }
}

}  // namespace flashlight::tracer
