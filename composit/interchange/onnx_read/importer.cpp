#include "composit/interchange/onnx_read/importer.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "composit/interchange/onnx/fields.h"
#include "composit/interchange/onnx_read/control_flow.h"
#include "composit/interchange/onnx_read/inputs.h"
#include "composit/interchange/onnx_read/known.h"
#include "composit/interchange/onnx_read/operator_call.h"
#include "composit/interchange/onnx_read/rows.h"
#include "composit/interchange/refusals.h"
#include "composit/ir/annotation_scope.h"
#include "composit/ir/error.h"
#include "composit/ops/native.h"

namespace composit::onnx_read {
namespace {

constexpr int kDeepestScope = 32;         // graphs and functions within each other
constexpr size_t kMostNodes = 1'000'000;  // nodes, those of functions as often as they are called

using AttributesByName = std::map<std::string_view, const AttributeProto*>;

// Names of values within a graph or a function.
struct Scope {
  const Scope* outer = nullptr;  // of the graph around it; none around a function
  int depth = 0;
  const OpsetImports* imports = nullptr;
  const AttributesByName* attributes = nullptr;  // what the function around was called with
  std::map<std::string_view, const TensorProto*> initializers = {};
  std::map<std::string_view, LazyTensor> values = {};
};

std::string in_quotes(std::string_view name) { return "'" + std::string(name) + "'"; }

// "Conv", "com.microsoft::Gelu"
std::string op_of(const NodeProto& node) {
  const std::string op(node.op_type);
  return node.domain.empty() ? op : std::string(node.domain) + "::" + op;
}

std::string title_of(const NodeProto& node) {
  return op_of(node) + (node.name.empty() ? "" : " " + in_quotes(node.name));
}

// A node that carries the remarks that nodes made of `node` get: the module and the line where our
// writer wrote them, else the module that torch's exporters put into the name.
NodePtr remarks_of(const NodeProto& node, bool is_ours) {
  std::string scope;
  std::string_view name = node.name;
  for (const auto& [key, value] : node.metadata)
    if (is_ours && key == "namespace") scope = value;
  if (!is_ours && name.starts_with('/'))
    scope = name.substr(1, std::max<size_t>(name.rfind('/'), 1) - 1);
  std::replace(scope.begin(), scope.end(), '/', '.');
  NodeSpec spec(ops::kInput);
  spec.output(tensor_type(DType::float32, {}));
  if (!scope.empty()) spec.annotate("scope", scope);
  if (is_ours && !node.doc.empty()) spec.annotate("source", std::string(node.doc));
  return std::move(spec).make_node();
}

class Importer {
 public:
  Importer(const ModelProto& model, TensorReader& tensors,
           const std::map<std::string, int64_t>& sizes, bool folds)
      : model_(model), tensors_(tensors), sizes_(sizes), known_(folds) {
    for (const FunctionProto& function : model.functions)
      functions_[{function.domain, function.name, function.overload}] = &function;
  }

  Imported run() {
    if (!model_.graph) throw UserError("there is no graph in it");
    const GraphProto& graph = *model_.graph;
    std::set<const FunctionProto*> seen;
    list_unknown(graph.nodes, 0, seen);
    refusals_.expect_none();

    Scope scope{.imports = &model_.imports};
    add_initializers(graph, scope);
    LazyTensors inputs = user_inputs(graph, scope);
    convert(graph.nodes, scope);
    Imported imported;
    Graph::Parts parts{.outputs = outputs_of(graph, scope)};
    for (const ValueInfoProto& output : graph.outputs) imported.outputs.emplace_back(output.name);
    const Graph all{Graph::Parts{.outputs = parts.outputs}};
    for (const NodePtr& node : all.nodes())
      if (is_input(*node) && node->held().defined()) {
        inputs.push_back({node, 0});
        imported.weights.emplace(input_name(*node), node->held());
      }
    parts.inputs = std::move(inputs);
    imported.graph = Graph(std::move(parts));
    return imported;
  }

 private:
  // ---- what is not known ------------------------------------------------------------------------

