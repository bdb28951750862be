#include "composit/family/size_tree.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "composit/family/bind.h"
#include "composit/family/fit.h"
#include "composit/family/step_fit.h"
#include "composit/family/unify.h"
#include "composit/ir/error.h"

namespace composit {
namespace {

constexpr size_t kPoints = 8;       // sizes at which ways are merged, besides the ends
constexpr size_t kFurther = 64;     // sizes that are asked for
constexpr int64_t kMost = 1 << 20;  // steps of a size

// ---- answers ------------------------------------------------------------------------------------

// The numbers of a size that all of these cases take; nothing: none.
std::optional<FreeSize> common(const Cases& cases, const std::vector<size_t>& ways, size_t index) {
  const auto takes = [&](int64_t number) {
    return std::all_of(ways.begin(), ways.end(), [&](size_t way) {
      const FreeSize& size = cases.cases[way].sizes[index];
      return number >= size.low && number <= size.high && (number - size.low) % size.step == 0;
    });
  };
  FreeSize all = cases.cases[ways[0]].sizes[index];
  int64_t step = 1;
  for (const size_t way : ways) {
    const FreeSize& size = cases.cases[way].sizes[index];
    all.low = std::max(all.low, size.low);
    all.high = std::min(all.high, size.high);
    step = std::lcm(step, std::max<int64_t>(size.step, 1));
  }
  const int64_t last = std::min(all.high, all.low + kMost);
  while (all.low <= last && !takes(all.low)) ++all.low;
  if (all.low > last) return std::nullopt;
  all.high -= (all.high - all.low) % step;
  all.step = all.high == all.low ? 1 : step;
  return all;
}

// Makes one family of cases between which answers choose.
class AnswerMerger {
 public:
  AnswerMerger(const SavedCapture& saved, const Cases& cases, std::vector<size_t> ways)
      : saved_(saved), cases_(cases), ways_(std::move(ways)) {}

  SavedCapture run() {
    for (size_t i = 0; i < cases_.cases[ways_[0]].sizes.size(); ++i) {
      const auto size = common(cases_, ways_, i);
      if (!size)
        throw UserError("the ways that a value chooses between were shown at no '" +
                        cases_.cases[ways_[0]].sizes[i].name +
                        "' that they have in common: show them at the same sizes");
      sizes_.push_back(*size);
    }
    choose_points();
    for (size_t further = 0;; ++further) {
      try {
        return merged();
      } catch (const ExampleWanted& wanted) {
        if (further == kFurther || !add(wanted.sizes)) throw UserError(wanted.what());
      }
    }
  }

 private:
  bool is_free(const FreeSize& size) const { return size.low != size.high; }

  // The graph at these sizes; nothing: they do not go together, or another condition decides.
  bool add(const SizeValues& sizes) {
    if (std::find(points_.begin(), points_.end(), sizes) != points_.end()) return false;
    try {
      const std::vector<size_t> there = shown_cases_at(cases_, sizes);
      if (std::set<size_t>(there.begin(), there.end()) !=
          std::set<size_t>(ways_.begin(), ways_.end()))
        return false;
      graphs_.push_back(graph_at(cases_, sizes));
    } catch (const UserError&) {
      if (!points_.empty()) return false;
      first_error_ = std::current_exception();
      return false;
    }
    points_.push_back(sizes);
    return true;
  }

  void choose_points() {
    std::vector<SizeValues> distinct;
    const std::vector<SizeValues> grid = grid_of(with_shown(sizes_));
    for (const SizeValues& sizes : grid) {
      std::set<int64_t> numbers;
      for (const auto& [name, number] : sizes) numbers.insert(number);
      if (numbers.size() == sizes.size()) distinct.push_back(sizes);
    }
    if (distinct.empty()) distinct = grid;
    // From the middle, where few numbers are others by chance, to the ends.
    for (size_t i = 0; i < kPoints; ++i)
      add(distinct[(i * (distinct.size() - 1) / (kPoints - 1) + distinct.size() / 2) %
                   distinct.size()]);
    if (points_.empty()) {
      if (first_error_) std::rethrow_exception(first_error_);
      throw UserError(
          "the ways that a value chooses between were shown at no sizes that they have "
          "in common: show them at the same sizes");
    }
    for (const FreeSize& size : sizes_)
      for (const int64_t number :
           {size.low, std::min(size.low + size.step, size.high), size.high}) {
        SizeValues sizes = points_[0];
        sizes[size.name] = number;
        add(sizes);
      }
  }

