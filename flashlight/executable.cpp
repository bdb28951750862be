#include "flashlight/executable.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "composit/ir/error.h"
#include "flashlight/capture_state.h"
#include "flashlight/cpp/backend.h"
#include "flashlight/mosaic/backend.h"
#include "tracer/convert.h"

namespace flashlight {
namespace {

using composit::Graph;
using composit::UserError;

std::vector<const void*> pointers_of(const std::vector<at::Tensor>& tensors) {
  std::vector<const void*> pointers;
  for (const at::Tensor& tensor : tensors)
    pointers.push_back(tensor.defined() ? tensor.const_data_ptr() : nullptr);
  return pointers;
}

class CppExecutable : public Executable {
 public:
  CppExecutable(const Graph& graph, const CompileSettings& settings, const Cpp& options)
      : name_(settings.name),
        compiled_(cpp::compile(graph, options_of(graph, settings, options))) {}

  const std::string& source() const override { return compiled_.source(); }
  bool draws() const override { return compiled_.draws(); }
  bool may_update(size_t) const override { return false; }
  void run(const Inputs& inputs, const std::vector<void*>& results,
           fl::Generator& generator) const override {
    compiled_.run(pointers_of(inputs.row_major), results, generator);
  }
  mosaic::Profile profile(const Inputs&, const std::vector<void*>&, fl::Generator&) const override {
    throw UserError("[" + name_ +
                    "] profile: the cpp backend has no kernels to time; compile with "
                    "{.backend = flashlight::Mosaic{}}");
  }

 private:
  static cpp::CompileOptions options_of(const Graph& graph, const CompileSettings& settings,
                                        const Cpp& options) {
    cpp::CompileOptions all;
    all.name = settings.name;
    all.results = settings.results;
    if (options.link_aten) {
      all.aten = loops::aten_schemas(schemas_of(graph));
      for (const char* folder : {FLASHLIGHT_TORCH_INCLUDES})
        all.flags.insert(all.flags.end(), {"-isystem", folder});
    }
    all.flags.insert(all.flags.end(), settings.flags.begin(), settings.flags.end());
    return all;
  }

  std::string name_;
  cpp::Compiled compiled_;
};

// Which values a tensor had: where they were, and how often somebody had written them.
class Version {
 public:
  explicit Version(const at::Tensor& tensor)
      : storage_(tensor.storage().getWeakStorageImpl()),
        data_(tensor.const_data_ptr()),
        strides_(tensor.strides().vec()),
        is_counted_(!tensor.is_inference()),
        writes_(is_counted_ ? static_cast<int64_t>(tensor._version()) : 0) {}

  // False for what was made in inference mode, where nobody counts.
  bool is_of(const at::Tensor& tensor) const {
    const Version now(tensor);
    return is_counted_ && now.is_counted_ && storage_ == now.storage_ && data_ == now.data_ &&
           strides_ == now.strides_ && writes_ == now.writes_;
  }

 private:
  c10::weak_intrusive_ptr<c10::StorageImpl> storage_;  // so that no other one gets its address
  const void* data_;
  std::vector<int64_t> strides_;
  bool is_counted_;
  int64_t writes_;
};

class MosaicExecutable : public Executable {
 public:
  MosaicExecutable(const Graph& graph, const CompileSettings& settings, const Mosaic& options)
      : kernels_(mosaic::compile_kernels(graph, {.plan = {.name = settings.name,
                                                          .results = settings.results,
                                                          .freeze = options.freeze,
                                                          .winograd = options.winograd,
                                                          .strassen = options.strassen,
                                                          .update_inputs = true,
                                                          .choices = options.choices},
                                                 .threads = options.threads,
                                                 .flags = settings.flags})) {
    for (size_t i = 0; i < graph.inputs().size(); ++i)
      if (kernels_.is_frozen(i)) frozen_.push_back(i);
  }

  const std::string& source() const override { return kernels_.source(); }
  bool draws() const override { return kernels_.draws(); }
  bool may_update(size_t result) const override { return kernels_.may_update(result); }
  void run(const Inputs& inputs, const std::vector<void*>& results,
           fl::Generator& generator) const override {
    prepared_for(inputs).run(pointers_of(inputs.row_major), results, generator);
  }
  mosaic::Profile profile(const Inputs& inputs, const std::vector<void*>& results,
                          fl::Generator& generator) const override {
    return prepared_for(inputs).profile(pointers_of(inputs.row_major), results, generator);
  }

 private:
  // With weights as they are now, packed again where one was written since the last call.
  mosaic::Compiled prepared_for(const Inputs& inputs) const {
    const std::lock_guard lock(mutex_);
    const auto is_known = [&](size_t i) {
      const at::Tensor& tensor = inputs.given[frozen_[i]];
      return tensor.defined() && versions_[i].is_of(tensor);
    };
    bool known = prepared_.has_value();
    for (size_t i = 0; i < frozen_.size() && known; ++i) known = is_known(i);
    if (known) return *prepared_;
    prepared_.reset();  // before there is another one
    versions_.clear();
    std::vector<composit::Array> weights(inputs.given.size());
    for (const size_t input : frozen_) {
      if (!inputs.given[input].defined()) continue;  // an error below
      versions_.emplace_back(inputs.given[input]);
      weights[input] = tracer::to_array(inputs.row_major[input].detach());
    }
    prepared_ = kernels_.prepare(weights);
    return *prepared_;
  }

  mosaic::Kernels kernels_;
  std::vector<size_t> frozen_;  // inputs whose values are taken at preparation
  mutable std::mutex mutex_;
  mutable std::vector<Version> versions_;  // of them, at the last preparation
  mutable std::optional<mosaic::Compiled> prepared_;
};

}  // namespace

std::unique_ptr<Executable> make_executable(const Graph& graph, const CompileSettings& settings) {
  if (const auto* options = std::get_if<Mosaic>(&settings.backend))
    return std::make_unique<MosaicExecutable>(graph, settings, *options);
  return std::make_unique<CppExecutable>(graph, settings, std::get<Cpp>(settings.backend));
}

}  // namespace flashlight