  const FunctionProto* function_of(const NodeProto& node) const {
    const auto found = functions_.find({node.domain, node.op_type, node.overload});
    return found == functions_.end() ? nullptr : found->second;
  }

  void list_unknown(const std::vector<NodeProto>& nodes, int depth,
                    std::set<const FunctionProto*>& seen) {
    if (depth > kDeepestScope) throw UserError("graphs and functions more than 32 levels deep");
    for (const NodeProto& node : nodes) {
      for (const AttributeProto& attribute : node.attributes)
        if (attribute.g != nullptr) list_unknown(attribute.g->nodes, depth + 1, seen);
      if (const FunctionProto* function = function_of(node)) {
        if (seen.insert(function).second) list_unknown(function->nodes, depth + 1, seen);
      } else if (find_row(node.domain, node.op_type) == nullptr && !is_control_flow(node)) {
        refusals_.add(title_of(node), {}, "composit reads no such operator");
      }
    }
  }

  // ---- inputs and weights -----------------------------------------------------------------------

  void add_initializers(const GraphProto& graph, Scope& scope) const {
    if (graph.has_sparse_initializers) throw UserError("sparse initializers are not read");
    for (const TensorProto& tensor : graph.initializers)
      if (!scope.initializers.emplace(tensor.name, &tensor).second)
        throw UserError("there are two initializers " + in_quotes(tensor.name));
  }

  // Inputs that have initializers are weights, as old models list them.
  LazyTensors user_inputs(const GraphProto& graph, Scope& scope) {
    LazyTensors inputs;
    for (const ValueInfoProto& info : graph.inputs) {
      if (scope.initializers.contains(info.name)) continue;
      const Type type = sizes_.type_of(info);
      if (const auto value = sizes_.value_of(info, type)) {
        define(scope, info.name, constant(array_of(type, std::vector<int64_t>{*value})));
        continue;
      }
      inputs.push_back(input(std::string(info.name), type));
      define(scope, info.name, inputs.back());
    }
    sizes_.expect_all_given();
    return inputs;
  }

  LazyTensor weight_of(const TensorProto& tensor) { return weight_of(tensor, tensor.name); }

  // Weights of one name, of graphs in branches, get names of their own.
  LazyTensor weight_of(const TensorProto& tensor, std::string_view called) {
    const auto made = weights_.find(&tensor);
    if (made != weights_.end()) return made->second;
    const Array value = tensors_.read(tensor);
    if (is_ours() && tensor.doc == onnx::field::kConstantRole)
      return weights_[&tensor] = constant(value);
    const bool is_buffer = is_ours() ? tensor.doc == composit::name(InputKind::buffer)
                                     : !is_floating_point(value.type().dtype);
    std::string name(called);
    for (int number = 1; !weight_names_.insert(name).second || is_user_input(name); ++number)
      name = std::string(called) + "_" + std::to_string(number);
    return weights_[&tensor] =
               held_input(name, value, is_buffer ? InputKind::buffer : InputKind::parameter);
  }

  // Some exporters, as Paddle's, have all weights in nodes `Constant`: matrices and kernels are
  // weights there as well, since derivatives are taken by them and quantizers look for them.
  // Other constants are numbers of the program, and what our writer marks as constants stays so.
  const TensorProto* weight_in(const NodeProto& node) const {
    const bool is_constant = node.op_type == "Constant" && node.domain.empty();
    if (!is_constant || is_ours() || node.outputs.size() != 1 || node.attributes.size() != 1)
      return nullptr;
    const AttributeProto& value = node.attributes[0];
    if (value.name != "value" || !value.reference.empty() || value.t == nullptr) return nullptr;
    const TensorProto& tensor = *value.t;
    const auto is_long = [](int64_t size) { return size > 1; };
    if (std::count_if(tensor.dims.begin(), tensor.dims.end(), is_long) < 2) return nullptr;
    return is_floating_point(type_of(tensor.data_type, {}).dtype) ? &tensor : nullptr;
  }

