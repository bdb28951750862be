// Which module a record belongs to, told from the parameters it reads.
#pragma once

#include <string>
#include <vector>

#include "tracer/recording.h"

namespace flashlight::tracer {

class ModuleScopes {
 public:
  explicit ModuleScopes(const Recording& recording);

  // The module of a Record or a Composite; call it in the order of recording. It is the module that
  // the program named, otherwise the module of the parameters that the operator reads. An operator
  // that reads "layer1.0.conv1.weight" belongs to "layer1.0.conv1"; one that reads no parameter
  // belongs to the module around the last one, "layer1.0".
  template <class Call>
  std::string of(const Call& call) {
    if (!inside_.empty()) return inside_.back();
    if (call.place.module != kNone) return recording_.modules[call.place.module];
    return of_operands(call.operands, call.operand_count);
  }
  // Makes all answers `scope` until `leave`: the inside of a composite belongs where the composite
  // does.
  void enter(const std::string& scope) { inside_.push_back(scope); }
  void leave() { inside_.pop_back(); }
  // Value `to` is a view or a cast of `from`: reading it reads the same parameter.
  void derive(ValueId from, ValueId to) { origin_[to] = origin_[from]; }

 private:
  std::string of_operands(uint32_t operands, uint32_t operand_count);

  const Recording& recording_;
  std::vector<int> origin_;  // per value: index into prefixes_, -1 for none
  std::vector<std::string> prefixes_;
  std::string last_;
  std::vector<std::string> inside_;
};

}  // namespace flashlight::tracer
