// The longest common subsequence of two sequences, as pairs of positions in increasing order.
//
//   align({1, 2, 3}, {1, 3}) == std::vector<Match>{{0, 0}, {2, 1}};
//
// E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986, with divide and conquer in
// linear memory. Time is O((N + M) D) with D elements that have no partner; sequences with very
// many of them are cut where a search has come furthest, and may then miss some pairs, so that time
// stays linear with a large factor.
#pragma once

#include <cstdint>
#include <vector>

namespace composit {

struct Match {
  uint32_t before, after;
  bool operator==(const Match&) const = default;
};

std::vector<Match> align(const std::vector<uint64_t>& before, const std::vector<uint64_t>& after);

}  // namespace composit
