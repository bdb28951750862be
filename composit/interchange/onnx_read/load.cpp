#include <nlohmann/json.hpp>
#include <numeric>

#include "composit/family/bind.h"
#include "composit/family/examples.h"
#include "composit/family/saved_family.h"
#include "composit/interchange/onnx.h"
#include "composit/interchange/onnx_read/importer.h"
#include "composit/io/file.h"
#include "composit/ir/compare.h"
#include "composit/ir/error.h"
#include "composit/ops/operations.h"
#include "composit/passes/drop_no_ops.h"

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
                        const std::map<std::string, int64_t>& sizes, bool folds = true) {
  onnx_read::Imported imported = onnx_read::import_model(model, tensors, sizes, folds);
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

// A model at the sizes that it is told, beside those that are given.
class SizedModel : public ExampleSource {
 public:
  SizedModel(const onnx_read::ModelProto& model, onnx_read::TensorReader& tensors,
             const std::map<std::string, int64_t>& given)
      : model_(model), tensors_(tensors), given_(given) {}

  void show(const SizeValues& sizes) override { examples_.push_back(at(sizes)); }
  std::vector<Graph> graphs() const override {
    std::vector<Graph> graphs;
    for (const SavedCapture& example : examples_) graphs.push_back(example.graph);
    return graphs;
  }
  const Cases& unify(const std::vector<std::string>& names) override {
    cases_ = unify_cases(graphs(), {.names = names});
    return cases_;
  }
  std::string wrong_at(const SizeValues& sizes) override {
    try {
      return difference_at(sizes);
    } catch (const UserError& error) {
      return error.what();
    }
  }
  // A model is quickly read: beside the ends and between as well.
  std::vector<SizeValues> checked(const std::vector<SizeRange>& ranges,
                                  const Cases& cases) const override {
    constexpr size_t kBetween = 12;
    std::vector<SizeValues> all = ExampleSource::checked(ranges, cases);
    std::vector<size_t> numbers(cases.cases.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    for (const SizeValues& sizes : spread_sizes(cases, numbers, kBetween)) all.push_back(sizes);
    return all;
  }

  SavedCapture family() const {
    std::vector<SavedCapture> first;
    for (size_t number = 0; number < cases_.cases.size(); ++number)
      first.push_back(examples_.at(first_example_of(cases_, number)));
    return with_family(std::move(first), cases_);
  }

 private:
  // Empty where the family gives the model there; its range then grows.
  std::string difference_at(const SizeValues& sizes) {
    const Graph there = in_form(cases_, at(sizes).graph);
    Family& family = cases_.cases.at(cases_at(cases_, sizes).at(0));
    std::vector<Type> types;
    for (const LazyTensor& input : there.inputs()) types.push_back(input.type());
    const auto differences =
        compare(drop_no_ops(bind_types(family, types).graph), drop_no_ops(there));
    if (!differences.empty()) return str(differences[0]);
    widen(family, sizes);
    return "";
  }
  SavedCapture at(const SizeValues& sizes) const {
    std::map<std::string, int64_t> all = given_;
    all.insert(sizes.begin(), sizes.end());
    return capture_of(model_, tensors_, all, /*folds=*/false);
  }

  const onnx_read::ModelProto& model_;
  onnx_read::TensorReader& tensors_;
  const std::map<std::string, int64_t>& given_;
  std::vector<SavedCapture> examples_;
  Cases cases_;
};

SavedCapture read(const onnx_read::ModelProto& model, onnx_read::TensorReader& tensors,
                  const OnnxReadOptions& options) {
  if (options.ranges.empty()) return capture_of(model, tensors, options.sizes);
  for (const SizeRange& range : options.ranges)
    if (options.sizes.contains(range.name))
      throw UserError("the size '" + range.name + "' is given as a number and as a range");
  SizedModel sized(model, tensors, options.sizes);
  show_enough(sized, options.ranges);
  return sized.family();
}

}  // namespace

bool is_onnx(std::string_view bytes) { return onnx_read::is_model(bytes); }

SavedCapture load_onnx(const fs::path& file, const OnnxReadOptions& options) {
  const auto mapped = io::MappedFile::open(file);
  try {
    const onnx_read::ModelProto model = onnx_read::read_model(mapped->text());
    onnx_read::TensorReader tensors(mapped, file.parent_path());
    return read(model, tensors, options);
  } catch (const UserError& error) {
    throw UserError("[onnx] " + file.string() + ": " + error.what());
  } catch (const nlohmann::json::type_error& error) {  // names that are not UTF-8
    throw UserError("[onnx] " + file.string() + ": " + error.what());
  }
}

}  // namespace composit
