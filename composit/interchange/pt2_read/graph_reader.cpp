#include "composit/interchange/pt2_read/graph_reader.h"

#include <algorithm>
#include <variant>

#include "composit/interchange/pt2_read/arguments.h"
#include "composit/interchange/pt2_read/known.h"
#include "composit/interchange/pt2_read/numbers.h"
#include "composit/ir/error.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/transform.h"
#include "composit/ir/verify.h"
#include "composit/ops/functions.h"

namespace composit::pt2_read {
namespace {

// What comes of a node that was refused: nothing is said of it.
struct LeftOut {};

std::string_view target_of(const Json& node) { return text_of(field(node, "target")); }

// Names of values in an argument; those of regions are their own.
void collect_names(const Json& json, std::vector<std::string>& names) {
  if (json.is_array())
    for (const Json& item : json) collect_names(item, names);
  if (!json.is_object()) return;
  for (const auto& [key, item] : json.items()) {
    if (key == "as_graph") continue;
    if ((key == "name" || key == "as_name") && item.is_string())
      names.push_back(item.get<std::string>());
    else
      collect_names(item, names);
  }
}

std::vector<std::string> names_in(const Json& node) {
  std::vector<std::string> names;
  for (const Json& input : list_of(field(node, "inputs")))
    collect_names(field(input, "arg"), names);
  return names;
}

// Strides that leave more room between elements than a capture may have are none of torch's, but
// for a view of a tensor that takes as much.
void expect_dense(const Type& type, const Call& call) {
  const auto extent = [](const Type& of) { return of.numel() == 0 ? 0 : of.extent(); };
  int64_t shown = 0;
  for (const LazyTensor& tensor : call.tensors())
    if (tensor) shown = std::max(shown, extent(tensor.type()));
  const int64_t gaps = extent(type) - type.numel();
  if (extent(type) > shown && gaps > kMaxArrayGaps / static_cast<int64_t>(item_size(type.dtype)))
    throw UserError("a result of strides that leave gaps: " + print(type));
}

// The file's type of a result, where it is what the operation gives.
Type fitting(const Type& inferred, const Type& said) {
  if (inferred.dtype != said.dtype || inferred.sizes != said.sizes)
    throw UserError("it gives " + print(inferred) + ", the file says " + print(said));
  return said;
}

// Lists have no end but what sizes and numbers say, which a damaged file may say of anything: those
// that are as long as an axis have to be as long as the file has them, before they are made.
void expect_as_many(const Call& call, size_t count) {
  const Schema& schema = call.schema();
  if (schema.results.size() != 1 || !schema.results[0].list || !call[0].is_tensor()) return;
  constexpr int64_t kMostParts = 1'000'000;
  const std::string_view base = schema.name.base_name();
  const LazyTensor& x = call[0].tensor();
  int64_t parts = 0, axis = 0;
  for (size_t i = 1; i < call.size(); ++i) {
    const int64_t* number =
        call[i].is_tensor() || call[i].is_list() ? nullptr : call[i].data().get_if<int64_t>();
    if (number == nullptr) continue;
    (schema.arguments[i].name == "dim" ? axis : parts) = *number;
  }
  if (!x || parts > kMostParts) throw UserError("it gives more parts than there can be");
  const int64_t size = x.rank() == 0 ? 1 : x.size(axis);
  if (base == "split" || base == "unsafe_split") parts = parts > 0 ? (size - 1) / parts + 1 : 0;
  if (base == "unbind") parts = size;
  if ((base.ends_with("split") || base == "unbind") && parts > kMostParts)
    throw UserError("it gives " + std::to_string(parts) + " parts, the file has " +
                    std::to_string(count));
}

// A draw of given sizes has those.
void expect_drawn_sizes(const Call& call, const std::vector<Type>& types) {
  const auto& arguments = call.schema().arguments;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == "size" && !call[i].is_none() &&
        to_ints(call[i].data()) != types.at(0).sizes)
      throw UserError("it draws other sizes than the file says, " + print(types[0]));
}

}  // namespace

