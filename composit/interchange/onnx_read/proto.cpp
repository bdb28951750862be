#include "composit/interchange/onnx_read/proto.h"

#include "composit/interchange/onnx/fields.h"
#include "composit/interchange/onnx/wire_reader.h"
#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

namespace field = onnx::field;
using onnx::WireReader;

constexpr int kDeepest = 32;  // graphs in attributes of nodes of graphs

GraphProto read_graph(std::string_view bytes, int depth);

std::pair<std::string_view, std::string_view> read_entry(std::string_view bytes) {
  std::pair<std::string_view, std::string_view> entry;
  for (WireReader reader(bytes); reader.next();) {
    if (reader.field() == field::entry_key) entry.first = reader.text();
    if (reader.field() == field::entry_value) entry.second = reader.text();
  }
  return entry;
}

TensorProto read_tensor(std::string_view bytes) {
  TensorProto tensor;
  for (WireReader reader(bytes); reader.next();) {
    switch (reader.field()) {
      case field::dims:
        reader.append_to(tensor.dims);
        break;
      case field::data_type:
        tensor.data_type = reader.integer();
        break;
      case field::segment:
        tensor.is_segment = true;
        break;
      case field::float_data:
        reader.append_to(tensor.floats);
        break;
      case field::int32_data:
      case field::int64_data:
      case field::uint64_data:
        reader.append_to(tensor.integers);
        break;
      case field::tensor_name:
        tensor.name = reader.text();
        break;
      case field::raw_data:
        tensor.raw = reader.text();
        break;
      case field::double_data:
        reader.append_to(tensor.doubles);
        break;
      case field::tensor_doc:
        tensor.doc = reader.text();
        break;
      case field::external_data:
        tensor.external.push_back(read_entry(reader.text()));
        break;
      case field::data_location:
        tensor.is_external = reader.integer() == 1;
        break;
      default:
        break;
    }
  }
  return tensor;
}

// A kind that stands nowhere is that of the value.
void read_value(WireReader& reader, AttributeProto& attribute, int depth) {
  const auto is = [&](int64_t type) {
    if (attribute.type == 0) attribute.type = type;
  };
  switch (reader.field()) {
    case field::f:
      attribute.f = reader.real();
      return is(field::kFloat);
    case field::i:
      attribute.i = reader.integer();
      return is(field::kInt);
    case field::s:
      attribute.s = reader.text();
      return is(field::kString);
    case field::t:
      attribute.t = std::make_shared<TensorProto>(read_tensor(reader.text()));
      return is(field::kTensor);
    case field::g:
      attribute.g = std::make_shared<GraphProto>(read_graph(reader.text(), depth + 1));
      return;
    case field::floats:
      reader.append_to(attribute.floats);
      return is(field::kFloats);
    case field::ints:
      reader.append_to(attribute.ints);
      return is(field::kInts);
    case field::strings:
      attribute.strings.push_back(reader.text());
      return;
    default:
      return;
  }
}

AttributeProto read_attribute(std::string_view bytes, int depth) {
  AttributeProto attribute;
  for (WireReader reader(bytes); reader.next();) {
    if (reader.field() == field::name)
      attribute.name = reader.text();
    else if (reader.field() == field::type)
      attribute.type = reader.integer();
    else if (reader.field() == field::ref_attr_name)
      attribute.reference = reader.text();
    else
      read_value(reader, attribute, depth);
  }
  return attribute;
}

NodeProto read_node(std::string_view bytes, int depth) {
  NodeProto node;
  for (WireReader reader(bytes); reader.next();) {
    switch (reader.field()) {
      case field::node_input:
        node.inputs.push_back(reader.text());
        break;
      case field::node_output:
        node.outputs.push_back(reader.text());
        break;
      case field::node_name:
        node.name = reader.text();
        break;
      case field::op_type:
        node.op_type = reader.text();
        break;
      case field::node_attribute:
        node.attributes.push_back(read_attribute(reader.text(), depth));
        break;
      case field::doc_string:
        node.doc = reader.text();
        break;
      case field::node_domain:
        node.domain = domain_of(reader.text());
        break;
      case field::overload:
        node.overload = reader.text();
        break;
      case field::node_metadata:
        node.metadata.push_back(read_entry(reader.text()));
        break;
      default:
        break;
    }
  }
  return node;
}

