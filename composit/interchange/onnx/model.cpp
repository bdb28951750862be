#include "composit/interchange/onnx/model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "composit/interchange/onnx/block_products.h"
#include "composit/interchange/onnx/dtypes.h"
#include "composit/interchange/onnx/fields.h"
#include "composit/interchange/onnx/ops.h"
#include "composit/interchange/onnx/rows.h"
#include "composit/interchange/onnx/wire.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ir/scope.h"
#include "composit/op/promotion.h"

namespace composit::onnx {
namespace {

constexpr uint64_t kInline = 1024;   // bytes of the largest array inside of the model
constexpr uint64_t kPage = 4096;     // large arrays begin at pages, as the specification asks
constexpr uint64_t kAlignment = 64;  // others

Message pair(const std::string& key, const std::string& value) {
  Message entry;
  entry.text(field::entry_key, key);
  entry.text(field::entry_value, value);
  return entry;
}

// `sizes`: names of those that are no numbers; not given: none.
Message value_info(const std::string& name, const Type& type, const SizeNames* sizes = nullptr) {
  Message shape;
  for (size_t axis = 0; axis < type.rank(); ++axis) {
    Message dimension;
    if (sizes == nullptr || !sizes->at(axis))
      dimension.integer(field::dim_value, type.sizes[axis]);
    else if (!sizes->at(axis)->empty())
      dimension.text(field::dim_param, *sizes->at(axis));
    shape.message(field::dimension, dimension);
  }
  Message tensor;
  tensor.integer(field::elem_type, data_type_of(type.dtype));
  tensor.message(field::shape, shape);
  Message of_type;
  of_type.message(field::tensor_type, tensor);
  Message info;
  info.text(field::value_name, name);
  info.message(field::value_type, of_type);
  return info;
}

Message attribute_message(const NamedAttribute& attribute) {
  Message message;
  message.text(field::name, attribute.key());
  const composit::Attribute& value = attribute.value;
  if (const auto* integer = value.get_if<int64_t>()) {
    message.integer(field::i, *integer);
    message.integer(field::type, field::kInt);
  } else if (const auto* real = value.get_if<double>()) {
    message.real(field::f, static_cast<float>(*real));
    message.integer(field::type, field::kFloat);
  } else if (const auto* text = value.get_if<std::string>()) {
    message.text(field::s, *text);
    message.integer(field::type, field::kString);
  } else {
    for (const int64_t item : to_ints(value)) message.integer(field::ints, item);
    message.integer(field::type, field::kInts);
  }
  return message;
}

class ModelWriter {
 public:
  ModelWriter(const Lowered& lowered, const SavedCapture& capture, const ModelParts& parts,
              const OnnxOptions& options)
      : lowered_(lowered),
        family_(parts.family),
        capture_(capture),
        parts_(parts),
        options_(options),
        printed_(lowered.graph) {}

  Model run() {
    name_inputs();
    name_outputs();
    add_nodes(graph());
    add_outputs();
    graph_.text(field::graph_name, parts_.name);
    Message opset;
    opset.text(field::domain, "");
    opset.integer(field::version, options_.opset);
    Message model;
    model.integer(field::ir_version, options_.opset < 23 ? 10 : 11);
    model.text(field::producer_name, "flashlight");
    model.message(field::opset_import, opset);
    if (has_microsoft_) {
      Message extension;
      extension.text(field::domain, kMicrosoft);
      extension.integer(field::version, 1);
      model.message(field::opset_import, extension);
    }
    model.message(field::metadata_props, pair("captured with", capture_.producer));
    if (!lowered_.guards.empty() && !options_.drop_guards)
      model.message(field::metadata_props, pair("guards", nlohmann::json(lowered_.guards).dump()));
    if (const nlohmann::json names = complex_names(); !names.empty())
      model.message(field::metadata_props, pair("complex", names.dump()));
    model.message(field::graph, graph_);
    return {model.bytes(), std::move(data_)};
  }

 private:
  const Graph& graph() const { return lowered_.graph; }

  // ---- names ------------------------------------------------------------------------------------

  std::string new_name(const std::string& wanted) { return unused_name(wanted, taken_); }

  const std::string& name_of(const LazyTensor& value) {
    static const std::string absent;
    if (!value) return absent;
    std::string& name = names_[{value.node.get(), value.index}];
    if (!name.empty()) return name;
    const std::string printed = printed_.of(value).substr(1);
    const std::string op(value.node->op().str());
    name = new_name(printed == "?" ? op.substr(op.rfind(':') + 1) : printed);
    return name;
  }

