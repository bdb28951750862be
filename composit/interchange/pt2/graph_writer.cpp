#include "composit/interchange/pt2/graph_writer.h"

#include <algorithm>

#include "composit/interchange/definition.h"
#include "composit/interchange/pt2/arguments.h"
#include "composit/interchange/pt2/spelling.h"
#include "composit/interchange/pt2/symbols.h"
#include "composit/ir/error.h"
#include "composit/ops/native.h"
#include "composit/ops/operations.h"

namespace composit::pt2 {
namespace {

// True if each operand that was recorded as a view of another one's memory is all of its own.
bool views_are_whole(const Node& node, const Attribute& views) {
  const auto is_whole = [&](const Attribute& view) {
    const std::vector<Attribute>& parts = view.as<List>().items;
    const int64_t position = parts.at(0).as_int();
    const Type& type = node.operands().at(static_cast<size_t>(position)).type();
    return position == parts.at(1).as_int() && parts.at(2) == Attribute(type.dtype) &&
           to_ints(parts.at(3)) == type.sizes && to_ints(parts.at(4)) == type.strides &&
           parts.at(5).as_int() == 0 && !type.conj && !type.neg;
  };
  const std::vector<Attribute>& all = views.as<List>().items;
  return std::all_of(all.begin(), all.end(), is_whole);
}

// True if what was recorded of its run changes nothing for one that follows the graph.
bool is_plain_run(const Node& node) {
  static constexpr std::string_view kPlain[] = {"via",    "grad",        "body",
                                                "effect", "custom_grad", "rewrites"};
  return std::all_of(node.execution().begin(), node.execution().end(), [&](const auto& entry) {
    return std::find(std::begin(kPlain), std::end(kPlain), entry.key()) != std::end(kPlain) ||
           (entry.key() == "views" && views_are_whole(node, entry.value));
  });
}

size_t count_tensor_arguments(const Schema& schema) {
  return std::count_if(schema.arguments.begin(), schema.arguments.end(),
                       [](const SchemaArgument& argument) { return argument.is_tensor(); });
}

// Why a node is not the call that its schema says; empty where it is.
std::string reason_against(const Node& node, const Schema& schema) {
  if (!is_plain_run(node)) return "it runs in a way that no call of the operator does";
  if (node.arguments().size() > count_tensor_arguments(schema))
    return "it uses values beyond its arguments";
  const auto& arguments = schema.arguments;
  if (std::any_of(arguments.begin(), arguments.end(),
                  [](const SchemaArgument& argument) { return argument.written(); }))
    return "it writes to its arguments";
  const auto& results = schema.results;
  if (std::any_of(results.begin(), results.end(),
                  [](const SchemaArgument& result) { return !result.is_tensor(); }))
    return "it gives a number";
  const bool lists = std::any_of(results.begin(), results.end(),
                                 [](const SchemaArgument& result) { return result.list; });
  if (lists && results.size() > 1) return "it gives several lists";
  if (!lists && results.size() != node.outputs().size()) return "it has further results";
  return "";
}

bool is_default(const SchemaArgument& argument, const ArgumentValue& value) {
  if (value.is_list()) return false;
  const std::optional<Attribute> otherwise = default_of(argument);
  if (!otherwise) return false;
  return value.is_none() ? otherwise->is_none() : !value.is_tensor() && value.data() == *otherwise;
}

// Operators that torch.ops takes a plain number for a tensor of, which counts in promotion as the
// number that the program wrote.
bool takes_numbers(Symbol op) {
  static constexpr std::string_view kOperators[] = {
      "add", "sub", "mul", "div", "subtract", "multiply", "divide", "true_divide", "floor_divide"};
  return std::find(std::begin(kOperators), std::end(kOperators), op.base_name()) !=
         std::end(kOperators);
}

// Why a node that is no operator of ATen's cannot be written.
std::string reason_without_name(const Node& node) {
  const std::string& op = node.op().str();
  if (op.find("generator_state") != std::string::npos)
    return "the program sets the state of a random generator, for which torch.export has no "
           "operator: seed it before the call";
  if (op.rfind("composit::storage", 0) == 0)
    return "it reads memory as another tensor than the one that was written there";
  return "ATen has no such operator, and its definition has no form in ATen's operators";
}

bool runs_without_gradients(const Node& node) {
  const Attribute* grad = node.find_run("grad");
  return grad != nullptr && !grad->as<bool>();
}

// The number itself.
Scalar::Value value_of_number(const LazyTensor& number) {
  const Array& array = number.node->attribute("value").as<Array>();
  switch (array.type().dtype) {
    case DType::bool_:
      return elements<int64_t>(array)[0] != 0;
    case DType::int64:
      return elements<int64_t>(array)[0];
    case DType::float64:
      return elements<double>(array)[0];
    default:
      return elements<std::complex<double>>(array)[0];
  }
}

bool has_floating(const LazyTensors& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const LazyTensor& one) {
    return one && !is_wrapped_number(one) && is_floating_point(one.dtype());
  });
}

