#include "composit/ir/align.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace composit {
namespace {

using Keys = std::vector<uint64_t>;
using Index = ptrdiff_t;

// Edits a search may cost before the box is cut where it has come furthest.
constexpr Index kMaxCost = 512;

struct Point {
  Index x, y;
};
struct Box {
  Point begin, end;
};

// The furthest points of all diagonals that `cost` edits reach, from one corner of a box towards
// the other. Diagonal k holds the points with x - y = k, counted from the corner where the search
// began.
class Frontier {
 public:
  explicit Frontier(size_t max_cost)
      : center_(static_cast<Index>(max_cost) + 1), x_(2 * max_cost + 3) {}

  void start() {
    x_at(-1) = -1;
    x_at(0) = -1;
    x_at(1) = 0;
    first_ = last_ = 0;
  }
  // Diagonals that left the box are not followed any more.
  template <class Equal, class Visit>
  bool advance(Index cost, Point size, Equal equal, Visit visit) {
    x_at(-cost - 1) = -1;
    if (cost > 0) x_at(cost + 1) = -1;
    for (Index k = first_ - cost; k <= cost - last_; k += 2) {
      const bool down = k == -cost || (k != cost && x_at(k - 1) < x_at(k + 1));
      Point at;
      at.x = down ? x_at(k + 1) : x_at(k - 1) + 1;
      at.y = at.x - k;
      while (at.x < size.x && at.y < size.y && equal(at)) ++at.x, ++at.y;
      x_at(k) = at.x;
      if (at.x > size.x)
        last_ += 2;
      else if (at.y > size.y)
        first_ += 2;
      else if (visit(k, at))
        return true;
    }
    return false;
  }
  Index x_at(Index k) const { return x_[static_cast<size_t>(k + center_)]; }

 private:
  Index& x_at(Index k) { return x_[static_cast<size_t>(k + center_)]; }
  Index center_;
  std::vector<Index> x_;
  Index first_ = 0, last_ = 0;  // diagonals left out at both ends
};

class Aligner {
 public:
  Aligner(const Keys& before, const Keys& after)
      : before_(before),
        after_(after),
        forward_(std::min<size_t>(before.size() + after.size(), kMaxCost)),
        backward_(std::min<size_t>(before.size() + after.size(), kMaxCost)) {}

  std::vector<Match> run() {
    std::vector<Box> boxes{{{0, 0}, {to_index(before_), to_index(after_)}}};
    while (!boxes.empty()) {
      Box box = boxes.back();
      boxes.pop_back();
      strip_common_ends(box);
      if (box.begin.x == box.end.x || box.begin.y == box.end.y) continue;
      const Point middle = split(box);
      boxes.push_back({box.begin, middle});
      boxes.push_back({middle, box.end});
    }
    std::sort(matches_.begin(), matches_.end(),
              [](const Match& a, const Match& b) { return a.before < b.before; });
    return std::move(matches_);
  }

 private:
  static Index to_index(const Keys& keys) { return static_cast<Index>(keys.size()); }
  bool equal(Index x, Index y) const {
    return before_[static_cast<size_t>(x)] == after_[static_cast<size_t>(y)];
  }
  void add_match(Index x, Index y) {
    matches_.push_back({static_cast<uint32_t>(x), static_cast<uint32_t>(y)});
  }
  void strip_common_ends(Box& box) {
    auto& [begin, end] = box;
    for (; begin.x < end.x && begin.y < end.y && equal(begin.x, begin.y); ++begin.x, ++begin.y)
      add_match(begin.x, begin.y);
    for (; begin.x < end.x && begin.y < end.y && equal(end.x - 1, end.y - 1); --end.x, --end.y)
      add_match(end.x - 1, end.y - 1);
  }

  // A point, no corner of the box, through which a shortest path leads: where the searches from
  // both ends meet.
  Point split(const Box& box) {
    const Point size{box.end.x - box.begin.x, box.end.y - box.begin.y};
    const Index delta = size.x - size.y;
    const bool odd = delta % 2 != 0;
    const auto from_begin = [&](Point at) { return equal(box.begin.x + at.x, box.begin.y + at.y); };
    const auto from_end = [&](Point at) {
      return equal(box.end.x - at.x - 1, box.end.y - at.y - 1);
    };
    forward_.start();
    backward_.start();
    Point found{}, furthest{}, furthest_back{};
    const auto keep = [](Point& best, Point at) {
      if (at.x + at.y > best.x + best.y) best = at;
    };
    for (Index cost = 0;; ++cost) {
      // The other search has dealt with the diagonals up to `reached`.
      const auto meets = [&](const Frontier& other, Index reached, Index k, Point at) {
        return std::abs(delta - k) <= reached && at.x + other.x_at(delta - k) >= size.x;
      };
      if (forward_.advance(cost, size, from_begin, [&](Index k, Point at) {
            keep(furthest, at);
            found = at;
            return odd && meets(backward_, cost - 1, k, at);
          }))
        return {box.begin.x + found.x, box.begin.y + found.y};
      if (backward_.advance(cost, size, from_end, [&](Index k, Point at) {
            keep(furthest_back, at);
            found = at;
            return !odd && meets(forward_, cost, k, at);
          }))
        return {box.end.x - found.x, box.end.y - found.y};
      if (cost < kMaxCost) continue;
      if (furthest.x + furthest.y >= furthest_back.x + furthest_back.y)
        return {box.begin.x + furthest.x, box.begin.y + furthest.y};
      return {box.end.x - furthest_back.x, box.end.y - furthest_back.y};
    }
  }

  const Keys &before_, &after_;
  Frontier forward_, backward_;
  std::vector<Match> matches_;
};

}  // namespace

std::vector<Match> align(const Keys& before, const Keys& after) {
  return Aligner(before, after).run();
}

}  // namespace composit