  // ---- types ------------------------------------------------------------------------------------

  // What a family's sizes are worked out by has types that nobody wrote down.
  bool has_names(const LazyTensor& value) const {
    return family_ == nullptr || family_->names.contains({value.node.get(), value.index});
  }

  Message info_of(const std::string& name, const LazyTensor& value) const {
    if (family_ == nullptr || value.node->op() == ops::kConstant)
      return value_info(name, value.type());
    const auto found = family_->names.find({value.node.get(), value.index});
    if (found != family_->names.end()) return value_info(name, value.type(), &found->second);
    const SizeNames unknown(value.type().rank(), std::string());
    return value_info(name, value.type(), &unknown);
  }

  // ---- inputs and weights -----------------------------------------------------------------------

  void name_inputs() {
    for (const LazyTensor& input : graph().inputs())
      names_[{input.node.get(), 0}] = new_name(input_name(*input.node));
    for (const LazyTensor& input : graph().inputs()) {
      if (input_kind(*input.node) == InputKind::user_input) {
        graph_.message(field::input, info_of(name_of(input), input));
        continue;
      }
      const InputKind kind = input_kind(*input.node);
      const auto value = capture_.weights.find(input_name(*input.node));
      if (value == capture_.weights.end() || !value->second.defined())
        throw UserError("'" + input_name(*input.node) + "' has no value");
      if (!is_int4_alone(input))
        add_initializer(name_of(input), value->second, name(kind), value->second.type(),
                        input_name(*input.node));
    }
  }

  static bool is_int4(const Node& node) {
    return node.op().domain() == kDomain &&
           std::string_view(node.op().str()).substr(kDomain.size() + 2) == kInt4Initializer;
  }
  // All that reads these bytes takes them for integers of 4 bits.
  bool is_int4_alone(const LazyTensor& input) const {
    const std::vector<Use>& uses = graph().successors(*input.node);
    const auto is_output = [&](const LazyTensor& output) { return output == input; };
    return !uses.empty() && std::all_of(uses.begin(), uses.end(), [](const Use& use) {
      return is_int4(*use.node);
    }) && std::none_of(graph().outputs().begin(), graph().outputs().end(), is_output);
  }
  // The same bytes as integers of 4 bits.
  void add_int4_initializer(const NodePtr& node) {
    const LazyTensor& bytes = node->operands()[0];
    const Array& value = capture_.weights.at(input_name(*bytes.node));
    add_initializer(name_of({node, 0}), value, name(input_kind(*bytes.node)), node->outputs()[0],
                    input_name(*bytes.node));
  }

  // `role`: "parameter", "buffer" or "constant".
  void add_initializer(const std::string& name, const Array& value, std::string_view role) {
    add_initializer(name, value, role, value.type());
  }
  // `written`: the type that the bytes of `value` have in the model. `weight`: its name in the
  // capture, if it is one.
  void add_initializer(const std::string& name, const Array& value, std::string_view role,
                       const Type& written, const std::string& weight = "") {
    const Type& type = value.type();
    if (type.conj || type.neg || type.layout != Layout::strided)
      throw UserError("'" + name + "' is sparse or lazily conjugated, which ONNX has not");
    Message tensor;
    // A complex number lies in memory as its two parts.
    for (const int64_t size : written.sizes) tensor.integer(field::dims, size);
    if (is_complex(written.dtype)) tensor.integer(field::dims, 2);
    tensor.integer(field::data_type, data_type_of(real_dtype(written.dtype)));
    tensor.text(field::tensor_name, name);
    tensor.text(field::tensor_doc, role);
    const auto size = static_cast<uint64_t>(type.nbytes());
    if (size <= kInline) {
      const Array plain = value.contiguous();
      tensor.text(field::raw_data, {reinterpret_cast<const char*>(plain.data()), size});
    } else {
      const bool is_stored = parts_.stored != nullptr && !weight.empty();
      const uint64_t offset =
          is_stored ? parts_.stored->offset_of(weight, value) : offset_of(value, size);
      const std::string& file = is_stored ? parts_.stored->location() : parts_.data_file;
      tensor.message(field::external_data, pair("location", file));
      tensor.message(field::external_data, pair("offset", std::to_string(offset)));
      tensor.message(field::external_data, pair("length", std::to_string(size)));
      tensor.integer(field::data_location, 1);
    }
    graph_.message(field::initializer, tensor);
  }

