#include "composit/interchange/onnx/cases.h"

#include <algorithm>
#include <set>

#include "composit/interchange/onnx/ops.h"
#include "composit/interchange/onnx/size_nodes.h"
#include "composit/ir/transform.h"

namespace composit::onnx {
namespace {

// An input of the same name and type that is another node.
LazyTensor another(const LazyTensor& input) {
  return {copy_of(*input.node, {}).make_node(), input.index};
}

LazyTensor named(const LazyTensors& inputs, const std::string& name) {
  for (const LazyTensor& input : inputs)
    if (input_name(*input.node) == name) return input;
  return {};
}

// One result of all cases: what it is in each of them.
struct Result {
  LazyTensors values;  // by leaf
};

class CasesWriter {
 public:
  CasesWriter(const SizeTree& tree, const std::vector<Unified>& leaves)
      : tree_(tree), leaves_(leaves) {}

  Unified run() {
    add_inputs();
    SizeNodes sizes(
        [this](const LazyTensor& value) { return named(inputs_, input_name(*value.node)); });
    for (const SizeTree::Choice& choice : tree_.choices)
      conditions_.push_back(condition(choice.condition, sizes));
    gather_results();
    outer_ = inputs_;
    outer_.insert(outer_.end(), conditions_.begin(), conditions_.end());
    const LazyTensors values = choose({tree_.choices.empty(), 0}, outer_);
    Graph::Parts parts;
    parts.inputs = inputs_;
    size_t next = 0;
    for (size_t i = 0; i < outputs_; ++i) parts.outputs.push_back(values.at(next++));
    for (const std::string& name : written_)
      parts.mutations.push_back({named(inputs_, name), values.at(next++)});
    for (; next < values.size(); ++next) parts.outputs.push_back(values[next]);
    if (sizes.divisible()) {
      parts.outputs.push_back(sizes.divisible());
      unified_.lowered.guards.push_back("sizes that are divided leave no remainder");
    }
    unified_.lowered.graph = Graph(std::move(parts));
    return std::move(unified_);
  }

 private:
  const Graph& graph(size_t leaf) const { return leaves_[leaf].lowered.graph; }

  void add_inputs() {
    for (size_t leaf = 0; leaf < leaves_.size(); ++leaf)
      for (const LazyTensor& input : graph(leaf).inputs()) {
        if (named(inputs_, input_name(*input.node))) continue;
        inputs_.push_back(another(input));
        LazyTensors own;
        for (size_t i = 0; i < leaves_.size(); ++i)
          own.push_back(named(graph(i).inputs(), input_name(*input.node)));
        note(inputs_.back(), own);
      }
    for (size_t leaf = 0; leaf < leaves_.size(); ++leaf)
      unified_.names.insert(leaves_[leaf].names.begin(), leaves_[leaf].names.end());
  }

  LazyTensor condition(const SizeCondition& condition, SizeNodes& sizes) const {
    const bool equal = condition.relation == SizeCondition::Relation::equal;
    return compare(equal ? "Equal" : "LessOrEqual", sizes.number(condition.left),
                   sizes.number(condition.right));
  }

  // ---- results ----------------------------------------------------------------------------------

  void gather_results() {
    outputs_ = count_outputs(0);
    for (size_t i = 0; i < outputs_; ++i) {
      Result result;
      for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
        if (count_outputs(leaf) != outputs_) refuse();
        result.values.push_back(graph(leaf).outputs()[i]);
      }
      add_result(std::move(result));
    }
    add_written();
    add_guards();
  }

  size_t count_outputs(size_t leaf) const {
    return graph(leaf).outputs().size() - leaves_[leaf].lowered.guards.size();
  }

  // What a case does not write stays as it is.
  void add_written() {
    for (size_t leaf = 0; leaf < leaves_.size(); ++leaf)
      for (const Mutation& mutation : graph(leaf).mutations())
        if (const std::string& name = input_name(*mutation.target.node);
            std::count(written_.begin(), written_.end(), name) == 0)
          written_.push_back(name);
    for (const std::string& name : written_) {
      Result result;
      for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
        LazyTensor value = named(graph(leaf).inputs(), name);
        for (const Mutation& mutation : graph(leaf).mutations())
          if (input_name(*mutation.target.node) == name) value = mutation.value;
        result.values.push_back(value);  // absent: the input of the model
      }
      add_result(std::move(result));
    }
  }

  void add_guards() {
    for (size_t of = 0; of < leaves_.size(); ++of)
      for (size_t g = 0; g < leaves_[of].lowered.guards.size(); ++g) {
        Result result;
        for (size_t leaf = 0; leaf < leaves_.size(); ++leaf)
          result.values.push_back(leaf == of ? graph(leaf).outputs()[count_outputs(leaf) + g]
                                             : number(1, DType::bool_));
        add_result(std::move(result));
        unified_.lowered.guards.push_back("in case " + std::to_string(of + 1) + ": " +
                                          leaves_[of].lowered.guards[g]);
      }
  }