  bool is_user_input(std::string_view name) const {
    const std::vector<ValueInfoProto>& inputs = model_.graph->inputs;
    const bool is_input = std::any_of(inputs.begin(), inputs.end(),
                                      [&](const auto& one) { return one.name == name; });
    const auto& weights = model_.graph->initializers;
    return is_input && std::none_of(weights.begin(), weights.end(),
                                    [&](const auto& one) { return one.name == name; });
  }

  bool is_ours() const { return model_.producer == "flashlight"; }

  // ---- values -----------------------------------------------------------------------------------

  static void define(Scope& scope, std::string_view name, const LazyTensor& value) {
    if (!scope.values.emplace(name, value).second)
      throw UserError("two values are named " + in_quotes(name));
  }

  LazyTensor lookup(const Scope& inner, std::string_view name) {
    if (name.empty()) return {};
    for (const Scope* scope = &inner; scope != nullptr; scope = scope->outer) {
      if (const auto value = scope->values.find(name); value != scope->values.end())
        return value->second;
      if (const auto weight = scope->initializers.find(name); weight != scope->initializers.end())
        return weight_of(*weight->second);
    }
    throw UserError("there is no value " + in_quotes(name) + " before it");
  }

  LazyTensors outputs_of(const GraphProto& graph, const Scope& scope) {
    LazyTensors outputs;
    for (const ValueInfoProto& info : graph.outputs) {
      outputs.push_back(lookup(scope, info.name));
      if (!outputs.back()) throw UserError("an output of the graph has no name");
      if (info.is_tensor && info.data_type != 0) expect_declared(info, outputs.back().type());
    }
    return outputs;
  }

  // The file says what its outputs are: where the dtype is another one, it was not understood.
  // Sizes that are said are wrong in many models, and runtimes pass over them.
  static void expect_declared(const ValueInfoProto& info, const Type& type) {
    const DType declared = type_of(info.data_type, {}).dtype;
    if (declared != type.dtype)
      throw UserError("output " + in_quotes(info.name) + " comes to be " +
                      std::string(name(type.dtype)) + ", the model says " +
                      std::string(name(declared)));
  }

  // ---- nodes ------------------------------------------------------------------------------------

  void convert(const std::vector<NodeProto>& nodes, Scope& scope) {
    if (scope.depth > kDeepestScope)
      throw UserError("graphs and functions more than 32 levels deep");
    for (const NodeProto& node : nodes) {
      if (++converted_ > kMostNodes) throw UserError("there are more than a million nodes");
      try {
        convert(node, scope);
      } catch (const UserError& error) {
        throw UserError(title_of(node) + ": " + error.what());
      }
    }
  }

  void convert(const NodeProto& node, Scope& scope) {
    const NodePtr remarks = remarks_of(node, is_ours());
    const AnnotationScope annotated(*remarks);
    if (const TensorProto* weight = scope.attributes == nullptr ? weight_in(node) : nullptr) {
      define(scope, node.outputs[0], weight_of(*weight, node.outputs[0]));
      return;
    }
    LazyTensors operands;
    for (const std::string_view name : node.inputs) operands.push_back(lookup(scope, name));
    std::vector<const AttributeProto*> attributes;
    for (const AttributeProto& attribute : node.attributes)
      if (const AttributeProto* value = resolved(attribute, scope)) attributes.push_back(value);

    LazyTensors results;
    if (const FunctionProto* function = function_of(node)) {
      results = call_function(*function, operands, attributes, scope);
    } else {
      const OperatorCall call(node, operands, attributes, version_of(node, scope), known_,
                              tensors_);
      const Row* row = find_row(node.domain, node.op_type);
      results = row != nullptr ? row->rule(call) : control_flow_of(call, scope);
      call.expect_all_read();
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (i >= results.size() || !results[i])
        throw UserError("its result " + std::to_string(i) + " is not understood");
      expect_sizes(results[i].sizes());
      define(scope, node.outputs[i], known_.folded(results[i]));
    }
  }

