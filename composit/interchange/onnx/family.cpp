#include "composit/interchange/onnx/family.h"

#include <algorithm>
#include <set>

#include "composit/family/bind.h"
#include "composit/family/cases.h"
#include "composit/family/number_inputs.h"
#include "composit/family/unify.h"
#include "composit/interchange/onnx/lower.h"
#include "composit/interchange/values.h"
#include "composit/ir/flat_map.h"

namespace composit::onnx {
namespace {

constexpr size_t kMany = 512;    // points of which some hold
constexpr size_t kSpread = 7;    // points from the least to the greatest
constexpr size_t kDistinct = 5;  // points at which no two sizes are equal by chance
constexpr size_t kLeast = 4;     // points that have to be alike
constexpr size_t kFurther = 96;  // points that are asked for

// Nodes of the example whose integers or whose operands follow from sizes.
FlatMap<const Node*, std::monostate> nodes_of_sizes(const Family& family) {
  FlatMap<const Node*, std::monostate> found;
  for (const NodePtr& node : family.example.nodes()) {
    bool follows = is_input(*node) || !family.formulas_of(*node).empty();
    for (const LazyTensor& operand : node->operands())
      follows = follows || (operand && found.contains(operand.node.get()));
    if (follows) found.insert(node.get(), {});
  }
  return found;
}

// Nodes of the bound graph that are what they are at all sizes.
MayFold fixed_nodes(const Family& family, const Binding& binding) {
  const auto follows = nodes_of_sizes(family);
  FlatMap<const Node*, std::monostate> fixed;
  for (const NodePtr& node : family.example.nodes())
    if (!follows.contains(node.get()) && !node->outputs().empty())
      if (const LazyTensor bound = binding.of({node, 0})) fixed.insert(bound.node.get(), {});
  return [fixed](const Node& node) { return fixed.contains(&node); };
}

// Names of numbers that callers give, or that are counted: further inputs.
std::vector<std::string> numbers_given(const Family& family) {
  std::vector<std::string> names;
  for (const FreeNumber& number : family.numbers)
    if (number.origin != NumberOrigin::read) names.push_back(number.name);
  return names;
}

class FamilyLowering {
 public:
  FamilyLowering(const Family& family, int opset, const Within& within)
      : family_(family), opset_(opset), within_(within) {
    for (const SizeValues& sizes : grid_of(family.sizes))
      if (!holds_at(sizes)) closed_.insert(sizes);
    choose_points();
  }

  Unified run() {
    for (const Point& point : points_) add(point);
    for (;;) {
      expect_enough();
      try {
        return unify(family_, examples_, closed_);
      } catch (const ExampleWanted& wanted) {
        if (further_++ == kFurther) throw UserError(wanted.what());
        for (const Point& point : points_at(wanted.sizes)) add(point);
      } catch (const UnlikeExample& unlike) {
        // What sizes have in common by chance may leave out operators that change nothing there.
        if (is_distinct(examples_.at(unlike.example).sizes)) throw;
        closed_.insert(examples_[unlike.example].sizes);
        examples_.erase(examples_.begin() + static_cast<int64_t>(unlike.example));
      }
    }
  }

 private:
  // Sizes of inputs, and of values that follow from values, in the order of the family.
  struct Point {
    SizeValues sizes;
    std::vector<int64_t> of_values;
    bool operator==(const Point&) const = default;
  };

  // ---- points -----------------------------------------------------------------------------------

  void choose_points() {
    Cases cases;
    cases.cases.push_back(family_);
    const std::vector<SizeValues> spread = spread_points(cases);
    fixed_ = fixed_sizes(spread);
    std::vector<SizeValues> distinct;
    for (const SizeValues& sizes : grid_of(family_.sizes))
      if (is_distinct(sizes) && holds_at(sizes)) distinct.push_back(sizes);
    for (size_t i = 0; i < kDistinct && !distinct.empty(); ++i)
      add_point(distinct[i * (distinct.size() - 1) / (kDistinct - 1)]);
    const size_t examples = family_.sizes.empty() ? 0 : family_.sizes[0].shown.size();
    for (size_t i = 0; i < examples; ++i) {
      SizeValues shown;
      for (const FreeSize& size : family_.sizes) shown[size.name] = size.shown.at(i);
      add_point(shown);
    }
    for (const SizeValues& sizes : spread) add_point(sizes);
    add_shown_points();
  }

  bool holds_at(const SizeValues& sizes) const { return !within_ || within_(sizes); }

  // From the least to the greatest of the sizes at which the family holds.
  std::vector<SizeValues> spread_points(const Cases& cases) const {
    std::vector<SizeValues> spread = spread_sizes(cases, {0}, within_ ? kMany : kSpread);
    std::erase_if(spread, [&](const SizeValues& sizes) { return !holds_at(sizes); });
    std::vector<SizeValues> some;
    for (size_t i = 0; i < kSpread && !spread.empty(); ++i)
      some.push_back(spread[i * (spread.size() - 1) / (kSpread - 1)]);
    return some;
  }

