// torch's higher-order operators as branches and loops.
#include <map>
#include <memory>

#include "composit/interchange/pt2_read/graph_reader.h"
#include "composit/interchange/pt2_read/known.h"
#include "composit/ir/error.h"
#include "composit/ops/operations.h"
#include "composit/ops/tracing.h"

namespace composit::pt2_read {
namespace {

constexpr size_t kMaxDepth = 50;

const Json& input_of(const Json& node, size_t index) {
  const Json& inputs = list_of(field(node, "inputs"));
  if (index >= inputs.size()) throw UserError("it has too few arguments");
  return field(inputs[index], "arg");
}

const Json& graph_of(const Json& argument) { return field(field(argument, "as_graph"), "graph"); }

// The name of an input of a region; empty for a number.
std::string name_of(const Json& input) {
  const auto [kind, content] = only_field(input);
  if (kind == "as_tensor") return text_of(field(*content, "name"));
  if (kind.starts_with("as_sym_") && content->contains("as_name"))
    return text_of(field(*content, "as_name"));
  return "";
}

// The types of slots of a sequence.
std::vector<Type> slots_of(const LazyTensors& sequences) {
  std::vector<Type> types;
  for (const LazyTensor& sequence : sequences) {
    if (!sequence || sequence.rank() == 0)
      throw UserError("expected sequences of at least one axis");
    types.push_back(
        tensor_type(sequence.dtype(), Dims(sequence.sizes().begin() + 1, sequence.sizes().end())));
  }
  return types;
}

void append(std::vector<Type>& types, const LazyTensors& tensors) {
  for (const Type& type : tensor_types(tensors)) types.push_back(type);
}

int64_t length_of(const LazyTensors& sequences) {
  const int64_t length = sequences.at(0).size(0);
  for (const LazyTensor& sequence : sequences)
    if (sequence.size(0) != length) throw UserError("its sequences have several lengths");
  return length;
}

}  // namespace

bool GraphReader::read_control_flow(const Json& node) {
  using Read = void (GraphReader::*)(const Json&);
  static const auto* table = new std::map<std::string_view, Read>{
      {"torch.ops.higher_order.cond", &GraphReader::read_cond},
      {"torch.ops.higher_order.map_impl", &GraphReader::read_map},
      {"torch.ops.higher_order.scan", &GraphReader::read_scan},
      {"torch.ops.higher_order.while_loop", &GraphReader::read_while},
      {"torch.ops.higher_order.wrap_with_autocast", &GraphReader::read_autocast},
      {"torch.ops.higher_order.wrap_with_set_grad_enabled", &GraphReader::read_grad_mode}};
  const auto found = table->find(text_of(field(node, "target")));
  if (found == table->end()) return false;
  (this->*found->second)(node);
  return true;
}

Region GraphReader::region_of(const Json& argument, const std::vector<Type>& types,
                              size_t least_results) {
  const Json& graph = graph_of(argument);
  const Json& inputs = list_of(field(graph, "inputs"));
  if (inputs.size() != types.size())
    throw UserError("a region of " + std::to_string(inputs.size()) + " inputs gets " +
                    std::to_string(types.size()));
  if (depth_ >= kMaxDepth) throw UserError("regions nested more than 50 levels deep");
  GraphReader inner(program_, graph);
  inner.depth_ = depth_ + 1;
  inner.around_ = origin_;
  inner.grad_ = grad_;
  Graph::Parts parts;
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string name = name_of(inputs[i]);
    if (name.empty()) throw UserError("a region that takes a number");
    parts.inputs.push_back(
        input(std::to_string(i), tensor_type(types[i].dtype, types[i].sizes), InputKind::block));
    inner.add_input(name, parts.inputs.back());
  }
  inner.read();
  if (!inner.effects_.empty())
    throw UserError("a region that draws or asserts, which composit has none of");
  for (const Json& output : list_of(field(graph, "outputs"))) {
    const std::string name = name_of(output);
    const std::optional<LazyTensor> result = name.empty() ? std::nullopt : inner.tensor(name);
    if (!name.empty() && !result) throw UserError("what one of its regions has is refused");
    if (!result) throw UserError("a region that gives what is no tensor");
    parts.outputs.push_back(*result);
  }
  if (parts.outputs.size() < least_results) throw UserError("a region of too few results");
  return std::make_shared<const Graph>(std::move(parts));
}

// The call of an operation of composit's, whose results are `count` of the file's, or all.
void GraphReader::finish_control(const Json& node, std::string_view op,
                                 std::vector<ArgumentValue> values) {
  LazyTensors results = make(op, std::move(values));
  const Names names = result_names(node);
  if (names.size() > results.size() || names.size() + 1 < results.size())
    throw UserError("it gives " + std::to_string(results.size()) + " results, the file has " +
                    std::to_string(names.size()));
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    expect_said(names[i], results[i].type());
  }
  bind(names, results);
}