std::vector<std::string> result_names(const Json& node) {
  std::vector<std::string> names;
  for (const Json& output : list_of(field(node, "outputs"))) {
    const auto [kind, content] = only_field(output);
    if (kind == "as_tensor") {
      names.push_back(text_of(field(*content, "name")));
    } else if (kind == "as_none") {
      names.emplace_back();
    } else if (kind == "as_tensors") {
      for (const Json& one : list_of(*content)) names.push_back(text_of(field(one, "name")));
    } else if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float") {
      names.push_back(text_of(field(*content, "as_name")));
    } else {
      throw UserError("a result of kind '" + std::string(kind.substr(0, 40)) + "'");
    }
  }
  return names;
}

GraphReader::GraphReader(Program& program, const Json& graph) : program_(program), graph_(graph) {
  note_uses();
}

// ---- values -------------------------------------------------------------------------------------

void GraphReader::note_uses() {
  size_t number = 0;
  for (const Json& node : list_of(field(graph_, "nodes"))) {
    for (const std::string& name : names_in(node)) last_uses_[name] = number;
    ++number;
  }
  std::vector<std::string> results;
  collect_names(field(graph_, "outputs"), results);
  for (const std::string& name : results) last_uses_[name] = number;
}

void GraphReader::add_input(const std::string& name, ArgumentValue value, Written written) {
  if (!values_.emplace(name, std::move(value)).second)
    throw UserError("the input '" + name + "' is there twice");
  inputs_[name] = written;
  aliases_.add_fresh(name);
}

void GraphReader::tie_input(const std::string& name, const std::string& to, bool same) {
  if (same)
    aliases_.add_same(name, to);
  else
    aliases_.add_view(name, to);
}

const ArgumentValue& GraphReader::named(const std::string& name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  if (left_out_.contains(name)) throw LeftOut();
  throw UserError("there is no value '" + name + "'");
}

Type GraphReader::type_of(const std::string& name) const {
  return program_.sizes.type(field(field(graph_, "tensor_values"), name.c_str()));
}

ArgumentValue GraphReader::value_of(const Json& argument) const {
  return argument_value(
      argument, [this](const std::string& name) -> const ArgumentValue& { return named(name); });
}

std::optional<LazyTensor> GraphReader::tensor(const std::string& name) const {
  try {
    const ArgumentValue& value = named(name);
    if (value.is_tensor()) return value.tensor();
  } catch (const LeftOut&) {
    return std::nullopt;
  }
  throw UserError("'" + name + "' is no tensor");
}

ArgumentValue GraphReader::operand(const Json& node, size_t index) const {
  const Json& inputs = list_of(field(node, "inputs"));
  if (index >= inputs.size()) throw UserError("it has too few arguments");
  return value_of(field(inputs[index], "arg"));
}

LazyTensors GraphReader::operands(const Json& node, size_t index) const {
  const ArgumentValue value = operand(node, index);
  if (value.is_list()) return value.tensors();
  const List* list = value.is_tensor() ? nullptr : value.data().get_if<List>();
  if (list == nullptr || !list->items.empty())
    throw UserError("expected tensors as argument " + std::to_string(index));
  return {};
}

// ---- nodes --------------------------------------------------------------------------------------

void GraphReader::read() {
  for (const Json& node : list_of(field(graph_, "nodes"))) {
    const Json* metadata = find_field(node, "metadata");
    origin_ = metadata == nullptr ? NodeOrigin() : pt2_read::origin_of(*metadata);
    if (origin_.scope.empty()) origin_.scope = around_.scope;
    if (origin_.source.empty()) origin_.source = around_.source;
    try {
      read_node(node);
    } catch (const UserError& error) {
      refuse(node, error.what());
    } catch (const LeftOut&) {
      for (const std::string& name : result_names(node)) left_out_.insert(name);
    } catch (const std::bad_variant_access&) {
      refuse(node, "an argument is of another kind than it takes");
    }
    ++now_;
  }
}