  // What lies in the same memory is stored once.
  uint64_t offset_of(const Array& value, uint64_t size) {
    const auto key = std::make_pair(value.data(), print(value.type()));
    if (const auto known = offsets_.find(key); known != offsets_.end()) return known->second;
    const uint64_t alignment = size >= kPage ? kPage : kAlignment;
    const uint64_t offset = (end_ + alignment - 1) / alignment * alignment;
    data_.push_back({value, offset});
    end_ = offset + size;
    return offsets_[key] = offset;
  }

  // ---- nodes ------------------------------------------------------------------------------------

  void add_nodes(const Graph& graph) {
    for (const NodePtr& node : graph.nodes()) {
      // A region sees what is made around it.
      if (is_input(*node) || !written_.insert(node.get()).second) continue;
      if (!regions_.empty()) regions_.back().push_back(node.get());
      if (node->op() == ops::kConstant) {
        add_initializer(name_of({node, 0}), node->attribute("value").as<Array>(),
                        field::kConstantRole);
        continue;
      }
      if (is_int4(*node)) {
        add_int4_initializer(node);
        continue;
      }
      COMPOSIT_ASSERT(node->op().domain() == kDomain, "a node that is no operator of ONNX");
      add_node(*node, node);
    }
  }

  void add_node(const Node& node, const NodePtr& pointer) {
    Message message;
    LazyTensors operands;
    for (const Argument& argument : node.arguments()) {
      if (argument.kind == Argument::Kind::absent) operands.emplace_back();
      for (uint32_t i = 0; i < argument.size; ++i)
        operands.push_back(node.operands()[argument.begin + i]);
    }
    operands.resize(std::min(operands.size(), written_operands(node)));
    for (const LazyTensor& operand : operands) message.text(field::node_input, name_of(operand));
    for (uint32_t i = 0; i < node.outputs().size(); ++i) {
      const LazyTensor output{pointer, i};
      message.text(field::node_output, name_of(output));
      if (!outputs_.contains(name_of(output)) && has_names(output))
        graph_.message(field::value_info, info_of(name_of(output), output));
    }
    const std::string_view scope = node.annotation("scope"), source = node.annotation("source");
    std::string path(scope);
    std::replace(path.begin(), path.end(), '.', '/');
    message.text(field::node_name, new_node_name(path, node));
    const std::string op = node.op().str().substr(kDomain.size() + 2);
    message.text(field::op_type, op);
    if (op == kMatMulNBits) {
      message.text(field::node_domain, kMicrosoft);
      has_microsoft_ = true;
    }
    for (const NamedAttribute& attribute : node.attributes())
      if (const auto* region = attribute.value.get_if<Region>())
        message.message(field::node_attribute, region_message(node, attribute.key(), **region));
      else if (attribute.key() != "carried")
        message.message(field::node_attribute, attribute_message(attribute));
    if (!source.empty()) message.text(field::doc_string, source);
    if (!path.empty()) message.message(field::node_metadata, pair("namespace", path));
    graph_.message(field::node, message);
  }

  std::string new_node_name(const std::string& path, const Node& node) {
    const std::string op(node.op().str().substr(kDomain.size() + 2));
    return unused_name((path.empty() ? "" : path + "/") + op, node_names_);
  }

  // ---- regions ----------------------------------------------------------------------------------

  // Operands that regions read by their names are no operands of the node.
  static size_t written_operands(const Node& node) {
    if (node.op() == Symbol("onnx::If")) return 1;
    if (node.op() != Symbol("onnx::Loop")) return node.arguments().size();
    return 2 + static_cast<size_t>(node.attribute("carried").as_int());
  }

  // What a region's inputs are: of a loop, inputs of its graph first, then values around it.
  void name_region_inputs(const Node& node, const Graph& region, Message& inputs) {
    const bool is_loop = node.op() == Symbol("onnx::Loop");
    const size_t own = is_loop ? written_operands(node) : 0;
    const LazyTensors& operands = node.operands();
    const size_t missing = region.inputs().size() + (is_loop ? 0 : 1) - operands.size();
    for (size_t i = 0; i < region.inputs().size(); ++i) {
      const LazyTensor& input = region.inputs()[i];
      std::string& name = names_[{input.node.get(), 0}];
      if (i < own) {
        name = new_name("arg");
        inputs.message(field::input, info_of(name, input));
      } else {
        name = name_of(operands.at(is_loop ? i - missing : i + 1));
      }
    }
  }

