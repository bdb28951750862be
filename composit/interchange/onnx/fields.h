// Numbers of the fields of onnx.proto's messages, for what writes them and what reads them.
//
//   message.text(field::op_type, "Conv");
//
// Protocol Buffers' rules freeze them: a field keeps its number as long as there is ONNX.
#pragma once

#include <string_view>

namespace composit::onnx {

// The domain of onnxruntime's own operators.
inline constexpr std::string_view kMicrosoft = "com.microsoft";

}  // namespace composit::onnx

namespace composit::onnx::field {

enum Model {
  ir_version = 1,
  producer_name = 2,
  graph = 7,
  opset_import = 8,
  metadata_props = 14,
  functions = 25
};
enum OperatorSet { domain = 1, version = 2 };
enum Entry { entry_key = 1, entry_value = 2 };  // StringStringEntryProto
enum Graph {
  node = 1,
  graph_name = 2,
  initializer = 5,
  input = 11,
  output = 12,
  value_info = 13,
  sparse_initializer = 15
};
enum Node {
  node_input = 1,
  node_output = 2,
  node_name = 3,
  op_type = 4,
  node_attribute = 5,
  doc_string = 6,
  node_domain = 7,
  overload = 8,
  node_metadata = 9
};
enum Attribute {
  name = 1,
  f = 2,
  i = 3,
  s = 4,
  t = 5,
  g = 6,
  floats = 7,
  ints = 8,
  strings = 9,
  type = 20,
  ref_attr_name = 21
};
// AttributeProto.AttributeType
enum AttributeType { kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kFloats = 6, kInts = 7 };
enum Tensor {
  dims = 1,
  data_type = 2,
  segment = 3,
  float_data = 4,
  int32_data = 5,
  int64_data = 7,
  tensor_name = 8,
  raw_data = 9,
  double_data = 10,
  uint64_data = 11,
  tensor_doc = 12,
  external_data = 13,
  data_location = 14
};
enum ValueInfo { value_name = 1, value_type = 2 };
enum TypeOfValue { tensor_type = 1 };             // TypeProto
enum TensorType { elem_type = 1, shape = 2 };     // TypeProto.Tensor
enum Shape { dimension = 1 };                     // TensorShapeProto
enum Dimension { dim_value = 1, dim_param = 2 };  // TensorShapeProto.Dimension
enum Function {
  function_name = 1,
  function_input = 4,
  function_output = 5,
  function_attribute = 6,
  function_node = 7,
  function_opset_import = 9,
  function_domain = 10,
  function_attribute_proto = 11,
  function_overload = 13
};

// What our writer says of an initializer that is a number of the program, in its doc string; of
// others it says their kind (composit::name of an InputKind).
inline constexpr char kConstantRole[] = "constant";

}  // namespace composit::onnx::field