  // What an attribute is: within a function, it may be one of the call. It then keeps its own name.
  const AttributeProto* resolved(const AttributeProto& attribute, const Scope& scope) {
    if (attribute.reference.empty()) return &attribute;
    if (scope.attributes == nullptr)
      throw UserError("attribute " + in_quotes(attribute.name) + " refers to no function");
    const auto found = scope.attributes->find(attribute.reference);
    if (found == scope.attributes->end()) return nullptr;
    AttributeProto renamed = *found->second;
    renamed.name = attribute.name;
    return &renamed_.emplace_back(std::make_unique<AttributeProto>(std::move(renamed))).operator*();
  }

  static int64_t version_of(const NodeProto& node, const Scope& scope) {
    const auto found = scope.imports->find(node.domain);
    if (found == scope.imports->end())
      throw UserError("the model says no version of the domain " + in_quotes(node.domain));
    if (node.domain.empty() && (found->second < kOldestOpset || found->second > kNewestOpset))
      throw UserError("ai.onnx " + std::to_string(found->second) + "; versions " +
                      std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset) +
                      " are read");
    return found->second;
  }

  LazyTensors call_function(const FunctionProto& function, const LazyTensors& operands,
                            const std::vector<const AttributeProto*>& given, const Scope& outer) {
    AttributesByName attributes;
    for (const AttributeProto& attribute : function.defaults)
      attributes[attribute.name] = &attribute;
    for (const AttributeProto* attribute : given) attributes[attribute->name] = attribute;
    Scope scope{.depth = outer.depth + 1, .imports = &function.imports, .attributes = &attributes};
    if (operands.size() > function.inputs.size())
      throw UserError("the function takes " + std::to_string(function.inputs.size()) +
                      " operands, received " + std::to_string(operands.size()));
    for (size_t i = 0; i < function.inputs.size(); ++i)
      define(scope, function.inputs[i], i < operands.size() ? operands[i] : LazyTensor());
    convert(function.nodes, scope);
    LazyTensors results;
    for (const std::string_view name : function.outputs) results.push_back(lookup(scope, name));
    return results;
  }

  // ---- branches and loops -----------------------------------------------------------------------

  LazyTensors control_flow_of(const OperatorCall& call, const Scope& outer) {
    make_weights(*model_.graph, 0);  // before functions are traced, to lie outside of them
    return control_flow(call, known_, [&](const GraphProto& graph, const LazyTensors& arguments) {
      return inlined(graph, arguments, outer);
    });
  }

  void make_weights(const GraphProto& graph, int depth) {
    if (depth > kDeepestScope || (depth == 0 && std::exchange(has_all_weights_, true))) return;
    for (const TensorProto& tensor : graph.initializers) weight_of(tensor);
    for (const NodeProto& node : graph.nodes) {
      if (const TensorProto* weight = weight_in(node)) weight_of(*weight, node.outputs[0]);
      for (const AttributeProto& attribute : node.attributes)
        if (attribute.g != nullptr) make_weights(*attribute.g, depth + 1);
    }
  }

  // The outputs of a graph inside of a node, of these arguments.
  LazyTensors inlined(const GraphProto& graph, const LazyTensors& arguments, const Scope& outer) {
    Scope scope{.outer = &outer,
                .depth = outer.depth + 1,
                .imports = outer.imports,
                .attributes = outer.attributes};
    if (graph.inputs.size() != arguments.size())
      throw UserError("a graph of it has other inputs than it is called with");
    for (size_t i = 0; i < arguments.size(); ++i) define(scope, graph.inputs[i].name, arguments[i]);
    add_initializers(graph, scope);
    convert(graph.nodes, scope);
    return outputs_of(graph, scope);
  }

  const ModelProto& model_;
  TensorReader& tensors_;
  Sizes sizes_;
  Known known_;
  interchange::Refusals refusals_{"these operators are not known:"};
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionProto*>
      functions_;
  std::map<const TensorProto*, LazyTensor> weights_;
  std::set<std::string, std::less<>> weight_names_;
  std::vector<std::unique_ptr<AttributeProto>> renamed_;
  size_t converted_ = 0;
  bool has_all_weights_ = false;
};

}  // namespace

Imported import_model(const ModelProto& model, TensorReader& tensors,
                      const std::map<std::string, int64_t>& sizes, bool folds) {
  return Importer(model, tensors, sizes, folds).run();
}

}  // namespace composit::onnx_read
