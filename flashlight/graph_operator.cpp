#include "flashlight/graph_operator.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/passes/inline_calls.h"

namespace flashlight {
namespace {

using nlohmann::json;

std::string text_of(const CompileSettings& settings) {
  json options = json::object();
  for (const auto& [name, value] : settings.backend.options)
    std::visit([&, key = name](const auto& one) { options[key] = one; }, value);
  return json{{"name", settings.name},
              {"flags", settings.flags},
              {"backend", settings.backend.name},
              {"options", options},
              {"results", settings.results}}
      .dump();
}

CompileSettings settings_of(const std::string& text) {
  const json read = json::parse(text);
  CompileSettings settings;
  settings.name = read.at("name");
  settings.flags = read.at("flags").get<std::vector<std::string>>();
  settings.results = read.at("results").get<std::vector<std::string>>();
  settings.backend = composit::BackendChoice(read.at("backend").get<std::string>());
  for (const auto& [name, value] : read.at("options").items()) {
    composit::OptionValue& option = settings.backend.options[name];
    if (value.is_boolean()) option = value.get<bool>();
    if (value.is_number_integer()) option = value.get<int64_t>();
    if (value.is_number_float()) option = value.get<double>();
    if (value.is_string()) option = value.get<std::string>();
  }
  return settings;
}

// The compiled graphs of this process, by their texts.
class CompiledGraphs {
 public:
  static CompiledGraphs& all() {
    static auto* graphs = new CompiledGraphs;  // code may run until the process ends
    return *graphs;
  }
  void add(const std::string& graph, const std::string& compiled, const CompiledGraph& code) {
    const std::lock_guard lock(mutex_);
    graphs_.try_emplace({graph, compiled}, code);
  }
  CompiledGraph find(const std::string& graph, const std::string& compiled) {
    const std::lock_guard lock(mutex_);
    const auto found = graphs_.find({graph, compiled});
    if (found != graphs_.end()) return found->second;
    CompiledGraph code(composit::parse(graph), settings_of(compiled));
    graphs_.emplace(std::pair(graph, compiled), code);
    return code;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, CompiledGraph> graphs_;
};

std::vector<at::Tensor> evaluate(at::TensorList inputs, std::string_view graph,
                                 std::string_view compiled) {
  return CompiledGraphs::all().find(std::string(graph), std::string(compiled))(inputs.vec());
}

// Registers the operator, unless another copy of this code has done so: the C library beside the
// Python package. The operator takes texts, so one function serves both.
class Registration {
 public:
  Registration() {
    if (c10::Dispatcher::singleton().findSchema({"composit::evaluate", ""})) return;
    add(torch::Library::FRAGMENT, std::nullopt)
        .def("evaluate(Tensor[] inputs, str graph, str compiled) -> Tensor[]");
    // One function for both keys: the compiled graph is its own function to autograd. An implicit
    // composite would be recorded by what it calls.
    for (const auto key : {c10::DispatchKey::CompositeExplicitAutograd, c10::DispatchKey::Autograd})
      add(torch::Library::IMPL, key).impl("evaluate", &evaluate);
  }

 private:
  torch::Library& add(torch::Library::Kind kind, std::optional<c10::DispatchKey> key) {
    return *libraries_.emplace_back(
        std::make_unique<torch::Library>(kind, "composit", key, __FILE__, __LINE__));
  }
  std::vector<std::unique_ptr<torch::Library>> libraries_;
};
const Registration kRegistration;

}  // namespace

std::vector<at::Tensor> evaluate_operator(const std::vector<at::Tensor>& inputs,
                                          const CompiledGraph& graph,
                                          const CompileSettings& settings) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("composit::evaluate", "")
                             .typed<decltype(evaluate)>();
  const std::string text = composit::print(composit::inline_calls(graph.graph())),
                    compiled = text_of(settings);
  CompiledGraphs::all().add(text, compiled, graph);
  return op.call(inputs, text, compiled);
}

}  // namespace flashlight
