#include "composit/interchange/onnx/unify.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "composit/interchange/onnx/size_fits.h"
#include "composit/interchange/onnx/sized_constants.h"
#include "composit/interchange/refusals.h"
#include "composit/ir/flat_map.h"
#include "composit/ir/print.h"
#include "composit/ir/transform.h"
#include "composit/ops/native.h"

namespace composit::onnx {
namespace {

// Values that a region takes from around it: its further inputs, and what they are.
using Taken = std::vector<std::pair<LazyTensor, SizedConstant>>;

std::string name_and_place(const Node& node) {
  const std::string op = node.op().str(), scope(node.annotation("scope"));
  return op.substr(op.rfind(':') + 1) + (scope.empty() ? "" : " of '" + scope + "'") +
         interchange::place_of(node);
}

bool is_region(const Attribute& attribute) {
  const auto* region = attribute.get_if<Region>();
  return region != nullptr && *region != nullptr;
}

// The guards that a family's sizes are: within what was shown, in its steps, and one size in all
// axes that have it.
LazyTensor range_holds(const FreeSize& size, const LazyTensors& inputs, SizeNodes& nodes) {
  const auto of = [&](const InputAxis& axis) {
    return nodes.number(size_of(inputs.at(axis.input), axis.axis));
  };
  const auto integer = [](int64_t value) { return reshaped(integers({value}), {}); };
  const LazyTensor first = of(size.axes.at(0));
  LazyTensor holds = both_hold(compare("GreaterOrEqual", first, integer(size.low)),
                               compare("LessOrEqual", first, integer(size.high)));
  for (size_t i = 1; i < size.axes.size(); ++i)
    holds = both_hold(holds, compare("Equal", first, of(size.axes[i])));
  if (size.step == 1) return holds;
  const LazyTensor rest = binary("Mod", first, integer(size.step));
  return both_hold(holds, compare("Equal", rest, integer(size.low % size.step)));
}

// Where all examples had whole numbers, nobody knows what the program does with others.
bool is_whole(const FreeNumber& number) {
  return std::all_of(number.shown.begin(), number.shown.end(),
                     [](double one) { return one == std::floor(one); });
}

std::string range_text(const FreeSize& size, const LazyTensors& inputs) {
  std::string text = "the size '" + size.name + "' is from " + std::to_string(size.low) + " to " +
                     std::to_string(size.high);
  if (size.step != 1) text += " in steps of " + std::to_string(size.step);
  for (const InputAxis& axis : size.axes)
    text += (&axis == &size.axes[0] ? ": axis " : ", axis ") + std::to_string(axis.axis) + " of '" +
            input_name(*inputs.at(axis.input).node) + "'";
  return text;
}

// One graph, or one region of a node, in all examples.
class Level {
 public:
  Level(std::vector<const Graph*> graphs, SizeFits& fits, Unified& unified, SizeNodes* nodes,
        const std::vector<SizeValues>& points, interchange::Refusals& refusals)
      : graphs_(std::move(graphs)),
        fits_(fits),
        unified_(unified),
        nodes_(nodes),
        points_(points),
        refusals_(refusals) {
    places_.resize(graphs_.size());
    for (const NodePtr& node : graphs_[0]->nodes())
      has_open_sizes_ = has_open_sizes_ || has_open_size(*node);
  }

  // Values of the first example in the new graph.
  LazyTensor now(const LazyTensor& value) {
    if (!value) return value;
    if (is_input(*value.node)) return value;
    if (const auto sized = sized_.find(value.node.get()); sized != sized_.end()) return of(*sized);
    return now_.at(value.node.get()).at(value.index);
  }

  Graph run() {
    expect_alike();
    for (size_t n = 0; n < graphs_[0]->nodes().size(); ++n) add(n);
    const Graph& first = *graphs_[0];
    Graph::Parts parts;
    for (const LazyTensor& input : first.inputs()) parts.inputs.push_back(input);
    for (const LazyTensor& output : first.outputs()) parts.outputs.push_back(now(output));
    for (const Mutation& mutation : first.mutations())
      parts.mutations.push_back({mutation.target, now(mutation.value)});
    for (const auto& [block, constant] : taken_) parts.inputs.push_back(block);
    return Graph(std::move(parts));
  }

  const Taken& taken() const { return taken_; }

