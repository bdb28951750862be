// Small files of torch.export, made by hand: what is wrong in one can be said there.
//
//   write_pt2(file, program(R"([…])"));
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "composit/io/file.h"
#include "composit/io/zip_write.h"

namespace composit::test {

using PlainJson = nlohmann::json;
using Entries = std::map<std::string, std::string>;  // of an archive, by name

inline void write_archive(const std::filesystem::path& path, const Entries& entries) {
  io::OutputFile file(path);
  io::ZipWriter archive([&](const void* data, size_t size) { file.write(data, size); });
  for (const auto& [name, content] : entries) archive.add(name, content);
  archive.finish();
  file.commit();
}

// float32[2, 3], row-major.
inline PlainJson meta_of(const std::vector<int64_t>& sizes, int dtype = 7) {
  PlainJson meta = {{"dtype", dtype},
                    {"layout", 7},
                    {"requires_grad", false},
                    {"storage_offset", {{"as_int", 0}}},
                    {"device", {{"type", "cpu"}, {"index", nullptr}}},
                    {"sizes", PlainJson::array()},
                    {"strides", PlainJson::array()}};
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    meta["sizes"].insert(meta["sizes"].begin(), PlainJson{{"as_int", sizes[i]}});
    meta["strides"].insert(meta["strides"].begin(), PlainJson{{"as_int", stride}});
    stride *= sizes[i];
  }
  return meta;
}

inline PlainJson tensor_of(const std::string& name) { return {{"as_tensor", {{"name", name}}}}; }

inline PlainJson node_of(const std::string& target, const std::vector<PlainJson>& arguments,
                         const std::string& result) {
  PlainJson inputs = PlainJson::array();
  for (const PlainJson& argument : arguments)
    inputs.push_back({{"name", "argument"}, {"arg", argument}, {"kind", 1}});
  return {{"target", target},
          {"inputs", inputs},
          {"outputs", PlainJson::array({tensor_of(result)})},
          {"metadata",
           {{"nn_module_stack", "L__self__,,Net;L__self___a,a.b,Layer"},
            {"stack_trace", "  File \"net.py\", line 12, in forward\n    y = x"}}}};
}

// A program of the argument x, float32[2, 3], the parameter w, float32[3], and these nodes, which
// give y of the same type as x.
inline PlainJson program_of(const PlainJson& nodes) {
  const auto spec = [](int count) {
    PlainJson leaves = PlainJson::array();
    const PlainJson leaf = {
        {"type", nullptr}, {"context", nullptr}, {"children_spec", PlainJson::array()}};
    for (int i = 0; i < count; ++i) leaves.push_back(leaf);
    return PlainJson{{"type", "builtins.tuple"}, {"context", "null"}, {"children_spec", leaves}};
  };
  const PlainJson none = {
      {"type", "builtins.dict"}, {"context", "[]"}, {"children_spec", PlainJson::array()}};
  PlainJson call = spec(0);
  call["children_spec"] = {spec(1), none};
  PlainJson metas = {{"x", meta_of({2, 3})}, {"w", meta_of({3})}};
  for (const PlainJson& node : nodes)
    for (const PlainJson& output : node["outputs"])
      metas[output["as_tensor"]["name"].get<std::string>()] = meta_of({2, 3});
  return {
      {"graph_module",
       {{"graph",
         {{"inputs", {tensor_of("w"), tensor_of("x")}},
          {"outputs", PlainJson::array({tensor_of("y")})},
          {"nodes", nodes},
          {"tensor_values", metas},
          {"sym_int_values", PlainJson::object()},
          {"sym_bool_values", PlainJson::object()}}},
        {"signature",
         {{"input_specs",
           {{{"parameter", {{"arg", {{"name", "w"}}}, {"parameter_name", "fc.w"}}}},
            {{"user_input", {{"arg", tensor_of("x")}}}}}},
          {"output_specs",
           PlainJson::array({PlainJson{{"user_output", {{"arg", tensor_of("y")}}}}})}}},
        {"module_call_graph",
         PlainJson::array({PlainJson{{"fqn", ""},
                                     {"signature",
                                      {{"inputs", PlainJson::array()},
                                       {"outputs", PlainJson::array()},
                                       {"in_spec", PlainJson::array({1, call}).dump()},
                                       {"out_spec", PlainJson::array({1, spec(1)}).dump()}}}}})}}},
      {"opset_version", {{"aten", 10}}},
      {"range_constraints", PlainJson::object()},
      {"schema_version", {{"major", 8}, {"minor", 20}}},
      {"torch_version", "2.13.0"}};
}

// The entries of a file of that program; w is 1, 2, 3.
inline Entries entries_of(const PlainJson& program) {
  const std::vector<float> weight = {1, 2, 3};
  const PlainJson weights = {{"config",
                              {{"fc.w",
                                {{"path_name", "weight_0"},
                                 {"is_param", true},
                                 {"use_pickle", false},
                                 {"tensor_meta", meta_of({3})}}}}}};
  return {
      {"net/archive_format", "pt2"},
      {"net/archive_version", "0"},
      {"net/byteorder", "little"},
      {"net/models/model.json", program.dump()},
      {"net/data/weights/weight_0", std::string(reinterpret_cast<const char*>(weight.data()), 12)},
      {"net/data/weights/model_weights_config.json", weights.dump()},
      {"net/data/constants/model_constants_config.json", R"({"config": {}})"},
      {"net/data/sample_inputs/model.pt", ""}};
}

}  // namespace composit::test
