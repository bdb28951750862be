#include "composit/family/unify_check.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "composit/family/bind.h"
#include "composit/family/cases.h"
#include "composit/family/unify.h"
#include "composit/ir/compare.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"

namespace composit {
namespace {

// Sizes at which formulas are compared: the ends, and points between, where each size goes through
// its range at a pace of its own. Ranges of few numbers are seen as a whole.
std::vector<SizeValues> points_within(const Family& family) {
  constexpr int64_t kPoints = 40;
  constexpr int64_t kPaces[] = {1, 7, 11, 13, 17, 19, 23, 29};
  std::vector<SizeValues> points;
  for (int64_t point = 0; point < kPoints; ++point) {
    SizeValues sizes;
    for (size_t i = 0; i < family.sizes.size(); ++i) {
      const FreeSize& size = family.sizes[i];
      const int64_t count = (size.high - size.low) / size.step + 1;
      const int64_t spread = count <= kPoints ? point * kPaces[i % std::size(kPaces)]
                                              : point * (count - 1) / (kPoints - 1) +
                                                    point * kPaces[i % std::size(kPaces)];
      const int64_t step = point == 0 ? 0 : point == 1 ? count - 1 : spread % count;
      sizes[size.name] = size.low + size.step * step;
    }
    points.push_back(std::move(sizes));
  }
  return points;
}

// Formulas that a program may have meant just as well as the one that is taken.
bool competes(const Fit& fit, const Fit& taken) {
  const auto is_simple = [](const Fit& one) {
    return one.form == FitForm::size ||
           (one.near && (one.form == FitForm::multiple || one.form == FitForm::product));
  };
  if (taken.form == FitForm::size && taken.near) return fit.form == FitForm::size;
  // Small numbers are quotients by large divisors as well as remainders by small ones.
  const bool is_divided = taken.form >= FitForm::quotient;
  const FitForm last = is_divided ? std::max(FitForm::remainder, taken.form) : FitForm::quotient;
  return is_simple(taken) ? is_simple(fit) : fit.form <= last;
}

}  // namespace

std::pair<int64_t, int64_t> Ambiguity::range_of(const LazyTensor& tensor, size_t axis) const {
  for (const SizeLeaf& leaf : leaves)
    if (leaf.tensor.node == tensor.node && leaf.tensor.index == tensor.index && leaf.axis == axis) {
      const auto [low, high] = std::minmax_element(leaf.values.begin(), leaf.values.end());
      return {*low, *high};
    }
  return {0, -1};
}

void expect_examples_again(const Family& family, const std::vector<Graph>& examples) {
  for (size_t g = 0; g < examples.size(); ++g) {
    std::vector<Type> types;
    for (const LazyTensor& input : examples[g].inputs()) types.push_back(input.type());
    std::vector<int64_t> value_sizes;
    for (const ValueSize& size : family.value_sizes) value_sizes.push_back(size.shown[g]);
    const auto shown = [g](const NumberUse& use) { return use.shown.at(g); };
    const Graph bound = bind_types(family, types, value_sizes, shown).graph;
    if (bound == examples[g]) continue;
    const std::vector<Difference> differences = compare(bound, examples[g]);
    if (differences.empty()) continue;
    throw UserError("[unify] the family does not give example " + std::to_string(g + 1) +
                    " again: " + str(differences[0]));
  }
}

namespace {

// The family at these sizes; nothing where sizes that depend on values do not go with them.
std::optional<Binding> bound_at(const Family& family, const SizeValues& sizes) {
  std::vector<int64_t> value_sizes;
  for (const ValueSize& size : family.value_sizes) value_sizes.push_back(size.shown[0]);
  try {
    return bind_types(family, input_types(family, sizes), value_sizes);
  } catch (const UserError& error) {
    if (!value_sizes.empty()) return std::nullopt;
    throw ExampleWanted("[unify] at " + text_of(sizes) +
                            ", within what was shown, formulas lead to "
                            "an error: " +
                            error.what() + "; add an example there",
                        sizes);
  }
}

// The only size that a formula reads, if there is one.
std::optional<std::pair<LazyTensor, size_t>> only_size(const SizeFormula& formula) {
  std::optional<std::pair<LazyTensor, size_t>> only;
  bool several = false;
  formula.for_each_size([&](const LazyTensor& tensor, size_t axis) {
    several = several || (only && (only->first.node != tensor.node ||
                                   only->first.index != tensor.index || only->second != axis));
    only = {tensor, axis};
  });
  return several ? std::nullopt : only;
}

// A number of that size, between those that were shown, at which both formulas differ.
std::optional<int64_t> number_between(const Ambiguity& integer, const SizeFormula& other) {
  constexpr int64_t kMost = 10'000;
  const SizeFormula& taken = integer.fits[0].formula;
  const auto size = only_size(taken), same = only_size(other);
  if (!size || !same || size->first.node != same->first.node ||
      size->first.index != same->first.index || size->second != same->second)
    return std::nullopt;
  const auto [low, high] = integer.range_of(size->first, size->second);
  for (int64_t number = low; number <= std::min(high, low + kMost); ++number) {
    const auto value = [number](const LazyTensor&, size_t) { return number; };
    try {
      if (taken.evaluate(value) != other.evaluate(value)) return number;
    } catch (const UserError&) {  // an exact quotient that is none here is refused, not wrong
    }
  }
  return std::nullopt;
}

// The sizes of the first example, but for that of this axis of an input; nothing for other tensors.
std::optional<SizeValues> sizes_with(const Family& family,
                                     const std::pair<LazyTensor, size_t>& size, int64_t number) {
  SizeValues sizes;
  bool found = false;
  for (const FreeSize& one : family.sizes) {
    sizes[one.name] = one.shown.at(0);
    for (const InputAxis& axis : one.axes)
      if (family.example.inputs().at(axis.input).node == size.first.node &&
          axis.axis == size.second) {
        sizes[one.name] = number;
        found = true;
      }
  }
  return found ? std::optional(sizes) : std::nullopt;
}

// The family at all sizes within its range, or where these are many, at some of them: what sizes
// values in it can have. Bound as far as somebody asks.
class AllBindings {
 public:
  AllBindings(const Family& family, const Within& within) : family_(family), within_(within) {}

