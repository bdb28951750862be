#include "flashlight/pjrt/backend.h"

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
        &Pjrt::device}});
  return fields;
}

namespace pjrt {
namespace {

using composit::Graph;
using composit::Type;
using composit::UserError;

class PjrtCode : public composit::Code {
 public:
  PjrtCode(const Graph& graph, const composit::CompileOptions& options, const Pjrt& chosen)
      : Code(composit::ports_of(graph, options.name)),
        module_(composit::stablehlo_module(graph, options.name)),
        program_(library_at(chosen.pjrt), module_.text, chosen.device) {
    input_types_ = ports().inputs;
    // Large constants are further arguments of the module.
    for (const auto& [name, value] : module_.weights) {
      constants_.push_back(value.contiguous());
      input_types_.push_back(constants_.back().type());
    }
    for (const Type& type : ports().results)
      if (is_defined(type)) result_types_.push_back(type);
    const Type truth = composit::tensor_type(composit::DType::bool_, {});
    result_types_.insert(result_types_.end(), module_.guards.size(), truth);
  }

  const std::string& source() const override { return module_.text; }

  void run(composit::InputBuffers inputs, composit::Buffers results,
           fl::Generator* /*generator*/) const override {
    // A result may lie where an input does: all of them are read before.
    std::vector<const void*> given;
    for (size_t i = 0; i < ports().inputs.size(); ++i) given.push_back(ports().given(i, inputs));
    for (const composit::Array& constant : constants_) given.push_back(constant.data());
    std::vector<void*> places = ports().places(results);
    const auto holds = std::make_unique<bool[]>(module_.guards.size() + 1);
    for (size_t i = 0; i < module_.guards.size(); ++i) places.push_back(&holds[i]);
    program_.run(given, input_types_, places, result_types_);
    for (size_t i = 0; i < module_.guards.size(); ++i)
      if (!holds[i])
        throw UserError("[pjrt] " + ports().program + ": it does not hold that " +
                        module_.guards[i]);
  }

 private:
  const composit::StableHloModule module_;
  const LoadedProgram program_;
  std::vector<composit::Array> constants_;
  std::vector<Type> input_types_;   // inputs, then constants
  std::vector<Type> result_types_;  // outputs that are there, what is written, guards
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
    return {
        std::make_shared<const PjrtCode>(graph, options, Pjrt::fields().typed(options.options))};
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
