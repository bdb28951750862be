#include "frontends/torchscript/script.h"

#include <ATen/core/function_schema.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/GradMode.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/version.h>

#include <set>

#include "composit/eval/evaluate.h"
#include "composit/ops/elementwise.h"
#include "flashlight/structure.h"
#include "frontends/torchscript/arguments.h"
#include "frontends/torchscript/interpreter.h"
#include "tracer/convert.h"
#include "tracer/op_info.h"

namespace flashlight::torchscript {

using composit::LazyTensor;
using composit::LazyTensors;
using composit::UserError;

struct Script::State {
  Functions functions;
  std::optional<torch::jit::Module> module;
  ModuleNames names;
  Limits limits;

  torch::jit::Function& find(const std::string& name) const;
  // The parameters of the function, without `self`.
  std::vector<c10::Argument> parameters(const torch::jit::Function& function) const;
  // `given`: values of the graph that some tensors among the arguments stand for; the others become
  // inputs.
  struct Run {
    LazyTensors inputs, results;
    std::vector<composit::Mutation> mutations;
  };
  Run run(const std::string& name, const std::vector<IValue>& arguments,
          const StandIns& given) const;
  IValue run_plain(const std::string& name, const std::vector<IValue>& arguments,
                   bool writes) const;
};

namespace {

std::vector<std::string> names_in(const Functions& functions,
                                  const std::optional<torch::jit::Module>& module) {
  if (!module) return functions.names;
  std::vector<std::string> names;
  for (const auto& method : module->get_methods()) names.push_back(method.name());
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

// Tensors of a result, taken apart.
LazyTensors results_of(Interpreter& interpreter, const IValue& result) {
  LazyTensors results;
  for_each_leaf(result, "", [&](const IValue& leaf, const std::string&) {
    if (!leaf.isNone()) results.push_back(interpreter.tensor_of(leaf));
  });
  return results;
}

// The writes to tensors that existed before the call.
std::vector<composit::Mutation> mutations_of(flashlight::torchscript::State& state,
                                             const std::vector<at::Tensor>& inputs,
                                             const LazyTensors& before) {
  std::vector<composit::Mutation> mutations;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const LazyTensor now = state.value(inputs[i]);
    if (!(now == before[i])) mutations.push_back({before[i], now});
  }
  return mutations;
}

// `numbers`: whether these are tensors, as those of results are in the graph.
Structure structure_of(const IValue& value, bool numbers) {
  Structure structure;
  if (value.isTuple() || value.isList()) {
    structure.kind = value.isTuple() ? Structure::Kind::tuple : Structure::Kind::list;
    const auto items = value.isTuple() ? value.toTupleRef().elements().vec() : value.toList().vec();
    for (const IValue& item : items) structure.children.push_back(structure_of(item, numbers));
  } else if (!value.isTensor() && !(numbers && value.isScalar())) {
    structure.kind = value.isNone() ? Structure::Kind::absent : Structure::Kind::value;
    if (!value.isNone()) structure.text = c10::str(value);
  }
  return structure;
}

// Results by definition, for what LibTorch does not run: recursion.
IValue evaluated(const composit::Graph& graph, const std::vector<composit::Array>& inputs) {
  std::vector<IValue> results;
  std::vector<composit::Array> values = composit::evaluate(graph, inputs);
  values.resize(graph.outputs().size());
  for (const composit::Array& value : values) results.emplace_back(tracer::to_tensor(value));
  return c10::ivalue::Tuple::create(std::move(results));
}

std::vector<composit::Array> arrays_of(const std::vector<IValue>& values, bool numbers) {
  std::vector<composit::Array> arrays;
  const auto add = [&](const at::Tensor& tensor) {
    arrays.push_back(tracer::to_array(tensor.detach()).contiguous());
  };
  for (const IValue& value : values)
    for_each_leaf(value, "", [&](const IValue& leaf, const std::string&) {
      if (leaf.isTensor())
        add(leaf.toTensor());
      else if (numbers && leaf.isScalar())
        add(at::scalar_tensor(leaf.toScalar(), leaf.isDouble() ? at::kDouble
                                               : leaf.isInt()  ? at::kLong
                                                               : at::kBool));
    });
  return arrays;
}

void add_schemas(const composit::Graph& graph, std::set<std::string>& schemas) {
  for (const composit::NodePtr& node : graph.nodes()) {
    if (const tracer::OpInfo* info = tracer::find_op(node->op().str()))
      schemas.insert(c10::str(*info->schema));
    composit::for_each_region(
        *node, [&](const composit::Region& region) { add_schemas(*region, schemas); });
  }
}

}  // namespace

torch::jit::Function& Script::State::find(const std::string& name) const {
  if (module) {
    if (const auto method = module->find_method(name)) return method->function();
  } else if (torch::jit::Function* function = functions.find(name)) {
    return *function;
  }
  throw UserError("[torchscript] there is no function '" + name + "'; there is " +
                  joined(names_in(functions, module)));
}

std::vector<c10::Argument> Script::State::parameters(const torch::jit::Function& function) const {
  std::vector<c10::Argument> all = function.getSchema().arguments();
  if (module) all.erase(all.begin());
  return all;
}

Script::State::Run Script::State::run(const std::string& name, const std::vector<IValue>& arguments,
                                      const StandIns& given) const {
  torch::jit::Function& function = find(name);
  const std::vector<c10::Argument> parameters = this->parameters(function);
  Interpreter interpreter(functions, names, limits, floats_of(parameters, arguments));
  Bound bound;
  bound.given = given;
  if (module) bound.arguments.push_back(module->_ivalue());
  for (size_t i = 0; i < parameters.size(); ++i)
    bound.arguments.push_back(bind_argument(arguments[i], parameters[i].type(),
                                            parameters[i].name(), interpreter.state(), bound));
  // Modules of torch ask for this, and take operators without derivative where it is off.
  const c10::AutoGradMode grad(true);
  const IValue result = with_subset([&] { return interpreter.call(function, bound.arguments); });
  for (const auto& [tensor, value] : interpreter.parameters()) {
    bound.tensors.push_back(tensor);
    bound.values.push_back(value);
  }
  return {bound.values, results_of(interpreter, result),
          mutations_of(interpreter.state(), bound.tensors, bound.values)};
}

// By LibTorch's own interpreter; a module that it `writes` stays as it is.
IValue Script::State::run_plain(const std::string& name, const std::vector<IValue>& arguments,
                                bool writes) const {
  torch::jit::Function& function = find(name);
  const std::vector<c10::Argument> parameters = this->parameters(function);
  std::vector<IValue> plain;
  if (module) plain.push_back((writes ? module->deepcopy() : *module)._ivalue());
  for (size_t i = 0; i < parameters.size(); ++i)
    plain.push_back(plain_argument(arguments[i], parameters[i].type()));
  const c10::AutoGradMode no_grad(false);
  try {
    return function(std::move(plain));
  } catch (const std::exception& error) {
    throw UserError("[torchscript] '" + name + "' in LibTorch: " + message_of(error));
  }
}

std::vector<std::string> Script::functions() const {
  return names_in(state_->functions, state_->module);
}

composit::Graph Script::graph(const std::string& name, const std::vector<IValue>& given) const {
  const auto parameters = state_->parameters(state_->find(name));
  State::Run run = state_->run(name, with_defaults(name, parameters, given), {});
  return composit::Graph({.inputs = {run.inputs.begin(), run.inputs.end()},
                          .outputs = {run.results.begin(), run.results.end()},
                          .mutations = std::move(run.mutations)});
}

composit::TensorFunction Script::function(const std::string& name,
                                          const std::map<std::string, IValue>& known) const {
  const std::vector<c10::Argument> parameters = state_->parameters(state_->find(name));
  expect_parameters(name, parameters, known);
  return [state = state_, name, known, parameters](const LazyTensors& tensors) {
    TensorsInOrder order(name, tensors);
    std::vector<IValue> arguments;
    for (const c10::Argument& parameter : parameters) {
      const auto found = known.find(parameter.name());
      arguments.push_back(found != known.end() ? found->second : order.argument(parameter));
    }
    order.expect_end();
    const State::Run run = state->run(name, arguments, order.stand_ins());
    if (!run.mutations.empty())
      throw UserError(
          "[torchscript] '" + name +
          "' writes an argument or a buffer, which its graph can say, and a function of "
          "tensors cannot");
    return run.results;
  };
}

composit::ScalarProgram Script::scalar(const std::string& name) const {
  const auto parameters = state_->parameters(state_->find(name));
  for (const c10::Argument& parameter : parameters)
    if (parameter.type()->kind() != c10::TypeKind::FloatType)
      throw UserError("[torchscript] '" + name +
                      "': expected parameters that are floats, received " + parameter.name() +
                      ": " + parameter.type()->annotation_str());
  const auto program = composit::scalar_program(function(name), parameters.size());
  if (!program)
    throw UserError("[torchscript] '" + name +
                    "': expected arithmetic and branches, received a function with a loop that is "
                    "not unrolled, or with tensors");
  return *program;
}

composit::SavedCapture Script::capture(const std::string& name,
                                       const std::vector<IValue>& arguments) const {
  composit::SavedCapture saved;
  saved.properties["trust"] = "made from its source";
  saved.graph = graph(name, arguments);
  for (const composit::LazyTensor& input : saved.graph.inputs())
    if (composit::input_kind(*input.node) != composit::InputKind::user_input)
      saved.weights.emplace(composit::input_name(*input.node), input.node->held());
  saved.producer = std::string("torch ") + TORCH_VERSION;
  std::set<std::string> schemas;
  add_schemas(saved.graph, schemas);
  saved.schemas.assign(schemas.begin(), schemas.end());
  const auto parameters = state_->parameters(state_->find(name));
  const std::vector<IValue> all = with_defaults(name, parameters, arguments);
  saved.example_inputs = arrays_of(all, /*numbers=*/false);
  Structure structure{Structure::Kind::tuple, {}, {}, {}};
  for (const IValue& argument : all) structure.children.push_back(structure_of(argument, false));
  saved.properties["arguments"] = str(structure);
  const bool writes = !saved.graph.mutations().empty();
  const IValue result = state_->functions.recursive.empty()
                            ? state_->run_plain(name, all, writes)
                            : IValue(evaluated(saved.graph, saved.example_inputs));
  saved.example_outputs = arrays_of({result}, /*numbers=*/true);
  saved.properties["results"] = str(structure_of(result, true));
  saved.properties["grad"] = "false";
  return saved;
}

Script compile(const std::string& text, const std::string& file, const Limits& limits) {
  return Script(std::make_shared<const Script::State>(
      Script::State{functions_of(text, file), std::nullopt, {}, limits}));
}

Script load(const std::filesystem::path& file, const Limits& limits) {
  auto state = std::make_shared<Script::State>();
  state->limits = limits;
  try {
    state->module = torch::jit::load(file.string(), c10::kCPU);
  } catch (const std::exception& error) {
    throw UserError("[torchscript] " + file.string() + ": " + message_of(error));
  }
  for (const auto& item : state->module->named_buffers())
    state->names.tensors[item.value.unsafeGetTensorImpl()] = {item.name,
                                                              composit::InputKind::buffer};
  for (const auto& item : state->module->named_parameters())
    state->names.tensors[item.value.unsafeGetTensorImpl()] = {item.name,
                                                              composit::InputKind::parameter};
  for (const auto& item : state->module->named_modules())
    state->names.modules[item.value._ivalue().get()] = item.name;
  return Script(std::move(state));
}

at::Tensor like(const composit::Type& type) {
  return at::empty(type.sizes, at::TensorOptions(tracer::to_c10(type.dtype)).device(at::kMeta));
}

}  // namespace flashlight::torchscript
