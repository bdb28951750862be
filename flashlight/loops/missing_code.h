// Collects the operations of a graph that have no code, so that one error names them all.
#pragma once

#include <map>
#include <string>

#include "composit/ir/error.h"
#include "flashlight/loops/program.h"

namespace flashlight::loops {

class MissingCode {
 public:
  // `reason` is empty if no case of the operation has code.
  void add(const Origin& origin, const std::string& reason) {
    Missing& missing =
        missing_["'" + origin.operation + "'" + (reason.empty() ? "" : " " + reason)];
    if (missing.count++ == 0)
      missing.first_place = place_of(origin).substr(origin.operation.size());
  }

  // UserError: "[compile] no code for 'aten::lu' at model.py:12 (encoder) (2 times), 'mine::op'".
  void refuse() const {
    std::string list;
    for (const auto& [what, missing] : missing_)
      list += (list.empty() ? "" : ", ") + what + missing.first_place +
              (missing.count > 1 ? " (" + std::to_string(missing.count) + " times)" : "");
    if (!list.empty()) throw composit::UserError("[compile] no code for " + list);
  }

 private:
  struct Missing {
    int count = 0;
    std::string first_place;  // " at model.py:12 (encoder)"
  };
  std::map<std::string, Missing> missing_;  // by operation and reason
};

}  // namespace flashlight::loops
