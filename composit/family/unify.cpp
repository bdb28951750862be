#include "composit/family/unify.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "composit/family/bind.h"
#include "composit/family/fit.h"
#include "composit/family/unify_check.h"
#include "composit/ir/error.h"
#include "composit/ir/integers.h"
#include "composit/ir/literal.h"
#include "composit/ir/print.h"
#include "composit/ir/words.h"
#include "composit/ops/operations.h"

namespace composit {
namespace {

using Values = std::vector<int64_t>;

const Symbol kRead("read");  // see predicates.h

bool all_equal(const Values& values) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; });
}

// ---- sizes that are read ------------------------------------------------------------------------

// The varying sizes of the values so far: of those that are equal in all examples the latest.
class Leaves {
 public:
  explicit Leaves(std::vector<Twins>& twins) : twins_(twins) {}

  void add(const LazyTensor& value, const std::vector<const Type*>& types) {
    for (size_t axis = 0; axis < types[0]->rank(); ++axis) {
      Values values;
      for (const Type* type : types) values.push_back(type->sizes[axis]);
      if (all_equal(values)) continue;
      const auto [at, added] = numbers_.emplace(values, leaves_.size());
      if (added) {
        leaves_.push_back({});
        twins_of_.push_back(twins_.size());
        twins_.push_back({});
      }
      leaves_[at->second] = {value, axis, values, false};
      twins_[twins_of_[at->second]].emplace_back(value, axis);
    }
  }
  const std::vector<SizeLeaf>& all() const { return leaves_; }

 private:
  std::map<Values, size_t> numbers_;
  std::vector<SizeLeaf> leaves_;
  std::vector<size_t> twins_of_;  // index into `twins_`
  std::vector<Twins>& twins_;     // of all graphs and regions
};

// ---- graphs -------------------------------------------------------------------------------------

class Unifier {
 public:
  // `numbers`: absent within regions, where none are found.
  Unifier(Family& family, Doubts& doubts, NumberUnifier* numbers)
      : family_(family), doubts_(doubts), numbers_(numbers), leaves_(doubts.twins) {}

  void unify(const std::vector<const Graph*>& graphs) {
    graphs_ = graphs;
    names_.emplace(*graphs[0]);
    const size_t count = graphs[0]->nodes().size();
    for (size_t g = 1; g < graphs.size(); ++g) expect_alike(g);
    places_.resize(graphs.size());
    for (size_t n = 0; n < count; ++n) {
      std::vector<const Node*> nodes;
      for (size_t g = 0; g < graphs.size(); ++g) {
        nodes.push_back(graphs[g]->nodes()[n].get());
        places_[g].insert(nodes.back(), n);
      }
      unify_node(nodes);
    }
    for (size_t g = 1; g < graphs.size(); ++g) expect_same_ends(g);
  }

 private:
  [[noreturn]] void refuse(const Node& node, const std::string& what) const {
    throw UserError("[unify] " + describe(node, *names_) + ": " + what);
  }

  // The first node that differs, if operations do.
  void expect_alike(size_t g) const {
    const auto &first = graphs_[0]->nodes(), &other = graphs_[g]->nodes();
    const size_t count = std::min(first.size(), other.size());
    for (size_t n = 0; n < count; ++n) {
      const Node &a = *first[n], &b = *other[n];
      if (a.op() != b.op() || a.arguments() != b.arguments() ||
          a.outputs().size() != b.outputs().size())
        refuse(a, "examples 1 and " + std::to_string(g + 1) +
                      " differ in structure: the second has " + describe(b, Names(*graphs_[g])) +
                      " here");
    }
    if (first.size() != other.size())
      throw UserError("[unify] examples 1 and " + std::to_string(g + 1) +
                      " differ in structure: " + std::to_string(first.size()) + " and " +
                      std::to_string(other.size()) + " nodes");
  }

  bool same_value(const LazyTensor& a, size_t g, const LazyTensor& b) const {
    if (!a || !b) return !a && !b;
    const size_t *x = places_[0].find(a.node.get()), *y = places_[g].find(b.node.get());
    return x != nullptr && y != nullptr && *x == *y && a.index == b.index;
  }

