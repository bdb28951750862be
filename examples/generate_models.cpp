// Writes what the cpp and cuda backends make of models of LibTorch: those of examples/generated.
//
//   generate_models [--check] FOLDER
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

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

// Of sequences of so many tokens.
examples::SizedProgram bert_of_sizes() {
  const at::NoGradGuard no_grad;
  const zoo::Subject bert = zoo::bert_base();
  flashlight::TraceSettings settings;
  settings.named = bert.named;
  examples::SizedProgram program = {"bert_base_sizes", {}};
  for (const int64_t tokens : {8, 128, 384, 512}) {
    const zoo::Tensors inputs = {at::zeros({1, tokens}, at::kLong),
                                 at::ones({1, tokens}, at::kLong)};
    const auto captured =
        flashlight::trace_with<zoo::Tensors(zoo::Tensors)>(settings, bert.run, inputs);
    program.shown.push_back({captured.graph(), {{"tokens", tokens}}});
  }
  return program;
}

}  // namespace

int main(int argc, char** argv) {
  return examples::generate(
      argc, argv, {.link_aten = true}, [] { return std::vector{program_of(zoo::bert_base())}; },
      [] { return std::vector{bert_of_sizes()}; });
}
