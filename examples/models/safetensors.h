#pragma once

// Reads weights from safetensors files (https://github.com/huggingface/safetensors, "Format"): the
// size of the header, a JSON header with type, shape and place of each tensor, and the data.
//
//   models::ResNet model = models::resnet50();
//   models::load_safetensors(*model, "resnet50.safetensors");
//
// Every error is a std::runtime_error that begins with the file's path.

#include <torch/torch.h>

#include <functional>
#include <map>
#include <string>

namespace models {

/// Gives the name in the module for a name in the file; an empty result leaves the tensor out.
using RenameTensor = std::function<std::string(const std::string& name)>;

/// Fills the parameters and buffers of `module` by name. The file must hold exactly these names, in
/// equal shapes and types; it may leave out buffers `*_ids`, which hold the same in every model and
/// which Python does not save. Otherwise the error says what differs, and the module stays as it
/// was.
void load_safetensors(torch::nn::Module& module, const std::string& path,
                      const RenameTensor& rename = nullptr);

/// All tensors of a file by name.
std::map<std::string, torch::Tensor> read_safetensors(const std::string& path);

}  // namespace models