 private:
  [[noreturn]] void refuse_example(size_t example, const Node& node,
                                   const std::string& what) const {
    throw UnlikeExample(name_and_place(node) + ": at " + composit::text_of(points_[example]) +
                            " it has another form than at " + composit::text_of(points_[0]) + ": " +
                            what,
                        example);
  }

  // ---- alike ------------------------------------------------------------------------------------

  void expect_alike() const {
    const std::vector<NodePtr>& first = graphs_[0]->nodes();
    for (size_t g = 1; g < graphs_.size(); ++g) {
      const std::vector<NodePtr>& other = graphs_[g]->nodes();
      const size_t count = std::min(first.size(), other.size());
      for (size_t n = 0; n < count; ++n)
        if (first[n]->op() != other[n]->op() || first[n]->arguments() != other[n]->arguments() ||
            first[n]->outputs().size() != other[n]->outputs().size())
          refuse_example(g, *first[n], "there it is " + name_and_place(*other[n]));
      if (first.size() != other.size())
        refuse_example(g, *first.at(count == 0 ? 0 : count - 1), "another number of nodes");
      if (graphs_[g]->outputs().size() != graphs_[0]->outputs().size() ||
          graphs_[g]->inputs().size() != graphs_[0]->inputs().size())
        refuse_example(g, *first.back(), "other inputs or outputs");
    }
  }

  bool same_value(const LazyTensor& a, size_t g, const LazyTensor& b) const {
    if (!a || !b) return !a && !b;
    const size_t *x = places_[0].find(a.node.get()), *y = places_[g].find(b.node.get());
    return x != nullptr && y != nullptr && *x == *y && a.index == b.index;
  }

  void expect_same_operands(size_t n) const {
    const Node& first = *graphs_[0]->nodes()[n];
    for (size_t g = 1; g < graphs_.size(); ++g)
      for (size_t i = 0; i < first.operands().size(); ++i)
        if (!same_value(first.operands()[i], g, graphs_[g]->nodes()[n]->operands()[i]))
          refuse_example(g, first, "its operand " + std::to_string(i) + " is another value");
  }

  // ---- nodes ------------------------------------------------------------------------------------

  void add(size_t n) {
    const NodePtr& first = graphs_[0]->nodes()[n];
    for (size_t g = 0; g < graphs_.size(); ++g) places_[g].insert(graphs_[g]->nodes()[n].get(), n);
    expect_same_operands(n);
    if (first->op() == ops::kConstant) return add_constant(n);
    LazyTensors operands;
    for (const LazyTensor& operand : first->operands()) operands.push_back(now(operand));
    if (changes_nothing(n)) {
      now_[first.get()] = {operands[0]};
      return;
    }
    const NodePtr made = is_input(*first) ? first : node_of(n, std::move(operands));
    for (uint32_t i = 0; i < first->outputs().size(); ++i) {
      now_[first.get()].push_back({made, i});
      note_types(n, i, {made, i});
    }
  }

  // True for operators that only change sizes, where they are the same at all sizes.
  bool changes_nothing(size_t n) const {
    const Node& first = *graphs_[0]->nodes()[n];
    const bool slices = first.op() == Symbol("onnx::Slice");
    const bool pads = first.op() == Symbol("onnx::Pad");
    if (!slices && !pads && first.op() != Symbol("onnx::Reshape") &&
        first.op() != Symbol("onnx::Expand"))
      return false;
    return std::all_of(graphs_.begin(), graphs_.end(), [&](const Graph* graph) {
      const Node& node = *graph->nodes()[n];
      return node.operands()[0].sizes() == node.outputs()[0].sizes &&
             (!slices || is_all(node.operands().at(4), 1)) &&  // steps
             (!pads || is_all(node.operands().at(1), 0));
    });
  }

  static bool is_all(const LazyTensor& x, int64_t number) {
    if (x.node->op() != ops::kConstant) return false;
    const std::vector<int64_t> all = elements<int64_t>(x.node->attribute("value").as<Array>());
    return std::all_of(all.begin(), all.end(), [&](int64_t one) { return one == number; });
  }