  void add_result(Result result) {
    const LazyTensor* first = nullptr;
    for (const LazyTensor& value : result.values) {
      if (!value) continue;
      if (first == nullptr) first = &value;
      if (value.dtype() != first->dtype() || value.type().rank() != first->type().rank()) refuse();
    }
    // Absent everywhere: a result that is none.
    types_.push_back(first == nullptr ? Type() : tensor_type(first->dtype(), first->sizes()));
    results_.push_back(std::move(result));
  }

  [[noreturn]] static void refuse() {
    throw UserError(
        "its cases give results of another structure, dtype or number of axes, which branches "
        "cannot: 'bind' gives a capture of one size, which can be exported");
  }

  // ---- branches ---------------------------------------------------------------------------------

  // The results of a way, in a graph whose inputs are these: those of the model, then conditions.
  LazyTensors choose(const Way& way, const LazyTensors& around) {
    const size_t number = way.index;
    LazyTensors operands = {around.at(inputs_.size() + number)};
    operands.insert(operands.end(), around.begin(), around.end());
    const SizeTree::Choice& choice = tree_.choices.at(number);
    std::vector<Type> types;
    for (const Type& type : types_)
      if (is_defined(type)) types.push_back(type);
    const LazyTensors made = calls("If", operands,
                                   {attribute("then_branch", Region(region(choice.holds))),
                                    attribute("else_branch", Region(region(choice.fails)))},
                                   types);
    LazyTensors values;
    size_t next = 0;
    for (size_t i = 0; i < results_.size(); ++i) {
      values.push_back(is_defined(types_[i]) ? made.at(next++) : LazyTensor());
      if (values.back()) note(values.back(), results_[i].values);
    }
    return values;
  }

  std::shared_ptr<const Graph> region(const Way& way) {
    return std::make_shared<const Graph>(way.is_case ? leaf_region(way.index) : choice_region(way));
  }

  Graph choice_region(const Way& way) {
    LazyTensors blocks;
    for (const LazyTensor& value : outer_)
      blocks.push_back(
          input("around_" + std::to_string(blocks.size()), value.type(), InputKind::block));
    LazyTensors outputs;
    for (const LazyTensor& value : choose(way, blocks))
      if (value) outputs.push_back(value);
    return Graph({.inputs = blocks, .outputs = outputs});
  }

  Graph leaf_region(size_t leaf) const {
    LazyTensors blocks;
    for (const LazyTensor& value : outer_) {
      const LazyTensor own = blocks.size() < inputs_.size()
                                 ? named(graph(leaf).inputs(), input_name(*value.node))
                                 : LazyTensor();
      blocks.push_back(
          own ? own
              : input("around_" + std::to_string(blocks.size()), value.type(), InputKind::block));
    }
    LazyTensors outputs;
    for (size_t i = 0; i < results_.size(); ++i) {
      if (!is_defined(types_[i])) continue;
      LazyTensor value = results_[i].values.at(leaf);
      // It has no such input, and does not write it.
      for (size_t k = 0; k < inputs_.size() && !value; ++k)
        if (i >= outputs_ && input_name(*inputs_[k].node) == written_.at(i - outputs_))
          value = blocks[k];
      outputs.push_back(value);
    }
    return Graph({.inputs = blocks, .outputs = outputs});
  }

  // ---- names ------------------------------------------------------------------------------------

  // The names of sizes that a value has, which is one of these: what they have in common.
  void note(const LazyTensor& value, const LazyTensors& of_leaves) {
    std::optional<SizeNames> all;
    Dims sizes;
    for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
      const LazyTensor& own = of_leaves.at(leaf);
      if (!own) continue;
      const auto& known = leaves_[leaf].names;
      const auto found = known.find({own.node.get(), own.index});
      const bool is_fixed = own.node->op() == ops::kConstant;
      const SizeNames names = found != known.end() ? found->second
                              : is_fixed           ? SizeNames(own.type().rank())
                                                   : SizeNames(own.type().rank(), std::string());
      if (!all) {
        all = names;
        sizes = own.sizes();
      }
      for (size_t axis = 0; axis < names.size(); ++axis)
        if (names[axis] != all->at(axis) || (!names[axis] && own.sizes()[axis] != sizes[axis]))
          all->at(axis) = "";
    }
    if (all) unified_.names[{value.node.get(), value.index}] = *all;
  }

  const SizeTree& tree_;
  const std::vector<Unified>& leaves_;
  LazyTensors inputs_, conditions_;  // of the model
  LazyTensors outer_;                // both
  std::vector<Result> results_;      // outputs, what is written, guards
  std::vector<Type> types_;          // of the results
  size_t outputs_ = 0;
  std::vector<std::string> written_;
  Unified unified_;
};

}  // namespace

Unified with_cases(const SizeTree& tree, const std::vector<Unified>& leaves) {
  return CasesWriter(tree, leaves).run();
}

}  // namespace composit::onnx