  // The first sizes at which two formulas differ. `is_known`: they were looked for at all sizes.
  std::optional<SizeValues> where_differ(const SizeFormula& a, const SizeFormula& b,
                                         bool& is_known) {
    constexpr double kAll = 256;
    double count = 1;
    for (const FreeSize& size : family_.sizes)
      count *= static_cast<double>((size.high - size.low) / size.step + 1);
    is_known = count <= kAll && family_.value_sizes.empty();
    return first_where([&](const SizeFormula::SizeOf& size_of) {
      return a.evaluate(size_of) != b.evaluate(size_of);
    });
  }

  // The first sizes at which `holds`, of the sizes of values there, is true.
  std::optional<SizeValues> first_where(
      const std::function<bool(const SizeFormula::SizeOf&)>& holds) {
    for (size_t i = 0;; ++i) {
      if (i == bindings_.size() && !bind_next()) return std::nullopt;
      const auto& [sizes, binding] = bindings_[i];
      const auto size_of = [&binding = binding](const LazyTensor& tensor, size_t axis) {
        return binding.of(tensor).sizes().at(axis);
      };
      try {
        if (holds(size_of)) return sizes;
      } catch (const UserError&) {  // an exact quotient that is none here is refused, not wrong
      }
    }
  }

 private:
  // False: there are no more.
  bool bind_next() {
    constexpr size_t kMost = 256;
    if (!family_.value_sizes.empty()) return false;
    if (!grid_) grid_ = grid_of(family_.sizes);
    while (next_ < std::min(grid_->size(), kMost)) {
      const SizeValues& sizes = (*grid_)[next_++];
      if (within_ && !within_(sizes)) continue;
      std::optional<Binding> binding = bound_at(family_, sizes);
      if (!binding) continue;
      bindings_.emplace_back(sizes, std::move(*binding));
      return true;
    }
    return false;
  }

