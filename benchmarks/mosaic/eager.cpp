// The models of examples/zoo that `./dev bench mosaic` measures: as captures, and as LibTorch runs
// them.
//
//   mosaic_eager --capture CASE FOLDER    writes FOLDER/CASE, and what LibTorch computes in float64
//                                         to FOLDER/CASE.reference.safetensors
//   mosaic_eager --serve CASE THREADS     does as serve.h says
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "benchmarks/mosaic/serve.h"
#include "composit/io/safetensors.h"
#include "composit/ir/error.h"
#include "examples/zoo/zoo.h"
#include "flashlight/trace.h"
#include "tracer/convert.h"

namespace {

using zoo::Subject;
using zoo::Tensors;

struct Case {
  std::string_view name;
  Subject (*make)();
  int64_t batch = 1;  // so many inputs of the subject, joined along dimension 0
};

const Case kCases[] = {{"resnet50", zoo::resnet50},
                       {"resnet50_b8", zoo::resnet50, 8},
                       {"bert_base", zoo::bert_base},
                       {"bert_base_b8", zoo::bert_base, 8},
                       {"clip_text", zoo::clip_text},
                       {"sd_unet", zoo::unet},
                       {"sd_unet_64", [] { return zoo::unet(64); }},
                       {"sd_vae_decoder", zoo::vae_decoder}};

const Case& case_of(std::string_view name) {
  for (const Case& known : kCases)
    if (known.name == name) return known;
  throw composit::UserError("[benchmark] unknown case '" + std::string(name) + "'");
}

Tensors inputs_of(const Case& which, const Subject& subject) {
  std::vector<Tensors> columns;
  for (int64_t i = 0; i < which.batch; ++i) {
    const Tensors inputs = subject.inputs(static_cast<uint64_t>(i) + 1);
    columns.resize(inputs.size());
    for (size_t k = 0; k < inputs.size(); ++k) columns[k].push_back(inputs[k]);
  }
  Tensors joined;
  for (const Tensors& column : columns) joined.push_back(at::cat(column));
  return joined;
}

std::vector<composit::Array> arrays_of(const Tensors& tensors) {
  std::vector<composit::Array> arrays;
  for (const at::Tensor& tensor : tensors)
    arrays.push_back(flashlight::tracer::to_array(tensor.contiguous()));
  return arrays;
}

void capture(const Case& which, const std::filesystem::path& folder) {
  const torch::NoGradGuard no_grad;
  const Subject subject = which.make();
  const Tensors inputs = inputs_of(which, subject);
  flashlight::TraceSettings settings;
  settings.named = subject.named;
  flashlight::trace_with<Tensors(Tensors)>(settings, subject.run, inputs).save(folder / which.name);
  zoo::to_double(subject);
  benchmarks::save_results(arrays_of(subject.run(zoo::to_double(inputs))),
                           folder / (std::string(which.name) + ".reference.safetensors"));
}

void serve(const Case& which, int threads) {
  const c10::InferenceMode inference;
  at::set_num_threads(threads);
  const Subject subject = which.make();
  const Tensors inputs = inputs_of(which, subject);
  benchmarks::serve({.about = {{"compile_seconds", 0}},
                     .run = [&] { subject.run(inputs); },
                     .results = [&] { return arrays_of(subject.run(inputs)); }});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc == 4 ? argv[1] : "";
  try {
    if (command == "--capture") return capture(case_of(argv[2]), argv[3]), 0;
    if (command == "--serve") return serve(case_of(argv[2]), std::atoi(argv[3])), 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fputs("usage: mosaic_eager --capture CASE FOLDER | --serve CASE THREADS\n", stderr);
  return 2;
}
