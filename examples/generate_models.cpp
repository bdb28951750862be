// Writes what the cpp and cuda backends make of models of LibTorch: those of examples/generated.
//
//   generate_models [--check] FOLDER
#include <ATen/core/grad_mode.h>

#include "examples/generated_program.h"
#include "examples/zoo/zoo.h"
#include "flashlight/trace.h"

namespace {

// The same whatever the weights.
examples::Program program_of(const zoo::Subject& subject) {
  const at::NoGradGuard no_grad;
  flashlight::TraceSettings settings;
  settings.named = subject.named;
  const auto captured =
      flashlight::trace_with<zoo::Tensors(zoo::Tensors)>(settings, subject.run, subject.inputs(1));
  return {subject.name, captured.graph()};
}

}  // namespace

int main(int argc, char** argv) {
  return examples::generate(argc, argv, {.link_aten = true},
                            [] { return std::vector{program_of(zoo::bert_base())}; });
}