  void expect_same_ends(size_t g) const {
    const Graph &a = *graphs_[0], &b = *graphs_[g];
    const auto differ = [&] {
      throw UserError("[unify] examples 1 and " + std::to_string(g + 1) +
                      " differ in what they return or write");
    };
    if (a.outputs().size() != b.outputs().size() || a.mutations().size() != b.mutations().size())
      differ();
    for (size_t i = 0; i < a.outputs().size(); ++i)
      if (!same_value(a.outputs()[i], g, b.outputs()[i])) differ();
    for (size_t i = 0; i < a.mutations().size(); ++i)
      if (!same_value(a.mutations()[i].target, g, b.mutations()[i].target) ||
          !same_value(a.mutations()[i].value, g, b.mutations()[i].value))
        differ();
  }

  void unify_node(const std::vector<const Node*>& nodes) {
    const Node& first = *nodes[0];
    for (size_t g = 1; g < nodes.size(); ++g)
      for (size_t i = 0; i < first.operands().size(); ++i)
        if (!same_value(first.operands()[i], g, nodes[g]->operands()[i]))
          refuse(first, "its operand " + std::to_string(i) + " is another value in example " +
                            std::to_string(g + 1));
    NodeFormulas formulas;
    own_.clear();
    unify_attributes(nodes, IntegerFormula::Of::attribute, formulas);
    unify_attributes(nodes, IntegerFormula::Of::execution, formulas);
    unify_outputs(nodes, formulas);
    if (!formulas.empty()) family_.formulas.insert(&first, std::move(formulas));
  }

  static const Attributes& attributes_of(const Node& node, IntegerFormula::Of of) {
    return of == IntegerFormula::Of::attribute ? node.attributes() : node.execution();
  }

  void unify_attributes(const std::vector<const Node*>& nodes, IntegerFormula::Of of,
                        NodeFormulas& formulas) {
    const Attributes& first = attributes_of(*nodes[0], of);
    for (size_t g = 1; g < nodes.size(); ++g) {
      const Attributes& other = attributes_of(*nodes[g], of);
      if (!std::equal(first.begin(), first.end(), other.begin(), other.end(),
                      [](const auto& a, const auto& b) { return a.name == b.name; }))
        refuse(*nodes[0], "example " + std::to_string(g + 1) + " has other attributes");
    }
    for (size_t number = 0; number < first.size(); ++number) {
      std::vector<const Attribute*> attributes;
      for (const Node* node : nodes) attributes.push_back(&attributes_of(*node, of)[number].value);
      const std::string name = first[number].name.str();
      if (unify_number(*nodes[0], of, name, attributes)) continue;
      for (size_t g = 1; g < nodes.size(); ++g)
        if (!same_form(*attributes[0], *attributes[g]))
          refuse_form(*nodes[0], name, *attributes[0], g, *attributes[g]);
      if (const auto* region = attributes[0]->get_if<Region>(); region != nullptr && *region)
        unify_regions(*nodes[0], of, attributes);
      else
        unify_integers(*nodes[0], of, number, name, attributes, formulas);
    }
  }

  // False: these are no numbers that differ, or they follow from none. Integers may be sizes.
  bool unify_number(const Node& node, IntegerFormula::Of of, const std::string& name,
                    const std::vector<const Attribute*>& attributes) {
    std::optional<std::vector<double>> numbers = real_numbers(attributes);
    if (!numbers) return false;
    std::vector<double>& values = *numbers;
    const NodePtr& place = graphs_[0]->nodes()[*places_[0].find(&node)];
    if (of == IntegerFormula::Of::execution) {
      if (name != kRead.str()) return false;
      const NumberFormula read = numbers_->add_read(values, node.operands().at(0),
                                                    names_->of(node.operands()[0]).substr(1));
      family_.number_uses.push_back({place, name, read, std::move(values)});
      return true;
    }
    if (!integers_of(*attributes[0]).empty()) return false;
    return unify_number(place, name, std::move(values));
  }