// A number beside `others` as a tensor that promotes as the number does.
Array typed_number(const Array& number, const LazyTensors& others) {
  const DType own = number.type().dtype;
  DType wanted = own == DType::float64 ? DType::float32 : own;
  for (const LazyTensor& other : others) {
    if (!other || is_wrapped_number(other)) continue;
    const DType dtype = other.dtype();
    const bool floating = is_floating_point(dtype) || is_complex(dtype);
    if (floating || (own == DType::int64 && dtype != DType::bool_)) wanted = dtype;
    if (floating) break;
  }
  if (wanted == own || is_complex(own) || is_complex(wanted)) return number;
  return array_of(tensor_type(wanted, {}), elements<double>(number));
}

// The base name of a target: "add" of "torch.ops.aten.add.Tensor".
std::string hint_of(const std::string& target) {
  const size_t last = target.rfind('.');
  const size_t before = target.rfind('.', last - 1);
  const bool hop = target.find("higher_order") != std::string::npos;
  return hop ? target.substr(last + 1) : target.substr(before + 1, last - before - 1);
}

}  // namespace

// ---- values -------------------------------------------------------------------------------------

void GraphWriter::declare(const std::string& name, const Type& type, bool requires_grad) {
  tensors_[name] = tensor_meta(type, requires_grad);
}

void GraphWriter::add_input(const LazyTensor& input, const std::string& name, bool requires_grad) {
  declare(name, input.type(), requires_grad);
  if (const Symbols* symbols = program_.symbols(); symbols != nullptr)  // in a region: as declared
    tensors_[name] = symbols->tensor_meta(input.node.get(), input.index, requires_grad);
  frame_[{input.node.get(), input.index}] = {.name = name};
}

std::string GraphWriter::name_of(const Array& constant) {
  const std::string& input = program_.constant(constant);
  if (lifted_ == nullptr) return input;
  if (const auto known = local_.find(input); known != local_.end()) return known->second;
  const bool is_new = std::none_of(lifted_->begin(), lifted_->end(), [&](const Array& one) {
    return program_.constant(one) == input;
  });
  if (is_new) lifted_->push_back(constant);
  const std::string name = program_.value_name(input);
  declare(name, constant.type());
  return local_[input] = name;
}

const NodeFormulas* GraphWriter::formulas_of(const Node& node) const {
  const Symbols* symbols = program_.symbols();
  return symbols == nullptr ? nullptr : &symbols->family().formulas_of(node);
}

GraphWriter::Value GraphWriter::value_of(const LazyTensor& tensor, const Frame& frame) const {
  if (const auto found = frame.find({tensor.node.get(), tensor.index}); found != frame.end())
    return found->second;
  if (tensor.node->op() != ops::kConstant)
    throw UserError("it needs a value of '" + tensor.node->op().str() + "', which is not exported");
  return {.number = tensor};
}

