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
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/mosaic/serve.h"
#include "composit/io/safetensors.h"
#include "composit/ir/error.h"
#include "examples/zoo/zoo.h"
#include "flashlight/package/backend.h"
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
                       {"sd_vae_decoder", zoo::vae_decoder},
                       {"resnet18_step", zoo::resnet18_step, 2},  // of four images each
                       {"bert_step", zoo::bert_step}};

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

composit::Array array_of(const at::Tensor& tensor) {
  return flashlight::tracer::to_array(tensor.detach().contiguous());
}

// A subject that begins anew: a training step writes its parameters and draws.
class Beginning {
 public:
  explicit Beginning(const Subject& subject) : subject_(subject) {
    if (!subject.grad) return;  // nothing is written
    for (const flashlight::NamedTensor& named : subject.named)
      values_.push_back(named.tensor.detach().clone());
  }
  void restore() const {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < values_.size(); ++i) subject_.named[i].tensor.copy_(values_[i]);
    torch::manual_seed(flashlight::package::kDefaultSeed);
  }
  // The results of a run from here on, and for a training step all that it may have written.
  benchmarks::Results results(const Tensors& inputs) const {
    restore();
    std::vector<composit::Array> outputs;
    for (const at::Tensor& output : subject_.run(inputs)) outputs.push_back(array_of(output));
    benchmarks::Results results = benchmarks::named_outputs(outputs);
    if (subject_.grad)
      for (const flashlight::NamedTensor& named : subject_.named)
        results.emplace(named.name, array_of(named.tensor.clone()));
    return results;
  }

 private:
  const Subject& subject_;
  Tensors values_;
};

// Equal in every process: a subject that trains has made a step, and drawn.
Subject subject_of(const Case& which) {
  torch::manual_seed(flashlight::package::kDefaultSeed);
  return which.make();
}

void capture(const Case& which, const std::filesystem::path& folder) {
  const Subject subject = subject_of(which);
  const at::AutoGradMode grad(subject.grad);
  const Tensors inputs = inputs_of(which, subject);
  const Beginning beginning(subject);
  beginning.restore();
  flashlight::TraceSettings settings;
  settings.named = subject.named;
  const auto captured = flashlight::trace_with<Tensors(Tensors)>(settings, subject.run, inputs);
  beginning.restore();  // what is saved is what parameters are now
  captured.save(folder / which.name);
  zoo::to_double(subject);
  benchmarks::Results results = Beginning(subject).results(zoo::to_double(inputs));
  std::set<std::string> written;
  for (const composit::Mutation& mutation : captured.graph().mutations())
    written.insert(composit::input_name(*mutation.target.node));
  std::erase_if(results, [&](const auto& one) {
    return !one.first.starts_with("output.") && !written.contains(one.first);
  });
  benchmarks::save_results(results, folder / (std::string(which.name) + ".reference.safetensors"));
}

void serve(const Case& which, int threads) {
  const Subject subject = subject_of(which);
  const Tensors inputs = inputs_of(which, subject);
  const Beginning beginning(subject);
  const c10::InferenceMode inference(!subject.grad);
  at::set_num_threads(threads);
  benchmarks::serve({.about = {{"compile_seconds", 0}},
                     .run = [&] { subject.run(inputs); },
                     .results = [&] { return beginning.results(inputs); }});
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
