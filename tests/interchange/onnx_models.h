// ONNX models, byte by byte, for tests of what reads them.
//
//   const std::string bytes = model({node("Relu", {"x"}, {"y"})}, {"x"}, {"y"});
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "composit/interchange/onnx/dtypes.h"
#include "composit/interchange/onnx/fields.h"
#include "composit/interchange/onnx/wire.h"
#include "composit/ir/type.h"

namespace composit::onnx::test {

using Texts = std::vector<std::string>;

inline Message attribute(std::string_view name, int64_t value) {
  Message message;
  message.text(field::name, name);
  message.integer(field::i, value);
  message.integer(field::type, field::kInt);
  return message;
}
// A graph of a branch, or a loop.
inline Message attribute(std::string_view name, const Message& graph) {
  Message message;
  message.text(field::name, name);
  message.message(field::g, graph);
  message.integer(field::type, 5);
  return message;
}
inline Message tensor_attribute(std::string_view name, const Message& tensor) {
  Message message;
  message.text(field::name, name);
  message.message(field::t, tensor);
  message.integer(field::type, field::kTensor);
  return message;
}

inline Message node(std::string_view op, const Texts& inputs, const Texts& outputs,
                    const std::vector<Message>& attributes = {}, std::string_view domain = "") {
  Message message;
  for (const std::string& name : inputs) message.text(field::node_input, name);
  for (const std::string& name : outputs) message.text(field::node_output, name);
  message.text(field::op_type, op);
  if (!domain.empty()) message.text(field::node_domain, domain);
  for (const Message& one : attributes) message.message(field::node_attribute, one);
  return message;
}

// A size: a number, or a name.
struct Size {
  Size(int value) : value(value) {}                 // NOLINT
  Size(int64_t value) : value(value) {}             // NOLINT
  Size(const char* name) : value(0), name(name) {}  // NOLINT
  int64_t value;
  std::string name = {};
};

inline Message value_info(std::string_view name, DType dtype, const std::vector<Size>& sizes) {
  Message shape;
  for (const Size& size : sizes) {
    Message dimension;
    if (size.name.empty())
      dimension.integer(field::dim_value, size.value);
    else
      dimension.text(field::dim_param, size.name);
    shape.message(field::dimension, dimension);
  }
  Message tensor, type, info;
  tensor.integer(field::elem_type, data_type_of(dtype));
  tensor.message(field::shape, shape);
  type.message(field::tensor_type, tensor);
  info.text(field::value_name, name);
  info.message(field::value_type, type);
  return info;
}

// The input and the output of most tests.
inline Message x_of(const std::vector<Size>& sizes) {
  return value_info("x", DType::float32, sizes);
}
inline Message y_of(const std::vector<Size>& sizes) {
  return value_info("y", DType::float32, sizes);
}

// Elements as they lie in memory.
inline Message tensor(std::string_view name, DType dtype, const Dims& sizes, std::string_view raw) {
  Message message;
  for (const int64_t size : sizes) message.integer(field::dims, size);
  message.integer(field::data_type, data_type_of(dtype));
  message.text(field::tensor_name, name);
  message.text(field::raw_data, raw);
  return message;
}
template <class T>
Message tensor(std::string_view name, DType dtype, const Dims& sizes, const std::vector<T>& data) {
  return tensor(name, dtype, sizes,
                {reinterpret_cast<const char*>(data.data()), data.size() * sizeof(T)});
}

struct Parts {
  std::vector<Message> nodes, inputs, outputs, initializers = {}, functions = {};
  int64_t opset = 20;
  Texts domains = {};  // further ones, of version 1
};

inline Message graph(const Parts& parts) {
  Message message;
  for (const Message& one : parts.nodes) message.message(field::node, one);
  message.text(field::graph_name, "graph");
  for (const Message& one : parts.initializers) message.message(field::initializer, one);
  for (const Message& one : parts.inputs) message.message(field::input, one);
  for (const Message& one : parts.outputs) message.message(field::output, one);
  return message;
}

inline Message import(std::string_view domain, int64_t version) {
  Message message;
  message.text(field::domain, domain);
  message.integer(field::version, version);
  return message;
}

inline std::string model(const Parts& parts) {
  Message message;
  message.integer(field::ir_version, 10);
  message.text(field::producer_name, "a test");
  message.message(field::graph, graph(parts));
  message.message(field::opset_import, import("", parts.opset));
  for (const std::string& domain : parts.domains)
    message.message(field::opset_import, import(domain, 1));
  for (const Message& one : parts.functions) message.message(field::functions, one);
  return message.bytes();
}

}  // namespace composit::onnx::test