DimensionProto read_dimension(std::string_view bytes) {
  DimensionProto dimension;
  for (WireReader reader(bytes); reader.next();) {
    if (reader.field() == field::dim_value) dimension.value = reader.integer();
    if (reader.field() == field::dim_param) dimension.parameter = reader.text();
  }
  return dimension;
}

std::vector<DimensionProto> read_shape(std::string_view bytes) {
  std::vector<DimensionProto> shape;
  for (WireReader reader(bytes); reader.next();)
    if (reader.field() == field::dimension) shape.push_back(read_dimension(reader.text()));
  return shape;
}

void read_tensor_type(std::string_view bytes, ValueInfoProto& info) {
  info.is_tensor = true;
  for (WireReader reader(bytes); reader.next();) {
    if (reader.field() == field::elem_type) info.data_type = reader.integer();
    if (reader.field() == field::shape) info.shape = read_shape(reader.text());
  }
}

ValueInfoProto read_value_info(std::string_view bytes) {
  ValueInfoProto info;
  for (WireReader reader(bytes); reader.next();) {
    if (reader.field() == field::value_name) info.name = reader.text();
    if (reader.field() != field::value_type) continue;
    for (WireReader type(reader.text()); type.next();)
      if (type.field() == field::tensor_type) read_tensor_type(type.text(), info);
  }
  return info;
}

GraphProto read_graph(std::string_view bytes, int depth) {
  if (depth > kDeepest) throw UserError("graphs within graphs, more than 32 levels deep");
  GraphProto graph;
  for (WireReader reader(bytes); reader.next();) {
    switch (reader.field()) {
      case field::node:
        graph.nodes.push_back(read_node(reader.text(), depth));
        break;
      case field::initializer:
        graph.initializers.push_back(read_tensor(reader.text()));
        break;
      case field::sparse_initializer:
        graph.has_sparse_initializers = true;
        break;
      case field::input:
        graph.inputs.push_back(read_value_info(reader.text()));
        break;
      case field::output:
        graph.outputs.push_back(read_value_info(reader.text()));
        break;
      default:
        break;
    }
  }
  return graph;
}

void read_import(std::string_view bytes, OpsetImports& imports) {
  std::string domain;
  int64_t version = 0;
  for (WireReader reader(bytes); reader.next();) {
    if (reader.field() == field::domain) domain = domain_of(reader.text());
    if (reader.field() == field::version) version = reader.integer();
  }
  imports[domain] = version;
}

FunctionProto read_function(std::string_view bytes) {
  FunctionProto function;
  for (WireReader reader(bytes); reader.next();) {
    switch (reader.field()) {
      case field::function_name:
        function.name = reader.text();
        break;
      case field::function_input:
        function.inputs.push_back(reader.text());
        break;
      case field::function_output:
        function.outputs.push_back(reader.text());
        break;
      case field::function_node:
        function.nodes.push_back(read_node(reader.text(), 0));
        break;
      case field::function_opset_import:
        read_import(reader.text(), function.imports);
        break;
      case field::function_domain:
        function.domain = domain_of(reader.text());
        break;
      case field::function_attribute_proto:
        function.defaults.push_back(read_attribute(reader.text(), 0));
        break;
      case field::function_overload:
        function.overload = reader.text();
        break;
      default:
        break;
    }
  }
  return function;
}

}  // namespace

std::string_view domain_of(std::string_view text) { return text == "ai.onnx" ? "" : text; }

ModelProto read_model(std::string_view bytes) {
  ModelProto model;
  for (WireReader reader(bytes); reader.next();) {
    switch (reader.field()) {
      case field::ir_version:
        model.ir_version = reader.integer();
        break;
      case field::producer_name:
        model.producer = reader.text();
        break;
      case field::graph:
        model.graph = read_graph(reader.text(), 0);
        break;
      case field::opset_import:
        read_import(reader.text(), model.imports);
        break;
      case field::functions:
        model.functions.push_back(read_function(reader.text()));
        break;
      default:
        break;
    }
  }
  return model;
}

bool is_model(std::string_view bytes) {
  bool has_graph = false, has_version = false;
  try {
    for (WireReader reader(bytes); reader.next();) {
      if (reader.field() == field::graph) has_graph = !reader.text().empty();
      if (reader.field() == field::ir_version) has_version = reader.integer() > 0;
    }
  } catch (const UserError&) {
    return false;
  }
  return has_graph && has_version;
}

}  // namespace composit::onnx_read