  Message region_message(const Node& node, std::string_view key, const Graph& region) {
    constexpr int kGraph = 5;  // AttributeType
    Message around = std::exchange(graph_, {});
    name_region_inputs(node, region, graph_);
    regions_.emplace_back();
    add_nodes(region);
    for (const LazyTensor& output : region.outputs()) {
      const std::string name = new_name("result");
      Message identity;
      identity.text(field::node_input, name_of(output));
      identity.text(field::node_output, name);
      identity.text(field::node_name, unused_name("Identity", node_names_));
      identity.text(field::op_type, "Identity");
      graph_.message(field::node, identity);
      graph_.message(field::output, info_of(name, output));
    }
    graph_.text(field::graph_name, std::string(key));
    for (const Node* made : regions_.back()) {
      written_.erase(made);
      for (uint32_t i = 0; i < made->outputs().size(); ++i) names_.erase({made, i});
    }
    regions_.pop_back();
    for (const LazyTensor& input : region.inputs()) names_.erase({input.node.get(), 0});
    Message attribute;
    attribute.text(field::name, std::string(key));
    attribute.message(field::g, std::exchange(graph_, std::move(around)));
    attribute.integer(field::type, kGraph);
    return attribute;
  }

  // ---- outputs ----------------------------------------------------------------------------------

  // The outputs of the model by name: results, what is written, guards.
  std::vector<std::pair<std::string, LazyTensor>> model_outputs() const {
    std::vector<std::pair<std::string, LazyTensor>> all;
    const LazyTensors& outputs = graph().outputs();
    const size_t results = outputs.size() - lowered_.guards.size();
    for (size_t i = 0; i < results; ++i)
      if (outputs[i]) all.emplace_back("output_" + std::to_string(i), outputs[i]);
    for (const Mutation& mutation : graph().mutations())
      all.emplace_back(input_name(*mutation.target.node) + ".written", mutation.value);
    for (size_t i = results; i < outputs.size() && !options_.drop_guards; ++i)
      all.emplace_back("guard_" + std::to_string(i - results), outputs[i]);
    return all;
  }

  // Of inputs and outputs of the model whose last axis has the parts of complex numbers.
  nlohmann::json complex_names() const {
    nlohmann::json names = nlohmann::json::array();
    const auto note = [&](const std::string& name, const LazyTensor& value) {
      if (value && is_complex(value.dtype())) names.push_back(name);
    };
    const Graph& captured = capture_.graph;
    for (const LazyTensor& input : captured.inputs())
      if (input_kind(*input.node) == InputKind::user_input) note(input_name(*input.node), input);
    for (size_t i = 0; i < captured.outputs().size(); ++i)
      note("output_" + std::to_string(i), captured.outputs()[i]);
    for (const Mutation& mutation : captured.mutations())
      note(input_name(*mutation.target.node) + ".written", mutation.value);
    return names;
  }

  // A value that a node makes has the name of the output that it is.
  void name_outputs() {
    for (auto& [name, value] : model_outputs()) {
      const bool made = !is_input(*value.node) && value.node->op() != ops::kConstant;
      if (made && !names_.contains({value.node.get(), value.index}))
        outputs_.insert(names_[{value.node.get(), value.index}] = new_name(name));
    }
  }

  // What is given twice, or is an input, is copied.
  void add_outputs() {
    std::set<std::string> given;
    for (const auto& [wanted, value] : model_outputs()) {
      std::string name = name_of(value);
      const bool made = !is_input(*value.node) && value.node->op() != ops::kConstant;
      if (!made || !given.insert(name).second) {
        Message identity;
        identity.text(field::node_input, name);
        name = new_name(wanted);
        identity.text(field::node_output, name);
        identity.text(field::node_name, unused_name("Identity", node_names_));
        identity.text(field::op_type, "Identity");
        graph_.message(field::node, identity);
      }
      graph_.message(field::output, info_of(name, value));
    }
  }

  const Lowered& lowered_;
  const Unified* const family_;  // of which it is
  const SavedCapture& capture_;
  const ModelParts& parts_;
  const OnnxOptions& options_;
  const Names printed_;
  std::map<std::pair<const Node*, uint32_t>, std::string> names_;
  std::set<const Node*> written_;
  std::vector<std::vector<const Node*>> regions_;  // nodes of those that are being written
  std::set<std::string> taken_, node_names_, outputs_;
  Message graph_;
  std::vector<External> data_;
  std::map<std::pair<const std::byte*, std::string>, uint64_t> offsets_;
  bool has_microsoft_ = false;  // operators of its domain
  uint64_t end_ = 0;
};

}  // namespace

Model model_of(const Lowered& lowered, const SavedCapture& capture, const ModelParts& parts,
               const OnnxOptions& options) {
  return ModelWriter(lowered, capture, parts, options).run();
}

}  // namespace composit::onnx