  void note_types(size_t n, uint32_t index, const LazyTensor& made) {
    const Node& first = *graphs_[0]->nodes()[n];
    std::vector<const Type*> types;
    for (size_t g = 0; g < graphs_.size(); ++g) {
      types.push_back(&graphs_[g]->nodes()[n]->outputs()[index]);
      if (types[g]->dtype != types[0]->dtype || types[g]->rank() != types[0]->rank())
        refuse_example(g, first, "its result is " + print(*types[g]));
    }
    SizeNames& names = unified_.names[{made.node.get(), index}];
    names.resize(types[0]->rank());
    bool varies = false;
    for (size_t axis = 0; axis < names.size(); ++axis) {
      Series series;
      for (const Type* type : types) series.push_back(type->sizes[axis]);
      if (all_equal(series)) continue;
      const std::optional<SizeFormula> formula = fits_.find_name(series);
      names[axis] = formula ? fits_.text(*formula) : "";
      varies = true;
    }
    if (varies && nodes_ != nullptr) fits_.add({graphs_[0]->nodes()[n], index}, types);
  }

  void add_constant(size_t n) {
    const NodePtr& first = graphs_[0]->nodes()[n];
    std::vector<Array> arrays;
    bool same = true;
    for (const Graph* graph : graphs_) {
      arrays.push_back(graph->nodes()[n]->attribute("value").as<Array>());
      same = same && arrays.back() == arrays[0];
    }
    if (same)
      now_[first.get()] = {{first, 0}};
    else
      sized_.emplace(first.get(), std::move(arrays));
  }

  // A constant that differs, where it is used first: formulas may read all values before.
  LazyTensor of(const std::pair<const Node* const, std::vector<Array>>& sized) {
    LazyTensor& known = made_[sized.first];
    if (known) return known;
    const auto found = sized_constant(sized.second, [&](const Series& series) {
      return nodes_ == nullptr ? fits_.find_by_inputs(series) : fits_.find(series);
    });
    if (!found) {  // the error lists all of them
      refuse_constant(*sized.first, sized.second);
      return known = {graphs_[0]->nodes().at(*places_[0].find(sized.first)), 0};
    }
    zeros_[sized.first] = has_open_sizes_ || found->may_have_zeros();
    known = provided(*found);
    return known;
  }

  // The value here: of the graph itself by its operators, of a region by a further input.
  LazyTensor provided(const SizedConstant& constant) {
    if (nodes_ != nullptr) return constant.value(*nodes_);
    const LazyTensor block =
        input("sized_" + std::to_string(taken_.size()), constant.type, InputKind::block);
    taken_.emplace_back(block, constant);
    return block;
  }

  void refuse_constant(const Node& node, const std::vector<Array>& arrays) const {
    const Node* user = &node;
    if (const auto& uses = graphs_[0]->successors(node); !uses.empty()) user = uses[0].node;
    const PrintOptions brief{.brief = true};
    std::string text = "a constant that it reads follows from sizes in a way that is not known: ";
    for (size_t g = 0; g < std::min<size_t>(arrays.size(), 3); ++g)
      text += (g == 0 ? "" : "; ") + print(Attribute(arrays[g]), brief) + " at " +
              composit::text_of(points_[g]);
    refusals_.add(*user, {}, text);
  }

  NodePtr node_of(size_t n, LazyTensors operands) {
    const NodePtr& first = graphs_[0]->nodes()[n];
    NodeSpec spec = copy_of(*first, operands);
    expect_same_attributes(n);
    regions_of(n, spec);
    if (spec.operands == first->operands() && spec.attributes == first->attributes()) return first;
    const bool takes_zeros = first->op() == Symbol("onnx::Reshape") &&
                             zeros_[first->operands()[1].node.get()] &&
                             first->find_attribute("allowzero") == nullptr;
    if (takes_zeros) spec.attribute("allowzero", int64_t{1});
    return std::move(spec).make_node();
  }

  void expect_same_attributes(size_t n) const {
    const Node& first = *graphs_[0]->nodes()[n];
    for (size_t g = 1; g < graphs_.size(); ++g) {
      Attributes a = first.attributes(), b = graphs_[g]->nodes()[n]->attributes();
      if (first.op() == Symbol("onnx::Reshape")) a.clear(), b.clear();  // allowzero: see above
      if (a.size() != b.size()) refuse_example(g, first, "other attributes");
      for (size_t i = 0; i < a.size(); ++i) {
        if (a[i].name != b[i].name) refuse_example(g, first, "other attributes");
        if (is_region(a[i].value) || a[i].value == b[i].value) continue;
        refuse_example(g, first,
                       "its attribute '" + a[i].name.str() +
                           "', which has to be a number in ONNX, is " + print(b[i].value) +
                           " there and " + print(a[i].value) + " here");
      }
    }
  }

