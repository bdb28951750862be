// The messages of onnx.proto, as much of them as is read.
//
//   const ModelProto model = read_model(file->text());
//   for (const NodeProto& node : model.graph.nodes) ...
//
// Texts and raw data are views of the bytes that were read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace composit::onnx_read {

using Texts = std::vector<std::string_view>;
using Entries = std::vector<std::pair<std::string_view, std::string_view>>;

struct TensorProto {
  std::string_view name, doc;
  int64_t data_type = 0;
  std::vector<int64_t> dims;
  std::optional<std::string_view> raw;
  // Elements in fields of their type; one of these.
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> integers;
  Entries external;  // where the elements lie in another file
  bool is_external = false, is_segment = false;
};

struct GraphProto;

struct AttributeProto {
  std::string_view name, s, reference;  // `reference`: the attribute of the function it is
  int64_t type = 0, i = 0;
  float f = 0;
  std::shared_ptr<const TensorProto> t;
  std::shared_ptr<const GraphProto> g;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  Texts strings;
};

struct NodeProto {
  std::string_view name, op_type, domain, overload, doc;
  Texts inputs, outputs;
  std::vector<AttributeProto> attributes;
  Entries metadata;
};

// A size: a number, a name, or not known.
struct DimensionProto {
  std::optional<int64_t> value;
  std::string_view parameter;
};

struct ValueInfoProto {
  std::string_view name;
  bool is_tensor = false;
  int64_t data_type = 0;
  std::optional<std::vector<DimensionProto>> shape;
};

struct GraphProto {
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueInfoProto> inputs, outputs;
  bool has_sparse_initializers = false;
};

using OpsetImports = std::map<std::string, int64_t, std::less<>>;  // versions of domains

struct FunctionProto {
  std::string_view name, domain, overload;
  Texts inputs, outputs;
  std::vector<AttributeProto> defaults;
  std::vector<NodeProto> nodes;
  OpsetImports imports;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string_view producer;
  std::optional<GraphProto> graph;
  OpsetImports imports;
  std::vector<FunctionProto> functions;
};

// UserError for bytes that are no such message; `bytes` have to outlive the result.
ModelProto read_model(std::string_view bytes);
// True if the bytes look like a model, rather than like a file of another kind.
bool is_model(std::string_view bytes);
// "ai.onnx" is the default domain's long name.
std::string_view domain_of(std::string_view text);

}  // namespace composit::onnx_read
