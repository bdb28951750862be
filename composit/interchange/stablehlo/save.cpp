#include "composit/family/saved_family.h"
#include "composit/family/size_tree.h"
#include "composit/interchange/stablehlo.h"
#include "composit/interchange/stablehlo/rows.h"
#include "composit/interchange/stablehlo/text.h"
#include "composit/io/file.h"
#include "composit/io/safetensors.h"
#include "composit/ir/error.h"
#include "composit/ir/transform.h"

namespace composit {
namespace {

namespace fs = std::filesystem;
using stablehlo::Port;

constexpr int64_t kLargestInText = 1 << 16;  // bytes of a constant that stands in the module

// The capture, or that of a family where no size is free: answers that choose between its cases are
// branches.
SavedCapture of_one_size(const SavedCapture& capture) {
  if (!is_family(capture) || capture.cases.empty()) return capture;
  return hull_of(family_of(capture)).empty() ? of_one_case(capture) : capture;
}

void check(const SavedCapture& capture) {
  if (is_family(capture))
    throw UserError("expected a capture of one size, received a family: `bind` gives one");
  if (capture.properties.contains("next call"))
    throw UserError("its numbers follow its calls, which no module of StableHLO can count");
}

// Large constants are weights of the module.
Graph with_constants_as_weights(const Graph& graph,
                                std::vector<std::pair<LazyTensor, Array>>& constants) {
  const Graph changed = rebuild(graph, [&](const Node& node, const LazyTensors&) {
    std::optional<Replacement> replacement;
    if (node.op() != ops::kConstant) return replacement;
    const Array& value = node.attribute("value").as<Array>();
    if (value.type().nbytes() <= kLargestInText) return replacement;
    const LazyTensor argument =
        input("constant." + std::to_string(constants.size()), value.type(), InputKind::parameter);
    constants.emplace_back(argument, value);
    replacement = Replacement{.outputs = {argument}};
    return replacement;
  });
  return changed;
}

class ModuleMaker {
 public:
  // `capture`: has the values of the graph's weights; nullptr: all inputs are arguments.
  ModuleMaker(const Graph& graph, const SavedCapture* capture, std::string name,
              const StableHloOptions& options)
      : capture_(capture),
        options_(options),
        lowered_(stablehlo::lower(graph, options.drop_guards)) {
    module_.name = std::move(name);
    lowered_.graph = with_constants_as_weights(lowered_.graph, constants_);
  }

  StableHloModule run() {
    add_inputs();
    add_results();
    made_.text = stablehlo::text_of(module_);
    return std::move(made_);
  }

 private:
  bool is_argument(const LazyTensor& input) const {
    return capture_ == nullptr || input_kind(*input.node) == InputKind::user_input;
  }

  void add_inputs() {
    for (const LazyTensor& input : lowered_.graph.inputs()) {
      if (!is_argument(input)) continue;
      module_.inputs.push_back({input, "input", input_name(*input.node)});
      ++made_.inputs;
    }
    for (const LazyTensor& input : lowered_.graph.inputs()) {
      if (is_argument(input)) continue;
      const std::string name = input_name(*input.node);
      const auto value = capture_->weights.find(name);
      if (value == capture_->weights.end() || !value->second.defined())
        throw UserError("'" + name + "' has no value");
      add_weight(input, name, value->second);
    }
    for (const auto& [input, value] : constants_) add_weight(input, input_name(*input.node), value);
  }

  void add_weight(const LazyTensor& input, const std::string& name, const Array& value) {
    (options_.weights_as_parameters ? module_.globals : module_.inputs)
        .push_back({input, "weight", name});
    made_.weights.emplace_back(name, value);
  }

  void add_results() {
    const LazyTensors& outputs = lowered_.graph.outputs();
    const size_t count = outputs.size() - lowered_.guards.size();
    for (size_t i = 0; i < count; ++i) {
      if (!outputs[i]) continue;
      module_.results.push_back({outputs[i], "output", "output_" + std::to_string(i)});
      ++made_.outputs;
    }
    for (const Mutation& mutation : lowered_.graph.mutations()) {
      made_.written.push_back(input_name(*mutation.target.node));
      module_.results.push_back({mutation.value, "written", made_.written.back()});
    }
    for (size_t i = 0; i < lowered_.guards.size() && !options_.drop_guards; ++i) {
      made_.guards.push_back(lowered_.guards[i]);
      module_.results.push_back({outputs[count + i], "guard", lowered_.guards[i]});
    }
  }

  const SavedCapture* capture_;
  const StableHloOptions& options_;
  stablehlo::Lowered lowered_;
  std::vector<std::pair<LazyTensor, Array>> constants_;
  stablehlo::Module module_;
  StableHloModule made_;
};

// Row-major in the file, so the module's types say nothing of strides.
void write_weights(const StableHloModule& module, const fs::path& file) {
  Safetensors weights;
  for (const auto& [name, value] : module.weights) weights.tensors.emplace(name, value);
  write_safetensors(weights, file);
}

}  // namespace

StableHloModule stablehlo_module(const SavedCapture& capture, const std::string& name,
                                 const StableHloOptions& options) {
  try {
    const SavedCapture one = of_one_size(capture);
    check(one);
    return ModuleMaker(one.graph, &one, name, options).run();
  } catch (const UserError& error) {
    throw UserError(std::string("[stablehlo] ") + error.what());
  }
}

StableHloModule stablehlo_module(const Graph& graph, const std::string& name,
                                 const StableHloOptions& options) {
  try {
    return ModuleMaker(graph, nullptr, name, options).run();
  } catch (const UserError& error) {
    throw UserError(std::string("[stablehlo] ") + error.what());
  }
}

bool has_stablehlo(const Operation& operation) {
  const Row& row = operation.row;
  return stablehlo::rows().find(operation.schema.name) != nullptr || row.scalar || row.loops ||
         row.decompose;
}

void save_stablehlo(const SavedCapture& capture, const fs::path& file,
                    const StableHloOptions& options) {
  const StableHloModule module = stablehlo_module(capture, file.stem().string(), options);
  io::OutputFile output(file);
  output.write(module.text);
  output.sync();
  if (!module.weights.empty()) write_weights(module, file.string() + ".safetensors");
  output.commit();
}

}  // namespace composit
