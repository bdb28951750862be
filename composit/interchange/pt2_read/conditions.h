// What torch found that sizes have to be for a program to be the same: Python's text of
// comparisons.
//
//   const Condition condition("(L['x'].size()[1] % 2) == 0");
//   condition.holds([](const AxisOf& axis) { return 8; });        // axis: x, no keys, axis 1
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace composit::pt2_read {

// An axis of a tensor among the arguments: `L['x'][0]['k'].size()[1]`.
struct AxisOf {
  std::string argument;           // "x"
  std::vector<std::string> keys;  // "0", "k"
  int64_t axis = 0;
  bool operator<(const AxisOf& other) const;
};

using SizeOfAxis = std::function<int64_t(const AxisOf& axis)>;

// Whether the comparison holds. UserError for text that is none of integers and sizes.
bool holds(const std::string& condition, const SizeOfAxis& size);
// The axes that it reads. UserError as above.
std::vector<AxisOf> axes_in(const std::string& condition);

}  // namespace composit::pt2_read