  const Family& family_;
  const Within& within_;
  std::optional<std::vector<SizeValues>> grid_;
  size_t next_ = 0;  // in `grid_`
  std::vector<std::pair<SizeValues, Binding>> bindings_;
};

void expect_one_meaning(const Family& family, const Ambiguity& integer, const Within& within,
                        AllBindings& all) {
  for (const Fit& other : integer.fits) {
    if (!competes(other, integer.fits[0])) continue;
    const auto number = number_between(integer, other.formula);
    if (!number) continue;
    const Names names(family.example);
    const auto size = only_size(other.formula);
    const std::string what = "[unify] " + integer.node + ": " + integer.what + " may be " +
                             print(integer.fits[0].formula, names) + " or " +
                             print(other.formula, names) + ", which differ where " +
                             print(composit::size_of(size->first, size->second), names) + " is " +
                             std::to_string(*number) + ": add an example there";
    auto sizes = sizes_with(family, *size, *number);
    if (sizes && within && !within(*sizes)) continue;
    if (!sizes) {
      bool is_known = false;
      sizes = all.where_differ(integer.fits[0].formula, other.formula, is_known);
      if (!sizes && is_known) continue;
    }
    if (!sizes) throw UserError(what);
    throw ExampleWanted(what, *sizes);
  }
}

void expect_one_meaning(const Family& family, const Ambiguity& integer, const SizeValues& sizes,
                        const SizeFormula::SizeOf& size_of) {
  const SizeFormula& taken = integer.fits[0].formula;
  const int64_t number = taken.evaluate(size_of);
  for (const Fit& other : integer.fits) {
    if (!competes(other, integer.fits[0])) continue;
    try {
      if (other.formula.evaluate(size_of) == number) continue;
    } catch (const UserError&) {  // an exact quotient that is none here
      continue;
    }
    const Names names(family.example);
    throw ExampleWanted("[unify] " + integer.node + ": " + integer.what + " may be " +
                            print(taken, names) + " or " + print(other.formula, names) +
                            ", which differ at " + text_of(sizes) + ": add an example there",
                        sizes);
  }
}

// Calls `visit` with each remainder in a formula.
void for_each_remainder(const SizeFormula& formula,
                        const std::function<void(const SizeFormula&)>& visit) {
  using Kind = SizeFormula::Kind;
  if (formula.kind() == Kind::constant || formula.kind() == Kind::size) return;
  if (formula.kind() == Kind::mod) visit(formula);
  for_each_remainder(formula.left(), visit);
  for_each_remainder(formula.right(), visit);
}

bool is_zero_in_an_example(const Family& family, const SizeFormula& remainder) {
  const size_t count = family.sizes.empty() ? 0 : family.sizes[0].shown.size();
  for (size_t i = 0; i < count; ++i) {
    SizeValues sizes;
    for (const FreeSize& size : family.sizes) sizes[size.name] = size.shown.at(i);
    const std::optional<Binding> binding = bound_at(family, sizes);
    if (!binding) return true;  // nobody knows
    const auto size_of = [&](const LazyTensor& tensor, size_t axis) {
      return binding->of(tensor).sizes().at(axis);
    };
    if (remainder.evaluate(size_of) == 0) return true;
  }
  return false;
}

// Sizes at which the remainder of a size of an input is 0; nothing for other remainders.
std::optional<SizeValues> zero_of_input(const Family& family, const SizeFormula& remainder,
                                        const Within& within) {
  constexpr int64_t kMost = 10'000;
  const auto size = only_size(remainder);
  if (!size) return std::nullopt;
  for (const FreeSize& free : family.sizes) {
    const auto is_read = [&](const InputAxis& axis) {
      return family.example.inputs().at(axis.input).node == size->first.node &&
             axis.axis == size->second;
    };
    if (std::none_of(free.axes.begin(), free.axes.end(), is_read)) continue;
    for (int64_t number = free.low; number <= std::min(free.high, free.low + kMost * free.step);
         number += free.step) {
      if (remainder.evaluate([&](const LazyTensor&, size_t) { return number; }) != 0) continue;
      const auto sizes = sizes_with(family, *size, number);
      if (sizes && (!within || within(*sizes))) return sizes;
    }
  }
  return std::nullopt;
}

// Where nothing remains, programs often go another way: that has to be shown, where sizes within
// the range have no remainder.
void expect_remainders_shown(const Family& family, const Within& within, AllBindings& all) {
  if (!family.value_sizes.empty()) return;
  std::vector<Hash> seen;
  for (const NodePtr& node : family.example.nodes())
    for (const IntegerFormula& one : family.formulas_of(*node))
      for_each_remainder(one.formula, [&](const SizeFormula& remainder) {
        if (std::find(seen.begin(), seen.end(), remainder.hash()) != seen.end()) return;
        seen.push_back(remainder.hash());
        const auto is_zero = [&](const SizeFormula::SizeOf& size_of) {
          return remainder.evaluate(size_of) == 0;
        };
        std::optional<SizeValues> wanted = zero_of_input(family, remainder, within);
        if (!wanted) wanted = all.first_where(is_zero);
        if (!wanted || is_zero_in_an_example(family, remainder)) return;
        throw ExampleWanted("[unify] " + describe(*node, Names(family.example)) + ": " +
                                print(remainder, Names(family.example)) +
                                " is 0 in no example, and would be at " + text_of(*wanted) +
                                ", where the program may go another way: add an example there",
                            *wanted);
      });
}

using SizeKey = std::pair<const Node*, std::pair<uint32_t, size_t>>;
SizeKey key_of(const LazyTensor& tensor, size_t axis) {
  return {tensor.node.get(), {tensor.index, axis}};
}

// Sizes that formulas read, and the integer of one formula that reads it.
std::map<SizeKey, const Ambiguity*> sizes_read(const std::vector<Ambiguity>& integers) {
  std::map<SizeKey, const Ambiguity*> read;
  for (const Ambiguity& integer : integers)
    integer.fits[0].formula.for_each_size([&](const LazyTensor& tensor, size_t axis) {
      read.emplace(key_of(tensor, axis), &integer);
    });
  return read;
}

void expect_equal(const Family& family, const Twins& twins,
                  const std::map<SizeKey, const Ambiguity*>& read, const SizeValues& sizes,
                  const Binding& binding) {
  const Ambiguity* reader = nullptr;
  std::pair<LazyTensor, size_t> size_read;
  for (const auto& [tensor, axis] : twins)
    if (const auto found = read.find(key_of(tensor, axis)); found != read.end()) {
      reader = found->second;
      size_read = {tensor, axis};
    }
  if (reader == nullptr || !binding.of(size_read.first)) return;
  const int64_t number = binding.of(size_read.first).sizes().at(size_read.second);
  for (const auto& [tensor, axis] : twins) {
    if (binding.of(tensor).sizes().at(axis) == number) continue;
    const Names names(family.example);
    throw ExampleWanted("[unify] " + reader->node + ": " + reader->what + " may read " +
                            print(composit::size_of(size_read.first, size_read.second), names) +
                            " or " + print(composit::size_of(tensor, axis), names) +
                            ", which differ at " + text_of(sizes) + ": add an example there",
                        sizes);
  }
}

}  // namespace

void expect_one_meaning(const Family& family, const Doubts& doubts, const Within& within) {
  AllBindings all(family, within);
  for (const Ambiguity& integer : doubts.integers) expect_one_meaning(family, integer, within, all);
  if (within) expect_remainders_shown(family, within, all);  // not of what several cases share
  const std::map<SizeKey, const Ambiguity*> read = sizes_read(doubts.integers);
  for (const SizeValues& sizes : points_within(family)) {
    if (within && !within(sizes)) continue;
    const std::optional<Binding> binding = bound_at(family, sizes);
    if (!binding) continue;
    const auto size_of = [&](const LazyTensor& tensor, size_t axis) {
      return binding->of(tensor).sizes().at(axis);
    };
    for (const Ambiguity& integer : doubts.integers) {
      bool readable = true;  // values within regions are not in the binding
      integer.fits[0].formula.for_each_size(
          [&](const LazyTensor& tensor, size_t) { readable = readable && binding->of(tensor); });
      if (readable) expect_one_meaning(family, integer, sizes, size_of);
    }
    for (const Twins& twins : doubts.twins) expect_equal(family, twins, read, sizes, *binding);
  }
}

}  // namespace composit
