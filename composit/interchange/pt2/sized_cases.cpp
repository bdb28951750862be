#include "composit/interchange/pt2/sized_cases.h"

#include <algorithm>

#include "composit/family/unify.h"
#include "composit/interchange/pt2/arguments.h"
#include "composit/interchange/pt2/graph_writer.h"
#include "composit/ir/error.h"

namespace composit::pt2 {
namespace {

constexpr size_t kSymbolsOfLeaf = 100'000;  // numbers of unknown sizes, other ones in each leaf

const Symbol kSizedCases("composit::sized_cases");

const LazyTensor& input_of(const Graph& graph, const std::string& name) {
  static const LazyTensor absent;
  const std::optional<size_t> found = find_input(graph, name);
  return found ? graph.inputs()[*found] : absent;
}

const Mutation* mutation_of(const Graph& graph, const std::string& name) {
  for (const Mutation& mutation : graph.mutations())
    if (input_name(*mutation.target.node) == name) return &mutation;
  return nullptr;
}

// sympy's text of a condition.
std::string function_of(SizeCondition::Relation relation) {
  return relation == SizeCondition::Relation::equal ? "Equality" : "LessThan";
}

Json operand(Json value) { return positional("", std::move(value)); }

int64_t number_in(const Json& size) {
  const Json& number = size.contains("as_int") ? size : size.at("as_expr").at("hint");
  return number.at("as_int").get<int64_t>();
}

Json size_json(int64_t number, const std::string& text) {
  if (text.empty()) return {{"as_int", number}};
  return {{"as_expr", {{"expr_str", text}, {"hint", {{"as_int", number}}}}}};
}

// Row-major strides for sizes that may be symbols.
Json with_dense_strides(Json meta) {
  int64_t stride = 1;
  std::string stride_text;  // of one that is no number
  const Json& sizes = meta.at("sizes");
  const auto text = [](const Json& size) {
    return size.contains("as_int") ? "Integer(" + size["as_int"].dump() + ")"
                                   : size["as_expr"]["expr_str"].get<std::string>();
  };
  for (size_t axis = sizes.size(); axis-- > 0;) {
    meta["strides"][axis] = size_json(stride, stride_text);
    if (!stride_text.empty() || !sizes[axis].contains("as_int")) {
      const std::string inner =
          stride_text.empty() ? "Integer(" + std::to_string(stride) + ")" : stride_text;
      stride_text = "Mul(" + text(sizes[axis]) + ", " + inner + ")";
    }
    stride *= number_in(sizes[axis]);
  }
  return meta;
}

Json tensors_json(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push_back({{"name", name}});
  return {{"as_tensors", list}};
}

}  // namespace

bool is_sized_cases(const Node& node) { return node.op() == kSizedCases; }

SizedCases::SizedCases(SizeTree tree, const SavedCapture& saved) : tree_(std::move(tree)) {
  for (size_t i = 0; i < tree_.leaves.size(); ++i) {
    const SavedCapture& leaf = tree_.leaves[i];
    if (!is_family(leaf))
      throw UserError(
          "the ways that a value chooses between were shown at one size only: show more sizes");
    families_.push_back(family_of(leaf).cases.at(0));
    if (!families_.back().numbers.empty())
      throw UserError(
          "expected no numbers that differ between calls in a family whose structure "
          "depends on sizes, received '" +
          families_.back().numbers[0].name +
          "': 'bind' gives a capture of one size, which can be exported");
  }
  for (size_t i = 0; i < families_.size(); ++i)
    symbols_.push_back(std::make_unique<Symbols>(families_[i], sizes_of_leaf(tree_, i),
                                                 /*first=*/kSymbolsOfLeaf * (i + 1)));
  expect_alike();
  join_captures(saved);
  make_whole();
}

void SizedCases::expect_alike() const {
  const auto text = [](const SavedCapture& capture, const char* key) {
    const auto found = capture.properties.find(key);
    return found == capture.properties.end() ? std::string() : found->second;
  };
  const Graph& first = families_[0].example;
  for (size_t i = 1; i < families_.size(); ++i) {
    const Graph& other = families_[i].example;
    if (text(tree_.leaves[i], "arguments") != text(tree_.leaves[0], "arguments"))
      throw UserError("its cases take arguments of another structure, which one file cannot say");
    bool same = text(tree_.leaves[i], "results") == text(tree_.leaves[0], "results") &&
                other.outputs().size() == first.outputs().size();
    for (size_t o = 0; same && o < first.outputs().size(); ++o) {
      const LazyTensor &a = first.outputs()[o], &b = other.outputs()[o];
      same = static_cast<bool>(a) == static_cast<bool>(b) &&
             (!a || (a.dtype() == b.dtype() && a.type().rank() == b.type().rank()));
    }
    if (!same)
      throw UserError(
          "its cases give results of another structure, dtype or number of axes, "
          "which branches cannot");
  }
}

void SizedCases::join_captures(const SavedCapture& saved) {
  whole_ = saved;
  whole_.cases.clear();
  for (const SavedCapture& leaf : tree_.leaves) {
    whole_.weights.insert(leaf.weights.begin(), leaf.weights.end());
    whole_.properties.insert(leaf.properties.begin(), leaf.properties.end());
    for (const std::string& schema : leaf.schemas)
      if (std::count(whole_.schemas.begin(), whole_.schemas.end(), schema) == 0)
        whole_.schemas.push_back(schema);
  }
}

void SizedCases::make_whole() {
  Graph::Parts parts;
  parts.inputs = tree_.inputs;
  for (const Family& family : families_)
    for (const LazyTensor& input : family.example.inputs()) {
      const std::string& name = input_name(*input.node);
      const auto is_it = [&](const LazyTensor& one) { return input_name(*one.node) == name; };
      if (std::none_of(parts.inputs.begin(), parts.inputs.end(), is_it))
        parts.inputs.push_back(input);
    }
  for (const Family& family : families_)
    for (const Mutation& mutation : family.example.mutations()) {
      const std::string& name = input_name(*mutation.target.node);
      if (std::count(written_.begin(), written_.end(), name) == 0) written_.push_back(name);
    }
  NodeSpec spec(kSizedCases);
  spec.list(parts.inputs);
  for (const LazyTensor& output : families_[0].example.outputs())
    if (output) spec.output(tensor_type(output.dtype(), output.sizes()));
  for (const std::string& name : written_)
    for (const LazyTensor& input : parts.inputs)
      if (input_name(*input.node) == name) spec.output(input.type());
  const NodePtr node = std::move(spec).make_node();
  uint32_t next = 0;
  for (const LazyTensor& output : families_[0].example.outputs())
    parts.outputs.push_back(output ? LazyTensor{node, next++} : LazyTensor());
  for (const std::string& name : written_)
    for (const LazyTensor& input : parts.inputs)
      if (input_name(*input.node) == name) parts.mutations.push_back({input, {node, next++}});
  whole_.graph = Graph(std::move(parts));
  family_.example = whole_.graph;
  family_.sizes = tree_.sizes;
}

LazyTensors SizedCases::results(size_t leaf) const {
  const Graph& graph = families_.at(leaf).example;
  LazyTensors results;
  for (const LazyTensor& output : graph.outputs())
    if (output) results.push_back(output);
  for (const std::string& name : written_) {
    const Mutation* mutation = mutation_of(graph, name);
    results.push_back(mutation == nullptr ? input_of(graph, name) : mutation->value);
  }
  return results;
}

// ---- written ------------------------------------------------------------------------------------

void GraphWriter::add_sized_cases(const Node& node, Frame& frame, const Origin& origin) {
  bind(node, add_way({program_.cases()->tree().choices.empty(), 0}, node, origin), frame);
}

GraphWriter::Names GraphWriter::add_way(const Way& way, const Node& node, const Origin& origin) {
  return way.is_case ? add_leaf(way.index, node) : add_choice(way.index, node, origin);
}

// A region of a way: its inputs are those of the node, under names of its own.
struct WayWriter {
  WayWriter(Program& program, LiftedConstants& lifted, const Node& node)
      : writer(program, &lifted) {
    for (const LazyTensor& input : node.operands()) {
      names.push_back(program.value_name("arg"));
      writer.add_input(input, names.back());
    }
  }
  Json json(Program& program, const LiftedConstants& lifted, const std::string& hint,
            const std::vector<std::string>& results) {
    for (const Array& constant : lifted) names.push_back(writer.name_of(constant));
    Json inputs = Json::array(), outputs = Json::array();
    for (const std::string& name : names) inputs.push_back(tensor_json(name));
    for (const std::string& name : results) outputs.push_back(tensor_json(name));
    return {{"as_graph",
             {{"name", program.value_name(hint)},
              {"graph", writer.graph_json(std::move(inputs), std::move(outputs))}}}};
  }
  GraphWriter writer;
  std::vector<std::string> names;
};

GraphWriter::Names GraphWriter::add_choice(size_t number, const Node& node, const Origin& origin) {
  const SizeTree::Choice& choice = program_.cases()->tree().choices.at(number);
  const Json predicate = condition_of(choice.condition, origin);
  LiftedConstants lifted;
  WayWriter yes(program_, lifted, node), no(program_, lifted, node);
  const Names then = yes.writer.add_way(choice.holds, node, origin);
  const Names other = no.writer.add_way(choice.fails, node, origin);
  const Json yes_json = yes.json(program_, lifted, "true_graph", then);
  const Json no_json = no.json(program_, lifted, "false_graph", other);
  Names operands;
  for (const LazyTensor& input : node.operands())
    operands.push_back(tensor_name(value_of(input, frame_)));
  for (const Array& constant : lifted) operands.push_back(name_of(constant));
  const Names results = emit("torch.ops.higher_order.cond",
                             Json::array({operand(predicate), operand(yes_json), operand(no_json),
                                          operand(tensors_json(operands))}),
                             node.outputs(), false, origin);
  for (size_t i = 0; i < results.size(); ++i)
    tensors_[results[i]] =
        joined_meta(yes.writer.tensors_.at(then[i]), no.writer.tensors_.at(other[i]));
  return results;
}

// Sizes that are others in two ways are symbols of their own.
Json GraphWriter::joined_meta(const Json& a, const Json& b) const {
  Json meta = a;
  for (size_t axis = 0; axis < a.at("sizes").size(); ++axis)
    if (const Json& one = a.at("sizes")[axis]; one != b.at("sizes")[axis])
      meta["sizes"][axis] = program_.symbols()->unknown(number_in(one));
  return with_dense_strides(std::move(meta));
}

// Sizes are within what was shown in this case. By tensors: where torch traces a branch at other
// sizes, which it never takes there, integers would refuse it.
void GraphWriter::expect_in_case(const FreeSize& size, const LazyTensors& inputs) {
  const InputAxis& axis = size.axes.at(0);
  const Json number = size_of(inputs.at(axis.input), axis.axis, frame_, {});
  if (number.contains("as_int")) return;
  const Type truth = tensor_type(DType::bool_, {});
  const auto call = [&](const char* op, const std::string& x, int64_t other, const Type& type) {
    return add(
        "torch.ops.aten." + std::string(op) + ".Scalar",
        Json::array({positional("self", tensor_json(x)), positional("other", {{"as_int", other}})}),
        type);
  };
  const Type integer = tensor_type(DType::int64, {});
  const std::string what = "the size '" + size.name + "' was shown from " +
                           std::to_string(size.low) + " to " + std::to_string(size.high) +
                           " in this case";
  const std::string here = rounded_tensor(number, DType::int64, {});
  add_assertion(call("ge", here, size.low, truth), what, {});
  add_assertion(call("le", here, size.high, truth), what, {});
  if (size.step != 1)
    add_assertion(
        call("eq", call("remainder", here, size.step, integer), size.low % size.step, truth),
        what + " in steps of " + std::to_string(size.step), {});
}

GraphWriter::Names GraphWriter::add_leaf(size_t leaf, const Node& node) {
  const SizedCases& cases = *program_.cases();
  const Graph& graph = cases.family(leaf).example;
  const Symbols* around = program_.use(&cases.symbols(leaf));
  for (const LazyTensor& operand : node.operands())
    if (const LazyTensor& own = input_of(graph, input_name(*operand.node)))
      if (own.node != operand.node) {
        const std::string name = frame_.at({operand.node.get(), operand.index}).name;
        add_input(own, name);
      }
  for (const FreeSize& size : cases.family(leaf).sizes) expect_in_case(size, graph.inputs());
  add(graph, frame_, {});
  Names results;
  const LazyTensors values = cases.results(leaf);
  const size_t first_written = values.size() - cases.written().size();
  for (size_t i = 0; i < values.size(); ++i) {
    std::string name;
    if (values[i]) {
      name = name_of(values[i]);
    } else {  // it has no such input, and writes nothing there
      for (const LazyTensor& operand : node.operands())
        if (input_name(*operand.node) == cases.written()[i - first_written])
          name = tensor_name(value_of(operand, frame_));
    }
    // None of its inputs, and none twice.
    Json meta = with_dense_strides(tensors_.at(name));
    results.push_back(
        add_clone(name, tensor_type(node.outputs()[i].dtype, node.outputs()[i].sizes)));
    tensors_[results.back()] = std::move(meta);
  }
  program_.use(around);
  return results;
}

Json GraphWriter::condition_of(const SizeCondition& condition, const Origin& origin) {
  const Json left = integer_of(condition.left, frame_, origin),
             right = integer_of(condition.right, frame_, origin);
  const auto text = [&](const SizeFormula& formula) {
    return expression(formula, [&](const LazyTensor& tensor, size_t axis) {
      const Json size = program_.symbols()->size_json(tensor, axis);
      return size.contains("as_int") ? "Integer(" + size["as_int"].dump() + ")"
                                     : size["as_expr"]["expr_str"].get<std::string>();
    });
  };
  const auto here = [](const LazyTensor& tensor, size_t axis) { return tensor.sizes().at(axis); };
  const std::string name = program_.value_name("holds");
  bools_[name] = {{"as_expr",
                   {{"expr_str", function_of(condition.relation) + "(" + text(condition.left) +
                                     ", " + text(condition.right) + ")"},
                    {"hint", {{"as_bool", holds(condition, here)}}}}}};
  const bool equal = condition.relation == SizeCondition::Relation::equal;
  const Json named = {{"as_sym_bool", {{"as_name", name}}}};
  nodes_.push_back({{"target", equal ? "_operator.eq" : "_operator.le"},
                    {"inputs", Json::array({positional("a", left), positional("b", right)})},
                    {"outputs", Json::array({named})},
                    {"metadata", metadata_.next(origin)}});
  return named;
}

}  // namespace composit::pt2
