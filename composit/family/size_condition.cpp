#include "composit/family/size_condition.h"

#include <algorithm>
#include <set>

#include "composit/ir/lexer.h"

namespace composit {

bool holds(const SizeCondition& condition, const SizeFormula::SizeOf& size_of) {
  const int64_t left = condition.left.evaluate(size_of);
  const int64_t right = condition.right.evaluate(size_of);
  return condition.relation == SizeCondition::Relation::equal ? left == right : left <= right;
}

std::string print(const SizeCondition& condition, const Names& names) {
  return print(condition.left, names) +
         (condition.relation == SizeCondition::Relation::equal ? " == " : " <= ") +
         print(condition.right, names);
}

SizeCondition read_condition(Lexer& lexer,
                             const std::function<LazyTensor(std::string_view)>& find) {
  SizeCondition condition;
  condition.left = read_formula(lexer, find);
  if (lexer.accept("<"))
    condition.relation = SizeCondition::Relation::at_most;
  else
    lexer.expect("=");
  lexer.expect("=");
  condition.right = read_formula(lexer, find);
  return condition;
}

void for_each_size(const SizeCondition& condition,
                   const std::function<void(const LazyTensor&, size_t axis)>& visit) {
  condition.left.for_each_size(visit);
  condition.right.for_each_size(visit);
}

namespace {

using Relation = SizeCondition::Relation;

// The conditions over one or two sizes, by which side of the examples they hold for.
class Separator {
 public:
  Separator(const std::vector<bool>& inside, bool holds_inside)
      : inside_(inside), holds_inside_(holds_inside) {}

  bool tells_apart(const SizeCondition& condition, const std::vector<const SizeLeaf*>& read) const {
    for (size_t g = 0; g < inside_.size(); ++g) {
      const auto size_of = [&](const LazyTensor& tensor, size_t axis) {
        for (const SizeLeaf* leaf : read)
          if (leaf->tensor.node == tensor.node && leaf->tensor.index == tensor.index &&
              leaf->axis == axis)
            return leaf->values[g];
        return int64_t{0};
      };
      if (holds(condition, size_of) != (inside_[g] == holds_inside_)) return false;
    }
    return true;
  }

  // The sizes of those for which the condition has to hold, and of the others.
  std::vector<int64_t> sizes(const SizeLeaf& leaf, bool holding) const {
    std::vector<int64_t> sizes;
    for (size_t g = 0; g < inside_.size(); ++g)
      if ((inside_[g] == holds_inside_) == holding) sizes.push_back(leaf.values[g]);
    return sizes;
  }

 private:
  const std::vector<bool>& inside_;
  bool holds_inside_;
};

void add_equal(const SizeLeaf& leaf, const SizeFormula& size, const Separator& separator,
               std::vector<SizeCondition>& found) {
  const SizeCondition condition{size, Relation::equal, separator.sizes(leaf, true)[0]};
  if (leaf.near && separator.tells_apart(condition, {&leaf})) found.push_back(condition);
}

void add_divisors(const SizeLeaf& leaf, const SizeFormula& size, const Separator& separator,
                  std::vector<SizeCondition>& found) {
  constexpr int64_t kMost = 4096, kMostWithRemainder = 16;
  const std::vector<int64_t> holding = separator.sizes(leaf, true);
  for (const bool with_remainder : {false, true}) {
    if (with_remainder && !leaf.near) continue;
    for (int64_t k = 2; k <= (with_remainder ? kMostWithRemainder : kMost); ++k) {
      const int64_t rest = holding[0] % k;
      if ((rest != 0) != with_remainder) continue;
      const SizeCondition condition{mod(size, k), Relation::equal, rest};
      if (separator.tells_apart(condition, {&leaf})) found.push_back(condition);
    }
  }
}

void add_limits(const SizeLeaf& leaf, const SizeFormula& size, const Separator& separator,
                std::vector<SizeCondition>& found) {
  const std::vector<int64_t> below = separator.sizes(leaf, true),
                             above = separator.sizes(leaf, false);
  const int64_t low = *std::max_element(below.begin(), below.end());
  const int64_t high = *std::min_element(above.begin(), above.end()) - 1;
  if (low > high) return;
  for (const int64_t limit : std::set<int64_t>{low, low + (high - low) / 2, high})
    found.push_back({size, Relation::at_most, limit});
}

void add_pairs(const std::vector<SizeLeaf>& leaves, Relation relation, const Separator& separator,
               std::vector<SizeCondition>& found) {
  constexpr int64_t kMostFactor = 16;
  for (const SizeLeaf& a : leaves)
    for (const SizeLeaf& b : leaves) {
      if (&a == &b || !a.near || !b.near || (relation == Relation::equal && &b < &a)) continue;
      const SizeFormula left = size_of(a.tensor, a.axis), right = size_of(b.tensor, b.axis);
      for (int64_t factor = 1; factor <= kMostFactor; ++factor)
        for (const bool is_left : {true, false}) {
          if (factor == 1 && !is_left) continue;
          const SizeCondition condition{factor > 1 && is_left ? factor * left : left, relation,
                                        factor > 1 && !is_left ? factor * right : right};
          if (separator.tells_apart(condition, {&a, &b})) found.push_back(condition);
        }
    }
}

}  // namespace

std::vector<Separation> separations(const std::vector<SizeLeaf>& leaves,
                                    const std::vector<bool>& inside) {
  std::vector<Separation> all;
  const auto add = [&](const auto& conditions) {
    for (const bool holds_inside : {true, false}) {
      std::vector<SizeCondition> found;
      conditions(Separator(inside, holds_inside), found);
      for (SizeCondition& condition : found) all.push_back({std::move(condition), holds_inside});
    }
  };
  const auto each = [&](const auto& of_leaf) {
    add([&](const Separator& separator, std::vector<SizeCondition>& found) {
      for (const SizeLeaf& leaf : leaves)
        of_leaf(leaf, size_of(leaf.tensor, leaf.axis), separator, found);
    });
  };
  each(add_equal);
  each(add_divisors);
  add([&](const Separator& separator, std::vector<SizeCondition>& found) {
    add_pairs(leaves, Relation::equal, separator, found);
  });
  each(add_limits);
  add([&](const Separator& separator, std::vector<SizeCondition>& found) {
    add_pairs(leaves, Relation::at_most, separator, found);
  });
  return all;
}

}  // namespace composit