  void add_point(const SizeValues& sizes) {
    if (!holds_at(sizes)) return;
    for (const Point& point : points_at(sizes))
      if (std::find(points_.begin(), points_.end(), point) == points_.end())
        points_.push_back(point);
  }

  // Sizes with numbers for those that follow from values: two of each, so that they follow from no
  // size of an input, in proportion to what was shown.
  std::vector<Point> points_at(const SizeValues& sizes) const {
    if (family_.value_sizes.empty()) return {{sizes, {}}};
    double scale = 1;
    for (const FreeSize& size : family_.sizes)
      scale *= static_cast<double>(sizes.at(size.name)) / static_cast<double>(size.shown.at(0));
    std::vector<Point> points;
    for (const double part : {1.0, 0.75}) {
      std::set<int64_t> known = fixed_;
      for (const auto& [name, number] : sizes) known.insert(number);
      Point point{sizes, {}};
      for (const ValueSize& size : family_.value_sizes) {
        auto number = static_cast<int64_t>(part * scale * static_cast<double>(size.shown.at(0)));
        number = std::max<int64_t>(number, 2);
        while (!known.insert(number).second) ++number;
        point.of_values.push_back(number);
      }
      points.push_back(std::move(point));
    }
    return points;
  }

  // As they were shown: where several sizes follow from values, others may not go together.
  void add_shown_points() {
    const size_t examples = family_.value_sizes.empty() ? 0 : family_.value_sizes[0].shown.size();
    for (size_t i = 0; i < examples; ++i) {
      Point shown;
      for (const FreeSize& size : family_.sizes) shown.sizes[size.name] = size.shown.at(i);
      for (const ValueSize& size : family_.value_sizes) shown.of_values.push_back(size.shown.at(i));
      if (holds_at(shown.sizes)) points_.push_back(std::move(shown));
    }
  }

  // Numbers that are sizes of some value at all points.
  std::set<int64_t> fixed_sizes(const std::vector<SizeValues>& points) const {
    std::map<const Node*, std::vector<Dims>> all;
    for (const SizeValues& sizes : points) {
      const std::optional<Binding> binding = bound(points_at(sizes).at(0));
      for (const NodePtr& node : family_.example.nodes())
        for (uint32_t i = 0; binding && i < node->outputs().size(); ++i)
          if (const LazyTensor value = binding->of({node, i}); value && is_defined(value.type()))
            all[node.get()].push_back(value.sizes());
    }
    std::set<int64_t> fixed = {1};
    for (const auto& [node, lists] : all)
      for (size_t axis = 0; axis < lists[0].size(); ++axis)
        if (std::all_of(lists.begin(), lists.end(), [&](const Dims& sizes) {
              return sizes.size() == lists[0].size() && sizes[axis] == lists[0][axis];
            }))
          fixed.insert(lists[0][axis]);
    return fixed;
  }

  // No size is another one, nor one that the program has anyway.
  bool is_distinct(const SizeValues& sizes) const {
    std::set<int64_t> numbers = fixed_;
    return std::all_of(sizes.begin(), sizes.end(),
                       [&](const auto& size) { return numbers.insert(size.second).second; });
  }

  // ---- examples ---------------------------------------------------------------------------------

  std::optional<Binding> bound(const Point& point) const {
    try {
      if (point.of_values.empty()) return bind_sizes(family_, point.sizes);
      return bind_types(family_, types_at(family_, point.sizes), point.of_values);
    } catch (const UserError&) {
      return std::nullopt;  // sizes that do not go together
    }
  }

  void add(const Point& point) {
    const SizeValues& sizes = point.sizes;
    const std::optional<Binding> binding = bound(point);
    if (!binding) {
      if (point.of_values.empty()) closed_.insert(sizes);
      return;
    }
    try {
      const interchange::AllOperators all;
      const Graph graph = with_number_inputs(family_, *binding, numbers_given(family_));
      examples_.push_back({sizes, lower_open(graph, opset_, fixed_nodes(family_, *binding))});
    } catch (const UserError& error) {
      throw UserError("at " + text_of(sizes) + ": " + error.what());
    }
  }

  // Each size has several numbers, or all of its range.
  void expect_enough() const {
    bool enough = family_.sizes.empty() || examples_.size() >= kLeast;
    for (const FreeSize& size : family_.sizes) {
      std::set<int64_t> numbers;
      for (const Example& example : examples_) numbers.insert(example.sizes.at(size.name));
      const auto most = static_cast<size_t>((size.high - size.low) / size.step + 1);
      enough = enough && numbers.size() >= std::min(kLeastExamples, most);
    }
    if (!enough)
      throw UserError("too few sizes at which the program takes the same operators: show more");
  }

  const Family& family_;
  const int opset_;
  const Within within_;
  std::set<int64_t> fixed_;
  std::vector<Point> points_;
  std::vector<Example> examples_;
  std::set<SizeValues> closed_;  // sizes that were tried, and tell nothing
  size_t further_ = 0;
};

}  // namespace

Unified lower_family(const Family& family, int opset, const Within& within) {
  return FamilyLowering(family, opset, within).run();
}

}  // namespace composit::onnx