std::string GraphWriter::tensor_name(const Value& value) {
  if (!value.number) return value.name;
  const Node& constant = *value.number.node;
  if (const NodeFormulas* formulas = formulas_of(constant); formulas && !formulas->empty())
    throw UserError("it uses a tensor that was made of a size");
  if (number_use(constant, "value") != nullptr)
    throw UserError("it uses a tensor that was made of a number that differs from call to call");
  return name_of(constant.attribute("value").as<Array>());
}

std::string GraphWriter::shown(const Value& value) {
  const std::string name = tensor_name(value);
  if (!value.no_grad) return name;
  if (const auto known = detached_.find(name); known != detached_.end()) return known->second;
  return detached_[name] = add_same("torch.ops.aten.detach.default", name, name + "_detached",
                                    nodes_.back()["metadata"]);
}

std::string GraphWriter::add_same(const std::string& target, const std::string& name,
                                  const std::string& new_name, Json metadata) {
  const std::string made = program_.value_name(new_name);
  tensors_[made] = Json(tensors_[name]);
  nodes_.push_back({{"target", target},
                    {"inputs", Json::array({positional("self", tensor_json(name))})},
                    {"outputs", Json::array({tensor_json(made)})},
                    {"metadata", std::move(metadata)}});
  return made;
}

Json GraphWriter::list_argument(const SchemaArgument& argument, const LazyTensors& tensors,
                                const Frame& frame, bool no_grad) {
  Json items = Json::array();
  for (const LazyTensor& tensor : tensors) {
    Json one = none_json();
    if (tensor) {
      const Value value = value_of(tensor, frame);
      one = tensor_json(no_grad ? tensor_name(value) : shown(value));
    }
    if (argument.optional_items)
      items.push_back(one);
    else
      items.push_back(one.begin().value());
  }
  return {{argument.optional_items ? "as_optional_tensors" : "as_tensors", items}};
}

Json GraphWriter::tensor_argument(const Schema& schema, const Call& call, const LazyTensor& tensor,
                                  const Frame& frame, bool no_grad, const Origin& origin) {
  const Value written = value_of(tensor, frame);
  if (!written.number) return tensor_json(no_grad ? tensor_name(written) : shown(written));
  const Node& constant = *written.number.node;
  if (const NumberFormula* formula = number_use(constant, "value")) {
    const Array& value = constant.attribute("value").as<Array>();
    const bool wrapped = is_wrapped_number(written.number);
    // Beside floating numbers a whole one counts as they do.
    const bool is_beside = wrapped && takes_numbers(schema.name) && has_floating(call.tensors());
    if (value.type().dtype != DType::float64 && !is_beside)
      throw UserError("it uses a whole number that differs from call to call");
    const Json number = number_argument(*formula, origin).argument;
    if (wrapped && takes_numbers(schema.name)) return number;
    const DType dtype = wrapped ? typed_number(value, call.tensors()).type().dtype : DType::float64;
    return tensor_json(rounded_tensor(number, dtype, origin));
  }
  if (!is_wrapped_number(written.number)) return tensor_json(tensor_name(written));
  const NodeFormulas* formulas = formulas_of(constant);
  if (formulas != nullptr && !formulas->empty()) {
    if (!takes_numbers(schema.name)) throw UserError("it uses a tensor that was made of a size");
    return integer_of(formulas->at(0).formula, frame, origin);
  }
  if (takes_numbers(schema.name)) return number_json(value_of_number(written.number));
  const Array& number = constant.attribute("value").as<Array>();
  return tensor_json(name_of(typed_number(number, call.tensors())));
}

// True where the argument is another one at other sizes, or from call to call.
bool GraphWriter::follows(const Node& node, const SchemaArgument& argument) const {
  if (program_.symbols() == nullptr) return false;
  const Family& family = program_.symbols()->family();
  for (const IntegerFormula& one : family.formulas_of(node))
    if (one.of == IntegerFormula::Of::attribute &&
        node.attributes().at(one.number).key() == argument.name)
      return true;
  return std::any_of(family.number_uses.begin(), family.number_uses.end(), [&](const auto& use) {
    return use.node.get() == &node && use.key == argument.name;
  });
}

