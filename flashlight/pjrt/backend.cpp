#include "flashlight/pjrt/backend.h"

#include <algorithm>

#include "composit/interchange/stablehlo.h"
#include "composit/ir/error.h"
#include "flashlight/backends/pjrt.h"
#include "flashlight/backends/registry.h"
#include "flashlight/pjrt/client.h"

namespace flashlight {

const composit::OptionFields<Pjrt>& Pjrt::fields() {
  static const composit::OptionFields<Pjrt> fields(
      {{{.name = "pjrt", .help = "the path of the plugin", .use = composit::Option::Use::calls},
        &Pjrt::pjrt},
       {{.name = "device",
         .help = "which of its devices, from 0 on",
         .use = composit::Option::Use::calls},
        &Pjrt::device},
       {{.name = "freeze",
         .help = "parameters and buffers go to the device once, not in each call",
         .use = composit::Option::Use::calls},
        &Pjrt::freeze}});
  return fields;
}

namespace pjrt {
namespace {

using composit::Array;
using composit::Graph;
using composit::InputKind;
using composit::Type;
using composit::UserError;

// By input: parameters and buffers that the program does not write.
std::vector<bool> unwritten_weights(const Graph& graph) {
  std::vector<bool> is_weight;
  for (const composit::LazyTensor& input : graph.inputs()) {
    const InputKind kind = composit::input_kind(*input.node);
    const bool is_written =
        std::any_of(graph.mutations().begin(), graph.mutations().end(),
                    [&](const composit::Mutation& one) { return one.target == input; });
    is_weight.push_back((kind == InputKind::parameter || kind == InputKind::buffer) && !is_written);
  }
  return is_weight;
}

// What the code has before any weights.
struct CompiledModule {
  CompiledModule(const Graph& graph, const composit::CompileOptions& options, const Pjrt& chosen,
                 const composit::Ports& ports)
      : module(composit::stablehlo_module(graph, options.name)),
        program(library_at(chosen.pjrt), module.text, chosen.device),
        is_frozen(unwritten_weights(graph)) {
    if (!chosen.freeze || !options.may_prepare) is_frozen.assign(is_frozen.size(), false);
    // Large constants are further arguments of the module.
    for (auto& [name, value] : module.weights)
      constants.push_back(program.to_device(value.contiguous().data(), value.type()));
    module.weights.clear();
    for (const Type& type : ports.results)
      if (is_defined(type)) result_types.push_back(type);
    const Type truth = composit::tensor_type(composit::DType::bool_, {});
    result_types.insert(result_types.end(), module.guards.size(), truth);
  }

  composit::StableHloModule module;
  LoadedProgram program;
  std::vector<bool> is_frozen;  // by input
  DeviceArrays constants;
  std::vector<Type> result_types;  // outputs that are there, what is written, guards
};

class PjrtCode : public composit::Code {
 public:
  PjrtCode(composit::Ports ports, std::shared_ptr<const CompiledModule> compiled,
           DeviceArrays weights)
      : Code(std::move(ports)), compiled_(std::move(compiled)), weights_(std::move(weights)) {}

  const std::string& source() const override { return compiled_->module.text; }
  bool is_frozen(size_t input) const override { return compiled_->is_frozen[input]; }

  std::shared_ptr<const Code> prepare(const std::vector<Array>& weights) const override {
    DeviceArrays there(ports().inputs.size());
    for (size_t i = 0; i < there.size(); ++i) {
      if (!is_frozen(i)) continue;
      if (i >= weights.size() || !weights[i].defined())
        throw UserError("[" + ports().program + "] '" + ports().input_names[i] +
                        "' has no value to be compiled with");
      ports().check(i, weights[i]);
      there[i] = to_device(i, weights[i].contiguous().data());
    }
    return std::make_shared<const PjrtCode>(ports(), compiled_, std::move(there));
  }

  // The programs of one model at several sizes read the same weights.
  std::shared_ptr<const Code> prepare_like(const Codes& others) const override {
    for (const auto& other : others)
      if (const auto* one = dynamic_cast<const PjrtCode*>(other.get()); one && shares_with(*one))
        return std::make_shared<const PjrtCode>(ports(), compiled_, one->weights_);
    return nullptr;
  }

  void run(composit::InputBuffers inputs, composit::Buffers results,
           fl::Generator* /*generator*/) const override {
    const bool is_prepared = weights_.size() == ports().inputs.size();
    // A result may lie where an input does: all of them are read before.
    DeviceArrays arguments;
    for (size_t i = 0; i < ports().inputs.size(); ++i) {
      COMPOSIT_ASSERT(is_prepared || !is_frozen(i), "code is prepared before it is run");
      arguments.push_back(is_frozen(i) ? weights_[i] : to_device(i, ports().given(i, inputs)));
    }
    arguments.insert(arguments.end(), compiled_->constants.begin(), compiled_->constants.end());
    const std::vector<std::string>& guards = compiled_->module.guards;
    std::vector<void*> places = ports().places(results);
    const auto holds = std::make_unique<bool[]>(guards.size() + 1);
    for (size_t i = 0; i < guards.size(); ++i) places.push_back(&holds[i]);
    compiled_->program.run(arguments, places, compiled_->result_types);
    for (size_t i = 0; i < guards.size(); ++i)
      if (!holds[i])
        throw UserError("[pjrt] " + ports().program + ": it does not hold that " + guards[i]);
  }

 private:
  std::shared_ptr<const DeviceArray> to_device(size_t input, const void* data) const {
    return compiled_->program.to_device(data, ports().inputs[input]);
  }

  bool shares_with(const PjrtCode& other) const {
    if (other.weights_.empty() || compiled_->is_frozen != other.compiled_->is_frozen ||
        compiled_->program.device() != other.compiled_->program.device())
      return false;
    for (size_t i = 0; i < ports().inputs.size(); ++i)
      if (is_frozen(i) && ports().inputs[i] != other.ports().inputs[i]) return false;
    return true;
  }

  std::shared_ptr<const CompiledModule> compiled_;
  DeviceArrays weights_;  // by input, where it is frozen; none before they are prepared
};

class PjrtBackend : public composit::Backend {
 public:
  std::string name() const override { return "pjrt"; }
  std::string help() const override { return "StableHLO, by XLA or another plugin of PJRT"; }
  const composit::OptionTable& options() const override { return Pjrt::fields().table(); }
  bool has_code(const composit::Operation& operation) const override {
    return composit::has_stablehlo(operation);
  }

 protected:
  composit::Compiled make(const Graph& graph,
                          const composit::CompileOptions& options) const override {
    composit::Ports ports = composit::ports_of(graph, options.name);
    auto compiled = std::make_shared<const CompiledModule>(
        graph, options, Pjrt::fields().typed(options.options), ports);
    return {
        std::make_shared<const PjrtCode>(std::move(ports), std::move(compiled), DeviceArrays())};
  }
  std::string write(const Graph& graph, const composit::CompileOptions& options) const override {
    return composit::stablehlo_module(graph, options.name).text;
  }
};

const BackendRegistration kRegistration(backend());

}  // namespace

const composit::Backend& backend() {
  static const PjrtBackend backend;
  return backend;
}

}  // namespace pjrt
}  // namespace flashlight
