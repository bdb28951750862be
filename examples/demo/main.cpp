// Captures ResNet-50, BERT-base and Stable Diffusion's UNet and VAE decoder, replays and checks
// each on inputs it has not seen, saves and draws them: `./dev demo`. Folders and pictures are
// written to ./demo, or to the folder given.
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "composit/io/visualize.h"
#include "examples/zoo/zoo.h"
#include "flashlight/check.h"
#include "flashlight/trace.h"

namespace {

using zoo::Subject;
using zoo::Tensors;

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The best of a few rounds of each, in turn.
struct Times {
  double eager = 1e9, capture = 1e9, replay = 1e9;
};

template <class Capture>
Times measure(const Subject& subject, const Tensors& inputs, const Capture& captured,
              const std::function<void()>& capture) {
  Times best;
  for (int round = 0; round < 4; ++round) {
    best.eager = std::min(best.eager, seconds([&] { subject.run(inputs); }));
    best.capture = std::min(best.capture, seconds(capture));
    best.replay = std::min(best.replay, seconds([&] { captured(inputs); }));
  }
  return best;
}

// Returns whether the capture passed its check.
bool show(const Subject& subject, const std::filesystem::path& folder) {
  const torch::NoGradGuard no_grad;
  flashlight::TraceSettings settings;
  settings.named = subject.named;
  const Tensors inputs = subject.inputs(1);
  const auto trace = [&] {
    return flashlight::trace_with<Tensors(Tensors)>(settings, subject.run, inputs);
  };
  const auto captured = trace();
  captured(subject.inputs(2));  // runs the model once more, and confirms the capture
  const Times times = measure(subject, inputs, captured, [&] { trace(); });
  const flashlight::CheckReport report = captured.check(subject.inputs(2));
  captured.save(folder / subject.name);
  composit::visualize(captured.graph(), folder / (subject.name + ".svg"));
  const flashlight::Statistics statistics = captured.statistics();
  std::printf("%-16s %10.1f M %7zu %7zu %11.3f %11.3f %12.3g %7zu  %s\n", subject.name.c_str(),
              static_cast<double>(statistics.parameters) / 1e6, statistics.nodes, statistics.calls,
              times.capture / times.eager, times.replay / times.eager, report.largest,
              statistics.guards, report.ok() ? "equal" : "DIFFERENT");
  std::fflush(stdout);
  if (!report) std::fputs(str(report).c_str(), stderr);
  return report.ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 || (argc > 1 && argv[1][0] == '-')) {
    std::fputs(
        "usage: demo [FOLDER]\n\n"
        "Captures the models, checks and draws them. FOLDER, or else 'demo', gets captures and "
        "pictures.\n",
        stderr);
    return argc == 2 && std::string_view(argv[1]) == "--help" ? 0 : 2;
  }
  const std::filesystem::path folder = argc > 1 ? argv[1] : "demo";
  std::filesystem::create_directories(folder);
  std::printf("%-16s %12s %7s %7s %11s %11s %12s %7s\n", "model", "parameters", "nodes", "calls",
              "capture/eag.", "replay/eag.", "largest diff.", "guards");
  bool equal = true;
  for (Subject (*make)() : {zoo::resnet50, zoo::bert_base, zoo::unet, zoo::vae_decoder})
    equal &= show(make(), folder);
  std::printf("folders and pictures: %s\n", std::filesystem::absolute(folder).c_str());
  return equal ? 0 : 1;
}
