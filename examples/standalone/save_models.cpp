// Captures of models at full size, for programs that need no LibTorch.
//
//   save_models FOLDER
#include <ATen/core/grad_mode.h>

#include <filesystem>
#include <iostream>

#include "examples/zoo/zoo.h"
#include "flashlight/trace.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER\n";
    return 2;
  }
  const at::NoGradGuard no_grad;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  for (const zoo::Subject& subject : {zoo::resnet18(), zoo::bert_base()}) {
    flashlight::TraceSettings settings;
    settings.named = subject.named;
    const auto captured = flashlight::trace_with<zoo::Tensors(zoo::Tensors)>(settings, subject.run,
                                                                             subject.inputs(1));
    captured.save(folder / subject.name);
  }
}