void GraphReader::read_cond(const Json& node) {
  const LazyTensors given = operands(node, 3);
  const std::vector<Type> types = tensor_types(given);
  const Region yes = region_of(input_of(node, 1), types, 0);
  const Region no = region_of(input_of(node, 2), types, 0);
  const ArgumentValue predicate = operand(node, 0);
  if (!predicate.is_tensor() || !predicate.tensor())
    throw UserError("a branch on what is no tensor; export the program for one way");
  finish_control(node, "composit::cond", {predicate, given, Attribute(yes), Attribute(no)});
}

void GraphReader::read_map(const Json& node) {
  const LazyTensors sequences = operands(node, 1), outside = operands(node, 2);
  if (sequences.empty()) throw UserError("a map over no sequence");
  std::vector<Type> types = slots_of(sequences);
  append(types, outside);
  const Region body = region_of(input_of(node, 0), types, 0);
  finish_control(node, "composit::map",
                 {sequences, outside, Attribute(body), length_of(sequences)});
}

void GraphReader::read_scan(const Json& node) {
  const LazyTensors init = operands(node, 1), sequences = operands(node, 2),
                    outside = operands(node, 3);
  if (sequences.empty()) throw UserError("a scan over no sequence");
  std::vector<Type> types = tensor_types(init);
  for (const Type& slot : slots_of(sequences)) types.push_back(slot);
  append(types, outside);
  const Region body = region_of(input_of(node, 0), types, init.size());
  finish_control(node, "composit::scan",
                 {init, sequences, outside, LazyTensor(), Attribute(body), length_of(sequences)});
}

void GraphReader::read_while(const Json& node) {
  const LazyTensors init = operands(node, 2), outside = operands(node, 3);
  std::vector<Type> types = tensor_types(init);
  append(types, outside);
  const Region condition = region_of(input_of(node, 0), types, 1);
  const Region body = region_of(input_of(node, 1), types, init.size());
  finish_control(node, "composit::while_loop",
                 {init, outside, Attribute(condition), Attribute(body)});
}

void GraphReader::read_grad_mode(const Json& node) {
  const ArgumentValue mode = operand(node, 0);
  const bool* grad = mode.is_tensor() || mode.is_list() ? nullptr : mode.data().get_if<bool>();
  if (grad == nullptr) throw UserError("expected true or false as its first argument");
  inline_region(node, 1, *grad);
}

// Where autocast is off, operators run as they stand there.
void GraphReader::read_autocast(const Json& node) {
  constexpr size_t kEnabled = 2, kGraph = 4;
  const ArgumentValue mode = operand(node, kEnabled);
  const bool* enabled = mode.is_tensor() || mode.is_list() ? nullptr : mode.data().get_if<bool>();
  if (enabled == nullptr || *enabled)
    throw UserError("autocast chooses dtypes when it runs; " + std::string(kAdvice));
  inline_region(node, kGraph, grad_);
}

// The nodes of a region in place of the call; what it takes follows it among the arguments.
void GraphReader::inline_region(const Json& node, size_t place, std::optional<bool> grad) {
  if (depth_ >= kMaxDepth) throw UserError("regions nested more than 50 levels deep");
  const Json& graph = graph_of(input_of(node, place));
  const Json& inputs = list_of(field(graph, "inputs"));
  GraphReader inner(program_, graph);
  inner.depth_ = depth_ + 1;
  inner.around_ = origin_;
  inner.grad_ = grad;
  inner.first_effect_ = first_effect_ + effects_.size();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const std::string name = name_of(inputs[i]); !name.empty())
      inner.add_input(name, operand(node, place + 1 + i));
  inner.read();
  effects_.insert(effects_.end(), inner.effects_.begin(), inner.effects_.end());
  const Json& outputs = list_of(field(graph, "outputs"));
  const Names names = result_names(node);
  if (names.size() != outputs.size()) throw UserError("it gives what its region does not");
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    if (const std::string own = name_of(outputs[i]);
        !own.empty() && inner.left_out_.contains(own)) {
      left_out_.insert(names[i]);
      continue;
    }
    values_.insert_or_assign(names[i], inner.value_of(outputs[i]));
    aliases_.add_fresh(names[i]);
    // It may be what went in, or a view of it.
    for (size_t k = 0; k < inputs.size(); ++k)
      if (const std::string given = name_of(input_of(node, place + 1 + k)); !given.empty())
        aliases_.join(names[i], given);
  }
}

}  // namespace composit::pt2_read