void GraphReader::refuse(const Json& node, const std::string& why) {
  program_.refusals.add(std::string(target_of(node)), {origin_.scope, origin_.source}, why);
  for (const std::string& name : result_names(node)) left_out_.insert(name);
}

void GraphReader::read_node(const Json& node) {
  if (read_number(node) || read_assertion(node) || read_control_flow(node)) return;
  const Symbol op = operator_of(target_of(node));
  if (read_special(node, op) || read_in_place(node, op) || read_composite(node, op)) return;
  read_call(node, op);
}

bool GraphReader::read_number(const Json& node) {
  const std::string_view target = target_of(node);
  Attribute value;
  if (target == "torch.ops.aten.sym_size.int" || target == "torch.ops.aten.sym_stride.int") {
    const Type& type = operand(node, 0).tensor().type();
    const ArgumentValue dim = operand(node, 1);
    const int64_t axis = wrap_axis(dim.data().as_int(), static_cast<int64_t>(type.rank()));
    if (type.rank() == 0) throw UserError("it asks a tensor without axes for a size");
    const bool size = target == "torch.ops.aten.sym_size.int";
    value = (size ? type.sizes : type.strides)[static_cast<size_t>(axis)];
  } else if (target == "torch.ops.aten.sym_numel.default") {
    value = operand(node, 0).tensor().numel();
  } else {
    std::vector<Attribute> given;
    if (!is_number_target(target)) return false;
    for (size_t i = 0; i < list_of(field(node, "inputs")).size(); ++i)
      given.push_back(operand(node, i).data());
    const std::optional<Attribute> result = number_call(target, given);
    if (!result) return false;
    value = *result;
  }
  const Names names = result_names(node);
  if (names.size() != 1) throw UserError("it gives one number");
  values_.insert_or_assign(names[0], ArgumentValue(value));
  return true;
}

// Assertions about types are checked here. Those about values stay.
bool GraphReader::read_assertion(const Json& node) {
  const std::string_view target = target_of(node);
  if (target.starts_with("torch.ops.aten.sym_constrain_range")) return true;
  if (target == "torch.ops.aten._assert_scalar.default") {
    const ArgumentValue holds = operand(node, 0);
    const bool* truth = holds.is_tensor() ? nullptr : holds.data().get_if<bool>();
    if (truth == nullptr) throw UserError("it asserts what is neither true nor false");
    if (!*truth) throw UserError("it does not hold for the sizes of the example");
    return true;
  }
  if (target != "torch.ops.aten._assert_tensor_metadata.default") return false;
  const std::vector<ArgumentValue> values =
      arguments(node, *known(Symbol("aten::_assert_tensor_metadata"))->schema);
  const Type& type = values.at(0).tensor().type();
  const auto differs = [&](size_t i, const auto& wanted) {
    return !values.at(i).is_none() && !(values[i].data() == Attribute(wanted));
  };
  if ((!values[1].is_none() && to_ints(values[1].data()) != type.sizes) || differs(3, type.dtype))
    throw UserError("it asserts another type than " + print(type));
  return true;
}

std::vector<ArgumentValue> GraphReader::arguments(const Json& node, const Schema& schema) const {
  return bound(schema, field(node, "inputs"),
               [this](const std::string& name) -> const ArgumentValue& { return named(name); });
}

std::optional<GraphReader::Known> GraphReader::known(Symbol op) { return known_operator(op); }

GraphReader::Results GraphReader::results_of(const Known& known, const Call& call,
                                             const Names& names) const {
  std::vector<std::optional<Type>> said;
  for (const std::string& name : names) {
    const bool is_said = !name.empty() && find_field(field(graph_, "tensor_values"), name.c_str());
    said.push_back(is_said ? std::optional(type_of(name)) : std::nullopt);
    if (is_said) expect_dense(*said.back(), call);
  }
  expect_as_many(call, names.size());
  Results results;
  if (known.row != nullptr && !known.draws(call)) {
    try {
      const std::vector<Type> inferred = infer(*known.row, call);
      if (inferred.size() != names.size())
        throw UserError("it gives " + std::to_string(inferred.size()) + " results, the file has " +
                        std::to_string(names.size()));
      for (size_t i = 0; i < names.size(); ++i)
        results.types.push_back(said[i] ? fitting(inferred[i], *said[i]) : inferred[i]);
      return results;
    } catch (const SizesDependOnValues&) {  // of which the file holds for those that it says
      results.sizes_follow_values = true;
    }
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!said[i]) throw UserError("the file does not say what its results are");
    results.types.push_back(*said[i]);
  }
  if (!names.empty()) expect_drawn_sizes(call, results.types);
  return results;
}