Json GraphWriter::arguments(const Node& node, const Schema& schema, const Frame& frame,
                            const Origin& origin) {
  const Call call = call_of(node, schema);
  const bool no_grad = runs_without_gradients(node);
  const size_t count = schema.arguments.size();
  size_t end = count;  // of the positional arguments that have to be written
  // torch's reader asks for an argument that is called like a word of Python, of which ATen has
  // one.
  const auto is_left_out = [&](size_t i) {
    return is_default(schema.arguments[i], call[i]) && !follows(node, schema.arguments[i]) &&
           schema.arguments[i].name != "from";
  };
  while (end > 0 && (schema.arguments[end - 1].keyword_only || is_left_out(end - 1))) --end;
  Json inputs = Json::array();
  for (size_t i = 0; i < count; ++i) {
    const SchemaArgument& one = schema.arguments[i];
    if (i >= end && is_left_out(i)) continue;
    Json value = none_json();
    if (call[i].is_list())
      value = list_argument(one, call[i].tensors(), frame, no_grad);
    else if (!call[i].is_none() && call[i].is_tensor())
      value = tensor_argument(schema, call, call[i].tensor(), frame, no_grad, origin);
    else if (!call[i].is_none())
      value = argument_with_formulas(node, one, call[i].data(), frame, origin);
    inputs.push_back(one.keyword_only ? keyword(one.name, value) : positional(one.name, value));
  }
  return inputs;
}

// ---- nodes --------------------------------------------------------------------------------------

GraphWriter::Names GraphWriter::emit(const std::string& target, Json inputs,
                                     const std::vector<Type>& outputs, bool as_list,
                                     const Origin& origin) {
  Names names;
  Json results = Json::array(), list = Json::array();
  for (const Type& type : outputs) {
    if (!is_defined(type)) {
      names.emplace_back();
      results.push_back(none_json());
      continue;
    }
    names.push_back(program_.value_name(hint_of(target)));
    declare(names.back(), type);
    results.push_back(tensor_json(names.back()));
    list.push_back({{"name", names.back()}});
  }
  if (as_list) {
    results = Json::array();
    results.push_back({{"as_tensors", list}});
  }
  Json node = {{"target", target},
               {"inputs", std::move(inputs)},
               {"outputs", std::move(results)},
               {"metadata", metadata_.next(origin)}};
  if (target.find("higher_order") != std::string::npos) {
    node["name"] = program_.value_name(hint_of(target));  // apart from its results
    node["is_hop_single_tensor_return"] = false;
  }
  nodes_.push_back(std::move(node));
  return names;
}

void GraphWriter::bind(const Node& node, const Names& names, Frame& frame) const {
  for (uint32_t i = 0; i < names.size(); ++i)
    frame[{&node, i}] = {.name = names[i],
                         .no_grad = runs_without_gradients(node) && is_defined(node.outputs()[i]) &&
                                    is_floating_point(node.outputs()[i].dtype)};
}

// Autograd keeps running values for the way back, and they are written when the program ends.
void GraphWriter::keep_from_writes(Json& inputs, const Origin& origin) {
  for (Json& input : inputs) {
    if (input["name"].get<std::string>().rfind("running_", 0) != 0) continue;
    const std::string name = input["arg"]["as_tensor"]["name"];
    input["arg"] = tensor_json(
        add_same("torch.ops.aten.clone.default", name, name + "_before", metadata_.next(origin)));
  }
}

std::string GraphWriter::add_clone(const std::string& name, const Type& type) {
  const Json format = {{"as_memory_format", number_of(MemoryFormat::contiguous)}};
  return add("torch.ops.aten.clone.default",
             Json::array({positional("self", tensor_json(name)), keyword("memory_format", format)}),
             type);
}

