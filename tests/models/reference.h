#pragma once

// The results of a Python original for one case, written by make_reference.py, and the comparison
// with what the C++ model computes from the same weights and inputs.
//
//   const Reference reference("clip_text");
//   ClipTextModel model(config);
//   load_safetensors(*model, reference.weights());
//   expect_agrees(reference, *model, [&](const Tensors& in) -> Tensors {
//     return {{"hidden", model->forward(in.at("input_ids")).last_hidden_state}};
//   });

#include <torch/torch.h>

#include <functional>
#include <map>
#include <string>

namespace models {

using Tensors = std::map<std::string, torch::Tensor>;

class Reference {
 public:
  /// Reads the folder `name` below the one that FLASHLIGHT_MODELS_REFERENCE names.
  explicit Reference(const std::string& name);

  std::string folder() const { return folder_; }
  std::string weights() const { return folder_ + "/weights.safetensors"; }

  Tensors inputs(torch::ScalarType dtype) const;
  Tensors outputs(torch::ScalarType dtype) const;

 private:
  Tensors with_prefix(const std::string& prefix) const;

  std::string folder_;
  Tensors tensors_;
};

/// What the C++ model computes, by the names that the reference uses.
using Run = std::function<Tensors(const Tensors& inputs)>;

/// Expects every output of the reference from `run`, in float32 and in float64.
///
/// float32: max|C++ float32 - Python float64| <= 4 max|Python float32 - Python float64|. The C++
/// model is as close to the exact result as the original is, but for another order of summation.
///
/// float64: max|C++ float64 - Python float64| <= 2^-20 max|Python float32 - Python float64|.
/// Float64 resolves 2^-29 of what float32 does, so this catches what float32's rounding hides: a
/// wrong epsilon, another approximation of GELU.
void expect_agrees(const Reference& reference, torch::nn::Module& model, const Run& run);

/// The same for a computation without parameters.
void expect_agrees(const Reference& reference, const Run& run);

}  // namespace models
