// The models of examples/models at full size with random weights, each as one program on a list of
// tensors: what the demo shows and the benchmarks measure.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "flashlight/capture.h"

namespace zoo {

using Tensors = std::vector<at::Tensor>;

struct Subject {
  std::string name;
  std::function<Tensors(const Tensors&)> run;    // one eager run
  std::function<Tensors(uint64_t seed)> inputs;  // fresh ones of the same sizes
  std::vector<flashlight::NamedTensor> named;    // parameters and buffers
  bool grad = false;                             // run with grad mode on
};

Subject resnet50();       // 1×3×224×224, evaluation
Subject resnet18();       // the same
Subject bert_base();      // 1×128 tokens with a mask, evaluation
Subject unet();           // Stable Diffusion 1.5, 32×32 latents, 77 text tokens
Subject vae_decoder();    // Stable Diffusion 1.5, 32×32 latents to 256×256
Subject clip_text();      // 1×77 tokens
Subject small_encoder();  // one transformer layer of width 64

Subject unet(int64_t latents);  // of latents × latents

// In training mode: batch norm updates its statistics, dropout draws.
Subject resnet18_train();
Subject bert_train();  // 4 layers of width 256
// One whole step: forward, backward, SGD with momentum.
Subject resnet18_step();
Subject bert_step();

// Every architecture of examples/models at widths that a test runs in milliseconds, in evaluation
// mode; ResNet in training mode, too.
std::vector<Subject> small_models();

// A number that every element of every result takes part in: what models are differentiated for.
at::Tensor loss_of(const Subject& subject, const Tensors& inputs);
flashlight::Capture<at::Tensor(Tensors)> capture_loss(const Subject& subject,
                                                      const Tensors& inputs);
// The model's tensors of these names.
Tensors named(const Subject& subject, const std::vector<std::string>& names);

// All floating point parameters and buffers become float64.
void to_double(const Subject& subject);
Tensors to_double(Tensors inputs);

}  // namespace zoo