  // All regions of a node take the same further inputs.
  void regions_of(size_t n, NodeSpec& spec) {
    std::vector<Graph> regions;
    std::vector<Taken> taken;
    std::vector<size_t> places;
    for (size_t a = 0; a < spec.attributes.size(); ++a) {
      if (!is_region(spec.attributes[a].value)) continue;
      std::vector<const Graph*> graphs;
      for (const Graph* graph : graphs_)
        graphs.push_back(graph->nodes()[n]->attributes().at(a).value.as<Region>().get());
      Level inner(std::move(graphs), fits_, unified_, nullptr, points_, refusals_);
      regions.push_back(inner.run());
      taken.push_back(inner.taken());
      places.push_back(a);
    }
    for (const Taken& one : taken)
      for (const auto& [block, constant] : one) spec.tensor(provided(constant));
    for (size_t r = 0; r < regions.size(); ++r) {
      Graph::Parts parts = regions[r].parts();
      parts.inputs.resize(parts.inputs.size() - taken[r].size());
      for (size_t q = 0; q < taken.size(); ++q)
        for (const auto& [block, constant] : taken[q])
          parts.inputs.push_back(q == r ? block : unused(block.type(), parts.inputs.size()));
      spec.attributes[places[r]].value =
          Region(std::make_shared<const Graph>(Graph(std::move(parts))));
    }
  }

  static LazyTensor unused(const Type& type, size_t number) {
    return input("unused_" + std::to_string(number), type, InputKind::block);
  }

  const std::vector<const Graph*> graphs_;
  SizeFits& fits_;
  Unified& unified_;
  SizeNodes* nodes_;  // of the graph itself; absent in regions
  const std::vector<SizeValues>& points_;
  interchange::Refusals& refusals_;
  std::vector<FlatMap<const Node*, size_t>> places_;  // by example
  std::map<const Node*, LazyTensors> now_;            // of nodes of the first example
  std::map<const Node*, std::vector<Array>> sized_;   // constants that differ
  std::map<const Node*, LazyTensor> made_;            // what they are
  std::map<const Node*, bool> zeros_;                 // those that may have a zero
  bool has_open_sizes_ = false;                       // which may be zero
  Taken taken_;
};

}  // namespace

Unified unify(const Family& family, const std::vector<Example>& examples,
              const std::set<SizeValues>& closed) {
  std::vector<const Graph*> graphs;
  std::vector<SizeValues> points;
  for (const Example& example : examples) {
    graphs.push_back(&example.lowered.graph);
    points.push_back(example.sizes);
  }
  Unified unified;
  const LazyTensors& inputs = graphs[0]->inputs();
  SizeFits fits(family, inputs, points, closed);
  std::optional<Level> level;
  SizeNodes nodes([&](const LazyTensor& value) { return level->now(value); });
  interchange::Refusals refusals;
  level.emplace(std::move(graphs), fits, unified, &nodes, points, refusals);
  Graph::Parts parts = level->run().parts();
  refusals.expect_none();
  unified.lowered.guards = examples[0].lowered.guards;
  const auto add_guard = [&](const LazyTensor& holds, const std::string& what) {
    parts.outputs.push_back(holds);
    unified.lowered.guards.push_back(what);
  };
  // Sizes that follow from values, and were equal in all examples, have to be those.
  const Graph made(parts);
  for (const NodePtr& node : made.nodes())
    if (const auto names = unified.names.find({node.get(), 0});
        has_open_size(*node) && names != unified.names.end() && !names->second.at(1))
      add_guard(size_holds(node), size_text(*node));
  for (const FreeSize& size : family.sizes)
    add_guard(range_holds(size, inputs, nodes), range_text(size, inputs));
  size_t input = family.example.inputs().size();  // numbers are the last ones
  for (const FreeNumber& number : family.numbers) {
    if (number.origin == NumberOrigin::read) continue;
    const LazyTensor& given = inputs.at(input++);
    if (is_whole(number))
      add_guard(compare("Equal", given, unary("Floor", given)),
                "the number '" + number.name + "' is whole");
  }
  if (nodes.divisible()) add_guard(nodes.divisible(), "sizes that are divided leave no remainder");
  unified.lowered.graph = Graph(std::move(parts));
  return unified;
}

}  // namespace composit::onnx