  bool unify_number(const NodePtr& node, const std::string& name, std::vector<double> values) {
    const bool by_sizes = follows_from_sizes(values);
    const std::string what = describe(*node, *names_) + ": '" + name + "'";
    std::optional<NumberFormula> formula = numbers_->formula_for(values, what, by_sizes);
    if (formula && by_sizes) expect_no_size(what, print(*formula), values);
    if (!formula && !by_sizes) formula = numbers_->add_source(values, name_in_source(*node, name));
    if (formula) family_.number_uses.push_back({node, name, *formula, std::move(values)});
    return formula.has_value();
  }

  // The numbers of all examples, which differ; nothing: they are none, or equal.
  std::optional<std::vector<double>> real_numbers(
      const std::vector<const Attribute*>& attributes) const {
    std::vector<double> values;
    for (const Attribute* attribute : attributes) {
      const std::optional<double> number = real_number_of(*attribute);
      if (!number || numbers_ == nullptr || attribute->kind() != attributes[0]->kind())
        return std::nullopt;
      values.push_back(*number);
    }
    const bool equal =
        std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; });
    return equal ? std::nullopt : std::optional(std::move(values));
  }

  // A number that callers give and a size may happen to be the same in all examples.
  void expect_no_size(const std::string& what, const std::string& formula,
                      const std::vector<double>& values) const {
    for (const FreeSize& size : family_.sizes)
      for (const auto& [text, of] : std::vector<std::pair<std::string, double (*)(double)>>{
               {"", [](double x) { return x; }},
               {"1 / ", [](double x) { return 1 / x; }},
               {"the root of ", [](double x) { return std::sqrt(x); }},
               {"1 / the root of ", [](double x) { return 1 / std::sqrt(x); }}}) {
        bool same = true;
        for (size_t g = 0; g < values.size(); ++g)
          same = same && of(static_cast<double>(size.shown[g])) == values[g];
        if (same)
          throw UserError("[unify] " + what + " may be " + formula + " or " + text + size.name +
                          ", which differ elsewhere: add an example there");
      }
  }

  // True if examples of equal sizes never have other numbers.
  bool follows_from_sizes(const std::vector<double>& values) const {
    for (size_t g = 0; g < values.size(); ++g)
      for (size_t h = 0; h < g; ++h)
        if (values[g] != values[h] &&
            std::all_of(family_.sizes.begin(), family_.sizes.end(),
                        [&](const FreeSize& size) { return size.shown[g] == size.shown[h]; }))
          return false;
    return true;
  }

  // "train.cpp:31"
  std::string name_in_source(const Node& node, const std::string& key) const {
    const std::string_view source = node.annotation("source");
    if (!source.empty()) return std::string(source.substr(0, source.find(' ')));
    return names_->of(node, 0).substr(1) + "." + key;
  }

  [[noreturn]] void refuse_form(const Node& node, const std::string& name, const Attribute& a,
                                size_t g, const Attribute& b) const {
    const PrintOptions brief{.brief = true};
    refuse(node, "expected '" + name + "' to differ in integers only, received " + print(a, brief) +
                     " in example 1 and " + print(b, brief) + " in example " +
                     std::to_string(g + 1) +
                     (a.kind() == AttributeKind::float_ || a.kind() == AttributeKind::scalar
                          ? ": a float that follows from sizes has to be computed by operators; "
                            "one that the caller chooses is shown with two values at one size"
                          : ""));
  }

  void unify_regions(const Node& node, IntegerFormula::Of of,
                     const std::vector<const Attribute*>& attributes) {
    std::vector<const Graph*> regions;
    bool same = true;
    for (const Attribute* attribute : attributes) {
      regions.push_back(attribute->as<Region>().get());
      same = same && *regions.back() == *regions[0];
    }
    if (same) return;
    if (of == IntegerFormula::Of::attribute && !has_typed_regions(node))
      refuse(node, "its regions differ between examples, and are part of its meaning");
    Unifier(family_, doubts_, nullptr).unify(regions);
  }

  void unify_integers(const Node& node, IntegerFormula::Of of, size_t number,
                      const std::string& name, const std::vector<const Attribute*>& attributes,
                      NodeFormulas& formulas) {
    std::vector<Values> lists;
    for (const Attribute* attribute : attributes) lists.push_back(integers_of(*attribute));
    for (size_t position = 0; position < lists[0].size(); ++position) {
      Values values;
      for (const Values& list : lists) values.push_back(list[position]);
      if (all_equal(values)) continue;
      if (of == IntegerFormula::Of::attribute &&
          follows_from_numbers(node, name, attributes, values))
        continue;
      formulas.push_back({of, number, position, fitted(node, of, "'" + name + "'", values)});
      own_.emplace(values, formulas.back().formula);
    }
  }

  // An integer that follows from no size, but from numbers that are none.
  bool follows_from_numbers(const Node& node, const std::string& name,
                            const std::vector<const Attribute*>& attributes, const Values& values) {
    std::optional<std::vector<double>> numbers = real_numbers(attributes);
    if (!numbers || !fits(values, candidates(node, IntegerFormula::Of::attribute)).empty())
      return false;
    return unify_number(graphs_[0]->nodes()[*places_[0].find(&node)], name, std::move(*numbers));
  }

  // How the sizes of a node's results are found.
  enum class Sizes : uint8_t { inferred, fitted, by_values };

  static Sizes sizes_of(const Node& node) {
    if (is_input(node) || node.outputs().empty() || node.find_run("body") != nullptr)
      return Sizes::inferred;
    const Operation* operation = operation_of(node);
    if (operation == nullptr) return Sizes::fitted;
    try {
      infer(*operation, call_of(node, operation->schema));
    } catch (const SizesDependOnValues&) {
      return Sizes::by_values;
    } catch (const UserError&) {  // operands that the row does not expect
      return Sizes::fitted;
    }
    return Sizes::inferred;
  }

  void unify_outputs(const std::vector<const Node*>& nodes, NodeFormulas& formulas) {
    const Node& first = *nodes[0];
    const Sizes how = sizes_of(first);
    for (uint32_t i = 0; i < first.outputs().size(); ++i) {
      std::vector<const Type*> types;
      for (size_t g = 0; g < nodes.size(); ++g) {
        types.push_back(&nodes[g]->outputs()[i]);
        expect_same_but_for_sizes(first, *types[0], g, *types[g]);
      }
      if (!is_defined(*types[0])) continue;
      const LazyTensor value{graphs_[0]->nodes()[*places_[0].find(&first)], i};
      if (how != Sizes::inferred) unify_sizes(first, how, value, types, formulas);
      leaves_.add(value, types);
    }
  }

  void unify_sizes(const Node& node, Sizes how, const LazyTensor& value,
                   const std::vector<const Type*>& types, NodeFormulas& formulas) {
    const auto of = IntegerFormula::Of::output;
    for (size_t axis = 0; axis < types[0]->rank(); ++axis) {
      Values values;
      for (const Type* type : types) values.push_back(type->sizes[axis]);
      const bool varies = !all_equal(values);
      if (how == Sizes::by_values && (varies || axis == 0)) {
        // The row count is open even if the examples have as many.
        family_.value_sizes.push_back(
            {names_->of(value).substr(1) + "_" + std::to_string(axis), value, axis, values});
      } else if (varies) {
        const std::string what = "axis " + std::to_string(axis) + " of its result";
        formulas.push_back({of, value.index, axis, fitted(node, of, what, values)});
      }
    }
  }

  void expect_same_but_for_sizes(const Node& node, const Type& a, size_t g, const Type& b) const {
    Type same = b;
    same.sizes = a.sizes;
    same.strides = a.strides;
    if (same != a || a.rank() != b.rank())
      refuse(node, "expected results that differ in sizes only, received " + print(a) +
                       " in example 1 and " + print(b) + " in example " + std::to_string(g + 1));
  }

  // Sizes of the operands.
  std::vector<SizeLeaf> operand_sizes(const Node& node, std::set<Values>& seen) const {
    std::vector<SizeLeaf> candidates;
    for (const LazyTensor& operand : node.operands()) {
      if (!operand) continue;
      const size_t place = *places_[0].find(operand.node.get());
      for (size_t axis = 0; axis < operand.type().rank(); ++axis) {
        Values values;
        for (const Graph* graph : graphs_)
          values.push_back(graph->nodes()[place]->outputs()[operand.index].sizes[axis]);
        if (!all_equal(values) && seen.insert(values).second)
          candidates.push_back({operand, axis, values, true});
      }
    }
    return candidates;
  }

  // Sizes of the operands first, then those of the latest values. Those of a result follow from its
  // operands.
  std::vector<SizeLeaf> candidates(const Node& node, IntegerFormula::Of of) const {
    std::set<Values> seen;
    std::vector<SizeLeaf> candidates = operand_sizes(node, seen);
    if (of == IntegerFormula::Of::output) return candidates;
    const auto& leaves = leaves_.all();
    for (size_t i = leaves.size(); i-- > 0;)
      if (seen.insert(leaves[i].values).second) candidates.push_back(leaves[i]);
    return candidates;
  }

  SizeFormula fitted(const Node& node, IntegerFormula::Of of, const std::string& what,
                     const Values& values) {
    if (of == IntegerFormula::Of::output)
      if (const auto own = own_.find(values); own != own_.end()) return own->second;
    std::vector<SizeLeaf> leaves = candidates(node, of);
    std::vector<Fit> found = fits(values, leaves);
    if (found.empty())
      refuse(node, "expected an expression of sizes for " + what + ", received " + list_of(values) +
                       shown_sizes());
    const SizeFormula best = found[0].formula;
    doubts_.integers.push_back(
        {describe(node, *names_), what, std::move(found), std::move(leaves)});
    return best;
  }

  std::string shown_sizes() const {
    std::string text;
    for (const FreeSize& size : family_.sizes)
      text += (text.empty() ? " for " : "; ") + size.name + " " + list_of(size.shown);
    return text;
  }

  Family& family_;
  Doubts& doubts_;
  NumberUnifier* numbers_;
  std::vector<const Graph*> graphs_;
  std::optional<Names> names_;
  std::vector<FlatMap<const Node*, size_t>> places_;  // by example
  std::map<Values, SizeFormula> own_;                 // of the node's attributes so far
  Leaves leaves_;
};