  static std::vector<FreeSize> with_shown(std::vector<FreeSize> sizes) {
    for (FreeSize& size : sizes) size.shown = {size.low};
    return sizes;
  }

  // Where the free sizes are in the inputs of the merged graph.
  std::vector<FreeSize> sizes_in(const Graph& graph) const {
    const LazyTensors& own = cases_.cases[ways_[0]].example.inputs();
    std::vector<FreeSize> sizes;
    for (const FreeSize& size : sizes_) {
      FreeSize one = size;
      one.shown.clear();
      for (const SizeValues& point : points_) one.shown.push_back(point.at(size.name));
      for (InputAxis& axis : one.axes)
        axis.input = input_called(graph, input_name(*own.at(axis.input).node));
      sizes.push_back(std::move(one));
    }
    return sizes;
  }

  SavedCapture merged() const {
    SavedCapture capture = bound_capture(saved_, cases_, points_[0]);
    if (std::none_of(sizes_.begin(), sizes_.end(), [&](const auto& size) { return is_free(size); }))
      return capture;
    std::vector<Graph> closed;
    for (const Graph& graph : graphs_) closed.push_back(without_incidentals(graph));
    Cases one;
    const std::vector<size_t> here = cases_at(cases_, points_[0]);
    const Within within = [&](const SizeValues& sizes) { return cases_at(cases_, sizes) == here; };
    one.cases.push_back(unify_alike(closed, sizes_in(closed[0]), within, {}));
    one.case_of_example.assign(closed.size(), 0);
    return with_family({std::move(capture)}, one);
  }

  const SavedCapture& saved_;
  const Cases& cases_;
  const std::vector<size_t> ways_;
  std::vector<FreeSize> sizes_;  // that all ways take
  std::vector<SizeValues> points_;
  std::vector<Graph> graphs_;  // by point
  std::exception_ptr first_error_;
};

// ---- conditions ---------------------------------------------------------------------------------

// Sizes of the first case's inputs for those that a fork's condition reads.
class OverInputs {
 public:
  explicit OverInputs(const Cases& cases) : cases_(cases), hull_(hull_of(cases)) {
    const std::vector<SizeValues> grid = grid_of(hull_);
    const size_t step = std::max<size_t>(1, grid.size() / kGrid);
    for (size_t i = 0; i < grid.size(); i += step) points_.push_back(grid[i]);
    points_.push_back(grid.back());
  }

  SizeCondition condition(const Fork& fork) {
    const auto over = [&](const SizeFormula& formula) { return of(fork, formula); };
    return {over(fork.condition.left), fork.condition.relation, over(fork.condition.right)};
  }

 private:
  static constexpr size_t kGrid = 256;

  SizeFormula of(const Fork& fork, const SizeFormula& formula) {
    if (formula.kind() == SizeFormula::Kind::constant) return formula;
    if (formula.kind() != SizeFormula::Kind::size)
      return SizeFormula::call(formula.kind(), of(fork, formula.left()), of(fork, formula.right()));
    const Family& reader = cases_.cases[fork.reader];
    if (const auto free = free_size_of(reader, formula)) return leaf(*free);
    return fitted(fork, formula);
  }

  // The number of the free size that a formula is.
  static std::optional<size_t> free_size_of(const Family& reader, const SizeFormula& formula) {
    for (size_t s = 0; s < reader.sizes.size(); ++s)
      for (const InputAxis& axis : reader.sizes[s].axes)
        if (reader.example.inputs().at(axis.input) == formula.tensor() &&
            axis.axis == formula.axis())
          return s;
    return std::nullopt;
  }

  SizeFormula leaf(size_t number) const {
    const InputAxis& axis = cases_.cases[0].sizes[number].axes.at(0);
    return size_of(cases_.cases[0].example.inputs().at(axis.input), axis.axis);
  }

