#include <nlohmann/json.hpp>

#include "composit/interchange/onnx.h"
#include "composit/interchange/onnx_read/importer.h"
#include "composit/io/file.h"
#include "composit/ir/error.h"
#include "composit/ops/operations.h"

namespace composit {
namespace {

namespace fs = std::filesystem;

std::string counted_structure(size_t tensors) {
  return nlohmann::json{{"tuple", std::vector<std::string>(tensors, "tensor")}}.dump();
}

// The structure of results (composit/interchange/pt2/structure.h): by name, unless names only
// count, as those of save_onnx do.
std::string structure_of(const std::vector<std::string>& names) {
  bool counted = true;
  for (size_t i = 0; i < names.size(); ++i)
    counted = counted && names[i] == "output_" + std::to_string(i);
  if (counted) return names.size() == 1 ? R"("tensor")" : counted_structure(names.size());
  nlohmann::json map = nlohmann::json::array();
  for (const std::string& name : names) map.push_back({name, "tensor"});
  return nlohmann::json{{"map", map}}.dump();
}

// Of arguments: the inputs by position, and no keywords.
std::string structure_of_arguments(const Graph& graph) {
  nlohmann::json inputs = nlohmann::json::array();
  for (const LazyTensor& input : graph.inputs())
    if (input_kind(*input.node) == InputKind::user_input) inputs.push_back("tensor");
  const nlohmann::json keywords = {{"map", nlohmann::json::array()}};
  return nlohmann::json{{"tuple", {{{"tuple", inputs}}, keywords}}}.dump();
}

SavedCapture capture_of(const onnx_read::ModelProto& model, onnx_read::TensorReader& tensors,
                        const OnnxReadOptions& options) {
  onnx_read::Imported imported = onnx_read::import_model(model, tensors, options);
  SavedCapture capture;
  capture.graph = std::move(imported.graph);
  capture.weights = std::move(imported.weights);
  capture.producer = "ONNX";
  if (!model.producer.empty()) capture.producer += " of " + std::string(model.producer);
  capture.properties["trust"] = "made from its source";
  capture.properties["grad"] = "false";
  capture.properties["arguments"] = structure_of_arguments(capture.graph);
  capture.properties["results"] = structure_of(imported.outputs);
  return capture;
}

}  // namespace

bool is_onnx(std::string_view bytes) { return onnx_read::is_model(bytes); }

SavedCapture load_onnx(const fs::path& file, const OnnxReadOptions& options) {
  const auto mapped = io::MappedFile::open(file);
  try {
    const onnx_read::ModelProto model = onnx_read::read_model(mapped->text());
    onnx_read::TensorReader tensors(mapped, file.parent_path());
    return capture_of(model, tensors, options);
  } catch (const UserError& error) {
    throw UserError("[onnx] " + file.string() + ": " + error.what());
  } catch (const nlohmann::json::type_error& error) {  // names that are not UTF-8
    throw UserError("[onnx] " + file.string() + ": " + error.what());
  }
}

}  // namespace composit