void GraphReader::expect_said(const std::string& name, const Type& type) const {
  if (!name.empty() && find_field(field(graph_, "tensor_values"), name.c_str()))
    fitting(type, type_of(name));
}

NodePtr GraphReader::make(const Call& call, std::vector<Type> types, bool effect) {
  const NodePtr plain = call.node(std::move(types));
  if (const auto fault = fault_of(*plain)) throw UserError(*fault);
  NodeSpec spec = copy_of(*plain, plain->operands());
  if (!origin_.scope.empty()) spec.annotate("scope", origin_.scope);
  if (!origin_.source.empty()) spec.annotate("source", origin_.source);
  if (grad_) spec.run("grad", *grad_);
  if (effect) spec.run("effect", static_cast<int64_t>(first_effect_ + effects_.size()));
  NodePtr node = std::move(spec).make_node();
  if (effect) effects_.push_back(node);
  return node;
}

// Results of an operation whose types follow from its row; of a draw, those of its first tensor.
LazyTensors GraphReader::make(std::string_view op, std::vector<ArgumentValue> values) {
  const std::optional<Known> operation = known(Symbol(op));
  COMPOSIT_ASSERT(operation, "an operation that is always there");
  const Call call(*operation->schema, std::move(values));
  std::vector<Type> types = operation->row != nullptr
                                ? infer(*operation->row, call)
                                : std::vector<Type>{call.tensors().at(0).type()};
  const NodePtr node = make(call, std::move(types), operation->has_effect);
  LazyTensors results;
  for (uint32_t i = 0; i < node->outputs().size(); ++i) results.push_back({node, i});
  return results;
}

void GraphReader::bind(const Names& names, const LazyTensors& results) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    if (!values_.emplace(names[i], ArgumentValue(results.at(i))).second)
      throw UserError("the value '" + names[i] + "' is there twice");
    aliases_.add_fresh(names[i]);
  }
}

void GraphReader::note_memory(const Schema& schema, const Json& node, const Names& names) {
  const Shares shares = shared_arguments(schema);
  if (shares == Shares::none) return;
  for (const std::string& operand : names_in(node)) {
    const auto found = values_.find(operand);
    if (found == values_.end() || !found->second.is_tensor()) continue;
    for (const std::string& name : names)
      if (!name.empty()) aliases_.join(name, operand);
    if (shares == Shares::first) return;
  }
}

void GraphReader::read_call(const Json& node, Symbol op) {
  const std::optional<Known> operation = known(op);
  if (!operation) throw UserError(reason_against(op));
  const Schema& schema = *operation->schema;
  const auto& arguments_of = schema.arguments;
  if (std::any_of(arguments_of.begin(), arguments_of.end(),
                  [](const SchemaArgument& argument) { return argument.written(); }))
    throw UserError("it writes to its arguments; " + std::string(kAdvice));
  const Call call(schema, arguments(node, schema));
  const Names names = result_names(node);
  Results said = results_of(*operation, call, names);
  const NodePtr made =
      make(call, std::move(said.types), operation->has_effect || said.sizes_follow_values);
  LazyTensors results;
  for (uint32_t i = 0; i < made->outputs().size(); ++i)
    results.push_back(is_defined(made->outputs()[i]) ? LazyTensor{made, i} : LazyTensor());
  bind(names, results);
  note_memory(schema, node, names);
}

}  // namespace composit::pt2_read