  // A size of a value of the program by those of its inputs: the formula that gives it at all
  // points at which there is such a value.
  SizeFormula fitted(const Fork& fork, const SizeFormula& formula) const {
    std::vector<int64_t> series;
    std::vector<SizeLeaf> leaves;
    for (size_t s = 0; s < hull_.size(); ++s) {
      const SizeFormula own = leaf(s);
      leaves.push_back({own.tensor(), own.axis(), {}, true});
    }
    for (const SizeValues& sizes : points_) {
      const std::optional<int64_t> number = number_at(fork, formula, sizes);
      if (!number) continue;
      series.push_back(*number);
      for (size_t s = 0; s < hull_.size(); ++s) leaves[s].values.push_back(sizes.at(hull_[s].name));
    }
    if (series.empty()) refuse(fork);
    if (std::all_of(series.begin(), series.end(), [&](int64_t n) { return n == series[0]; }))
      return series[0];
    std::erase_if(leaves, [](const SizeLeaf& leaf) {
      return std::all_of(leaf.values.begin(), leaf.values.end(),
                         [&](int64_t n) { return n == leaf.values[0]; });
    });
    const std::vector<Fit> found = fits(series, leaves);
    if (!found.empty()) return found[0].formula;
    const auto steps = in_steps(fork, formula, series, leaves);
    if (!steps) refuse(fork);
    return *steps;
  }

  // The formula that rounds one of the sizes, or two and multiplies them, as patches of a picture
  // are counted.
  std::optional<SizeFormula> in_steps(const Fork& fork, const SizeFormula& formula,
                                      const std::vector<int64_t>& series,
                                      const std::vector<SizeLeaf>& leaves) const {
    std::vector<StepAxis> axes;
    for (size_t s = 0; s < hull_.size(); ++s) {
      const SizeFormula own = leaf(s);
      const auto one = std::find_if(leaves.begin(), leaves.end(), [&](const SizeLeaf& leaf) {
        return leaf.tensor == own.tensor() && leaf.axis == own.axis();
      });
      if (one == leaves.end() || (hull_[s].high - hull_[s].low) / hull_[s].step > kMost) continue;
      StepAxis axis{
          .name = hull_[s].name, .size = own, .range = {}, .shown = one->values, .at = {}};
      for (int64_t size = hull_[s].low; size <= hull_[s].high; size += hull_[s].step)
        axis.range.push_back(size);
      axis.at = [&, s](const SizeValues& point, int64_t size) {
        SizeValues sizes = point;
        sizes[hull_[s].name] = size;
        return number_at(fork, formula, sizes);
      };
      axes.push_back(std::move(axis));
    }
    return step_fit(series, axes, {points_.front(), points_.back()});
  }

  // A size of a value of the program at these sizes of the inputs; nothing where no program has
  // them.
  std::optional<int64_t> number_at(const Fork& fork, const SizeFormula& formula,
                                   const SizeValues& sizes) const {
    const SizeCondition asked{formula, SizeCondition::Relation::equal, formula};
    try {
      const auto size_of = sizes_before(cases_.cases[fork.reader], {asked}, sizes);
      return size_of(formula.tensor(), formula.axis());
    } catch (const UserError&) {
      return std::nullopt;
    }
  }

  [[noreturn]] void refuse(const Fork& fork) const {
    throw UserError("the condition " +
                    print(fork.condition, Names(cases_.cases[fork.reader].example)) +
                    ", which decides at " + fork.place +
                    ", reads a size that follows from those of the inputs in a way that has no "
                    "formula");
  }

  const Cases& cases_;
  const std::vector<FreeSize> hull_;
  std::vector<SizeValues> points_;
};

// ---- the tree -----------------------------------------------------------------------------------

class TreeMaker {
 public:
  explicit TreeMaker(const SavedCapture& saved)
      : saved_(saved), cases_(family_of(saved)), over_inputs_(cases_) {}

  SizeTree run() {
    tree_.inputs = cases_.cases[0].example.inputs();
    tree_.sizes = hull_of(cases_);
    add({{cases_.forks.empty(), 0}}, {});
    return std::move(tree_);
  }

 private:
  using Ways = std::vector<Way>;
  using Known = std::vector<std::pair<SizeCondition, bool>>;  // what was asked on the way

