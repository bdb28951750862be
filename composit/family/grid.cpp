#include "composit/family/grid.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "composit/family/cases.h"

namespace composit {
namespace {

int64_t count_of(const FreeSize& size) { return (size.high - size.low) / size.step + 1; }

SizeValues first_of(const std::vector<FreeSize>& sizes) {
  SizeValues values;
  for (const FreeSize& size : sizes) values[size.name] = size.shown.at(0);
  return values;
}

std::vector<SizeValues> all_points(const std::vector<FreeSize>& sizes) {
  std::vector<SizeValues> points = {{}};
  for (const FreeSize& size : sizes) {
    std::vector<SizeValues> more;
    for (const SizeValues& point : points)
      for (int64_t number = size.low; number <= size.high; number += size.step) {
        more.push_back(point);
        more.back()[size.name] = number;
      }
    points = std::move(more);
  }
  return points;
}

std::vector<SizeValues> some_points(const std::vector<FreeSize>& sizes) {
  constexpr int64_t kMost = 512;
  constexpr int64_t kPaces[] = {101, 211, 307, 401, 503, 601};
  std::vector<SizeValues> points;
  for (const FreeSize& size : sizes)
    for (int64_t i = 0; i < std::min(count_of(size), kMost); ++i) {
      const int64_t step = count_of(size) <= kMost ? i : i * count_of(size) / kMost;
      points.push_back(first_of(sizes));
      points.back()[size.name] = size.low + size.step * step;
    }
  for (int64_t i = 0; i < kMost; ++i) {
    SizeValues point;
    for (size_t s = 0; s < sizes.size(); ++s)
      point[sizes[s].name] =
          sizes[s].low + sizes[s].step * (i * kPaces[s % std::size(kPaces)] % count_of(sizes[s]));
    points.push_back(std::move(point));
  }
  return points;
}

// How far a point is from the nearest of those known, each size by its range; 0: it is one of them.
double distance_to(const std::vector<SizeValues>& known, const SizeValues& point,
                   const std::vector<FreeSize>& sizes) {
  double nearest = static_cast<double>(sizes.size()) + 1;
  for (const SizeValues& other : known) {
    double distance = 0;
    for (const FreeSize& size : sizes)
      if (size.high > size.low)
        distance += std::abs(static_cast<double>(point.at(size.name) - other.at(size.name))) /
                    static_cast<double>(size.high - size.low);
    nearest = std::min(nearest, distance);
  }
  return nearest;
}

}  // namespace

std::vector<SizeValues> grid_of(const std::vector<FreeSize>& sizes) {
  constexpr double kMost = 2048;
  double count = 1;
  for (const FreeSize& size : sizes) count *= static_cast<double>(count_of(size));
  return count <= kMost ? all_points(sizes) : some_points(sizes);
}

std::optional<SizeValues> farthest_wanted(const std::vector<SizeValues>& known,
                                          const std::vector<SizeValues>& points,
                                          const std::vector<FreeSize>& sizes) {
  constexpr size_t kLeastPoints = 4, kLeastNumbers = 3;
  const auto numbers_of = [](const std::vector<SizeValues>& all, const std::string& name) {
    std::set<int64_t> numbers;
    for (const SizeValues& point : all) numbers.insert(point.at(name));
    return numbers;
  };
  std::map<std::string, std::set<int64_t>> lacking;  // the numbers that are known
  for (const FreeSize& size : sizes) {
    std::set<int64_t> numbers = numbers_of(known, size.name);
    if (numbers.size() < std::min(kLeastNumbers, numbers_of(points, size.name).size()))
      lacking[size.name] = std::move(numbers);
  }
  if (known.size() >= kLeastPoints && lacking.empty()) return std::nullopt;
  std::optional<SizeValues> wanted;
  double farthest = 0;
  for (const SizeValues& point : points) {
    const double distance = distance_to(known, point, sizes);
    const bool is_new =
        lacking.empty() || std::any_of(lacking.begin(), lacking.end(), [&](const auto& one) {
          return !one.second.contains(point.at(one.first));
        });
    if (distance <= farthest || !is_new) continue;
    farthest = distance;
    wanted = point;
  }
  return wanted;
}

std::vector<SizeValues> some_of(const std::vector<SizeValues>& points, size_t nodes) {
  constexpr size_t kMostNodes = 20'000, kLeast = 24, kPace = 7919;
  const size_t count = std::max(kLeast, kMostNodes / std::max<size_t>(nodes, 1));
  if (count >= points.size()) return points;
  std::vector<SizeValues> some;
  for (size_t i = 0; i < count; ++i) some.push_back(points[i * kPace % points.size()]);
  return some;
}

bool has_one(const SizeValues& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](const auto& size) { return size.second <= 1; });
}

namespace {

int64_t product_of(const SizeValues& sizes) {
  int64_t product = 1;
  for (const auto& [name, number] : sizes) product *= number;
  return product;
}

// Some of `all` places, about `count`.
std::set<size_t> spread_places(size_t all, size_t count) {
  std::set<size_t> places;
  if (all == 0) return places;
  const size_t last = all - 1, between = std::max<size_t>(count, 4) - 3;
  for (size_t i = 0; i <= between; ++i) places.insert(i * last / between);
  places.insert(std::min<size_t>(1, last));
  places.insert(last - std::min<size_t>(1, last));
  return places;
}

}  // namespace

std::vector<SizeValues> spread_sizes(const Cases& cases, const std::vector<size_t>& numbers,
                                     size_t count) {
  std::vector<SizeValues> all;
  for (const SizeValues& sizes : grid_of(cases.cases[numbers.at(0)].sizes))
    if (cases.forks.empty() || shown_cases_at(cases, sizes) == numbers) all.push_back(sizes);
  std::stable_sort(all.begin(), all.end(), [](const SizeValues& a, const SizeValues& b) {
    return product_of(a) != product_of(b) ? product_of(a) < product_of(b) : a < b;
  });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<SizeValues> spread;
  for (const size_t place : spread_places(all.size(), count)) spread.push_back(all[place]);
  return spread;
}

}  // namespace composit
