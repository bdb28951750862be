// Looks at every operator that the program calls on one thread, also where no scope records: to see
// where a scope should begin and end.
//
//   class Counter : public OperatorWatch { … };
//   Counter counter;
//   const WatchOperators watching(counter);     // until it goes
//
// Costs some 0.1 µs per operator besides what `before` does.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include "tracer/op_info.h"

namespace flashlight::tracer {

class OperatorWatch {
 public:
  virtual ~OperatorWatch() = default;
  // Before the operator runs, and before a scope records it: a scope that begins or ends here does
  // so before this operator. Operators that are called in here are not seen.
  virtual void before(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) = 0;
};

// One per thread at a time; to be destroyed on its thread.
class WatchOperators {
 public:
  explicit WatchOperators(OperatorWatch& watch);
  ~WatchOperators();
  WatchOperators(const WatchOperators&) = delete;
  WatchOperators& operator=(const WatchOperators&) = delete;

 private:
  c10::impl::IncludeDispatchKeyGuard key_;
};

}  // namespace flashlight::tracer