// UserError where examples have other inputs.
void expect_same_inputs(const std::vector<Graph>& examples) {
  for (size_t g = 1; g < examples.size(); ++g)
    if (examples[g].inputs().size() != examples[0].inputs().size())
      throw UserError("[unify] example 1 has " + std::to_string(examples[0].inputs().size()) +
                      " inputs, example " + std::to_string(g + 1) + " " +
                      std::to_string(examples[g].inputs().size()));
}

}  // namespace

Family unify_alike(const std::vector<Graph>& examples, std::vector<FreeSize> sizes,
                   const Within& within, const NumbersShown& numbers) {
  expect_same_inputs(examples);
  Family family{
      .example = examples[0], .sizes = std::move(sizes), .value_sizes = {}, .formulas = {}};
  std::vector<const Graph*> graphs;
  for (const Graph& example : examples) graphs.push_back(&example);
  Doubts doubts;
  NumberUnifier free_numbers(numbers, examples[0]);
  Unifier(family, doubts, &free_numbers).unify(graphs);
  family.numbers = free_numbers.numbers();
  expect_examples_again(family, examples);
  expect_one_meaning(family, doubts, within);
  return family;
}

Family unify(const std::vector<Graph>& examples, const UnifyOptions& options) {
  expect_examples(examples);
  std::vector<Graph> closed;
  for (const Graph& example : examples) closed.push_back(without_incidentals(example));
  expect_same_inputs(closed);
  std::vector<FreeSize> sizes = free_sizes(closed);
  set_names(sizes, options.names);
  expect_shown_apart(sizes);
  std::vector<size_t> all(closed.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return unify_alike(closed, std::move(sizes), {}, options.numbers.of(all));
}

}  // namespace composit