bool GraphWriter::add_call(const Node& node, Frame& frame, const Origin& origin) {
  // An operation of a user that has a definition need not be known there.
  const bool is_aten = node.op().domain() == "aten";
  const Schema* own =
      is_aten || operation_of(node) == nullptr ? program_.schema_of(node.op()) : nullptr;
  if (own == nullptr) {
    reason_ = reason_without_name(node);
    return false;
  }
  const Schema* functional = functional_spelling(node);
  const Schema& schema = functional != nullptr ? *functional : *own;
  reason_ = reason_against(node, schema);
  if (!reason_.empty()) return false;
  Json inputs = arguments(node, schema, frame, origin);
  if (functional != nullptr) keep_from_writes(inputs, origin);
  const bool list = schema.results.size() == 1 && schema.results[0].list;
  const Names names = emit(target_of(schema.name), std::move(inputs), node.outputs(), list, origin);
  bind(node, names, frame);
  if (const Symbols* symbols = program_.symbols())
    for (uint32_t i = 0; i < names.size(); ++i)
      if (is_defined(node.outputs()[i]))
        tensors_[names[i]] = symbols->tensor_meta(&node, i, /*requires_grad=*/false);
  expect_sizes(node, names, origin);
  return true;
}

void GraphWriter::add_in_place(const Node& node, const Graph& graph, const Frame& frame,
                               Frame& inner, const Origin& origin) {
  size_t next = 0;
  for (const LazyTensor& operand : node.operands()) {
    if (!operand) continue;
    const LazyTensor& input = graph.inputs().at(next++);
    inner[{input.node.get(), input.index}] = value_of(operand, frame);
  }
  add(graph, inner, origin);
}

void GraphWriter::take_outputs(const Node& node, const LazyTensors& outputs, const Frame& inner,
                               Frame& frame) {
  for (uint32_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) frame[{&node, i}] = value_of(outputs[i], inner);
}

bool GraphWriter::open_body(const Node& node, Frame& frame, const Origin& origin) {
  const Attribute* body = node.find_run("body");
  if (body == nullptr) return false;
  const Graph& graph = *body->as<Region>();
  Frame inner;
  add_in_place(node, graph, frame, inner, origin);
  take_outputs(node, graph.outputs(), inner, frame);
  return true;
}

bool GraphWriter::open_definition(const Node& node, Frame& frame, const Origin& origin) {
  if (node.effect() >= 0) return false;
  if (program_.symbols() != nullptr) {
    reason_ += "; at one size its definition would do";
    return false;
  }
  const std::optional<Graph> parts = interchange::definition_of(node);
  if (!parts) return false;
  Frame inner;
  add_in_place(node, *parts, frame, inner, origin);
  take_outputs(node, parts->outputs(), inner, frame);
  return true;
}

void GraphWriter::add_node(const Node& node, Frame& frame, const Origin& origin) {
  if (is_input(node) || node.op() == ops::kConstant) return;
  const bool written = add_read(node, frame, origin) || add_guard(node, frame, origin) ||
                       add_control_flow(node, frame, origin) || add_call(node, frame, origin) ||
                       open_body(node, frame, origin) || open_definition(node, frame, origin);
  if (!written) throw UserError(reason_);
}

void GraphWriter::add(const Graph& graph, Frame& frame, const Origin& around) {
  for (const NodePtr& node : graph.nodes()) {
    const Origin origin = origin_of(*node, around);
    try {
      add_node(*node, frame, origin);
    } catch (const UserError& error) {
      program_.refusals().add(*node, origin, error.what());
      for (uint32_t i = 0; i < node->outputs().size(); ++i) frame[{node.get(), i}] = {};
    }
  }
}

Json GraphWriter::graph_json(Json inputs, Json outputs, bool single) const {
  return {{"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)},
          {"nodes", nodes_},
          {"tensor_values", tensors_},
          {"sym_int_values", integers_},
          {"sym_bool_values", bools_},
          {"sym_float_values", floats_},
          {"custom_obj_values", Json::object()},
          {"is_single_tensor_return", single}};
}

}  // namespace composit::pt2