  Way add(Ways ways, const Known& known) {
    std::set<size_t> found;
    while (!ways.empty()) {
      const Way way = ways.back();
      ways.pop_back();
      if (way.is_case) {
        found.insert(way.index);
        continue;
      }
      const Fork& fork = cases_.forks.at(way.index);
      if (fork.by_value) {
        ways.push_back(fork.holds);
        ways.push_back(fork.fails);
        continue;
      }
      for (const size_t one : found) ways.push_back({true, one});
      return ask(fork, ways, known);
    }
    return leaf({found.begin(), found.end()});
  }

  // The question of a fork; the other ways are open behind both answers.
  Way ask(const Fork& fork, const Ways& others, const Known& known) {
    const SizeCondition condition = over_inputs_.condition(fork);
    const auto behind = [&](bool holds) {
      Ways ways = others;
      ways.push_back(holds ? fork.holds : fork.fails);
      Known more = known;
      more.emplace_back(condition, holds);
      return add(std::move(ways), more);
    };
    for (const auto& [asked, answer] : known)
      if (asked == condition) return behind(answer);
    const size_t number = tree_.choices.size();
    tree_.choices.push_back({condition, {}, {}, fork.place});
    const Way holds = behind(true), fails = behind(false);
    tree_.choices[number].holds = holds;
    tree_.choices[number].fails = fails;
    return {false, number};
  }

  Way leaf(const std::vector<size_t>& found) {
    const auto [at, added] = numbers_.try_emplace(found, tree_.leaves.size());
    if (added) tree_.leaves.push_back(found.size() == 1 ? one_case(found[0]) : several(found));
    return {true, at->second};
  }

  SavedCapture one_case(size_t number) const {
    SavedCapture capture = number == 0 ? saved_ : saved_.cases.at(number - 1);
    capture.cases.clear();
    Cases one;
    one.cases.push_back(cases_.cases[number]);
    capture.properties.erase("forks");
    return with_family({std::move(capture)}, one);
  }

  SavedCapture several(const std::vector<size_t>& found) const {
    return AnswerMerger(saved_, cases_, found).run();
  }

  const SavedCapture& saved_;
  const Cases cases_;
  OverInputs over_inputs_;
  std::map<std::vector<size_t>, size_t> numbers_;  // leaves by the cases that they are of
  SizeTree tree_;
};

}  // namespace

SizeTree size_tree(const SavedCapture& saved) { return TreeMaker(saved).run(); }

size_t leaf_at(const SizeTree& tree, const SizeValues& sizes) {
  const SizeFormula::SizeOf size_of = [&](const LazyTensor& tensor, size_t axis) {
    for (const FreeSize& size : tree.sizes)
      for (const InputAxis& one : size.axes)
        if (one.axis == axis && tree.inputs.at(one.input) == tensor) return sizes.at(size.name);
    throw InternalError("a condition on a size that is not free", __FILE__, __LINE__);
  };
  Way way{tree.choices.empty(), 0};
  while (!way.is_case) {
    const SizeTree::Choice& choice = tree.choices.at(way.index);
    way = holds(choice.condition, size_of) ? choice.holds : choice.fails;
  }
  return way.index;
}

std::vector<SizeValues> sizes_of_leaf(const SizeTree& tree, size_t leaf) {
  const SavedCapture& capture = tree.leaves.at(leaf);
  if (!is_family(capture)) return {};
  std::vector<SizeValues> found;
  for (const SizeValues& sizes : grid_of(family_of(capture).cases.at(0).sizes)) {
    try {
      if (leaf_at(tree, sizes) == leaf) found.push_back(sizes);
    } catch (const UserError&) {
      continue;  // a division that leaves a remainder: no program has these sizes
    }
  }
  return found;
}

SavedCapture of_one_case(const SavedCapture& saved) {
  if (!is_family(saved) || saved.cases.empty()) return saved;
  SizeTree tree = size_tree(saved);
  if (tree.leaves.size() > 1)
    throw UserError(
        "expected a family of one case, received one whose structure depends on sizes (" +
        print(tree.choices[0].condition, Names(Graph({.inputs = tree.inputs}))) + ", from " +
        tree.choices[0].place + " on): 'bind' gives a capture of one size, which can be exported");
  return std::move(tree.leaves[0]);
}

}  // namespace composit
