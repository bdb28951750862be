// The cost of capturing and replaying, beside an eager run of the same model in the same round:
// `./dev bench capture`.
//
// Options: --rounds N (default 7), --only NAME.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "benchmarks/report.h"
#include "examples/zoo/zoo.h"
#include "flashlight/trace.h"

namespace {

using benchmarks::Report;
using benchmarks::seconds;
using zoo::Subject;
using zoo::Tensors;

// `looks`: the first call runs the program once more, to confirm the capture.
flashlight::Capture<Tensors(Tensors)> capture(const Subject& subject, const Tensors& inputs,
                                              bool looks = false) {
  flashlight::TraceSettings settings;
  settings.named = subject.named;
  settings.seen_once = !looks;
  return flashlight::trace_with<Tensors(Tensors)>(settings, subject.run, inputs);
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         at::equal(a.contiguous().view(-1).view(at::kByte),
                   b.contiguous().view(-1).view(at::kByte));
}

// All tensors of the model, for comparing what a run has written.
Tensors snapshot(const Subject& subject) {
  Tensors copies;
  for (const auto& named : subject.named) copies.push_back(named.tensor.detach().clone());
  return copies;
}
void restore(const Subject& subject, const Tensors& values) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < values.size(); ++i) subject.named[i].tensor.copy_(values[i]);
}

// 7.1: results and everything the program writes, on inputs the capture has not seen.
void measure_bits(const Subject& subject, Report& report) {
  const at::AutoGradMode grad(subject.grad);
  const auto captured = capture(subject, subject.inputs(1));
  size_t differing = 0;
  const bool writes = !captured.graph().mutations().empty();
  for (uint64_t seed : {2, 3}) {
    const Tensors inputs = subject.inputs(seed);
    const Tensors before = writes ? snapshot(subject) : Tensors();
    torch::manual_seed(seed);
    const Tensors expected = subject.run(inputs);
    const Tensors expected_state = writes ? snapshot(subject) : Tensors();
    if (writes) restore(subject, before);
    torch::manual_seed(seed);
    const Tensors actual = captured(inputs);
    for (size_t i = 0; i < expected.size(); ++i) differing += !same_bits(actual[i], expected[i]);
    for (size_t i = 0; i < expected_state.size(); ++i)
      differing += !same_bits(subject.named[i].tensor.detach(), expected_state[i]);
  }
  report.target("7.1 tensors that differ in a bit, " + subject.name, "==", 0,
                static_cast<double>(differing));
}

// 7.2: eager, capture and replay in turn, every round.
void measure_times(const Subject& subject, int rounds, bool capture_target, Report& report) {
  const at::AutoGradMode grad(subject.grad);
  const Tensors inputs = subject.inputs(1);
  const auto captured = capture(subject, inputs);
  std::vector<double> eager, capturing, replay;
  const int repeats = subject.name == "small_encoder" ? 200 : 1;
  const auto repeated = [&](const std::function<void()>& work) {
    return seconds([&] {
      for (int i = 0; i < repeats; ++i) work();
    });
  };
  for (int round = -1; round < rounds; ++round) {
    const double times[] = {repeated([&] { subject.run(inputs); }),
                            repeated([&] { capture(subject, inputs); }),
                            repeated([&] { captured(inputs); })};
    if (round < 0) continue;  // warm-up
    eager.push_back(times[0]);
    capturing.push_back(times[1]);
    replay.push_back(times[2]);
  }
  report.raw(subject.name, "eager", eager);
  report.raw(subject.name, "capture", capturing);
  report.raw(subject.name, "replay", replay);
  if (capture_target)
    report.target("7.2 capture / eager, " + subject.name, "<=", 1.05,
                  benchmarks::median_ratio(capturing, eager));
  report.target("7.2 replay / eager, " + subject.name, "<=", 1.0,
                benchmarks::median_ratio(replay, eager));
}

// 1.6: the first call of a capture, which runs the program, replays and compares.
void measure_first_call(const Subject& subject, int rounds, Report& report) {
  const at::AutoGradMode grad(subject.grad);
  const Tensors inputs = subject.inputs(1), others = subject.inputs(2);
  std::vector<double> eager, first;
  size_t nodes = 0;
  for (int round = -1; round < rounds; ++round) {
    const auto captured = capture(subject, inputs, true);
    nodes = captured.graph().size();
    const double plain = seconds([&] { subject.run(others); });
    const double look = seconds([&] { captured(others); });
    if (captured.trust() != flashlight::Trust::confirmed)
      report.target("1.6 confirmed by its first call, " + subject.name, "==", 1, 0);
    if (round < 0) continue;
    eager.push_back(plain);
    first.push_back(look);
  }
  report.raw(subject.name, "first call", first);
  report.target("1.6 first call / eager, " + subject.name, "<=", 3.0,
                benchmarks::median_ratio(first, eager));
  const double beyond = benchmarks::median(first) - 2 * benchmarks::median(eager);
  std::printf("  %s: a first call takes %.1f us per node beyond two eager runs\n",
              subject.name.c_str(), 1e6 * beyond / static_cast<double>(nodes));
}

// 7.2: an operator on one element, as it is and inside a scope.
void measure_recording(int rounds, Report& report) {
  constexpr int kOperators = 20000;
  const torch::NoGradGuard no_grad;
  const at::Tensor one = torch::ones({1});
  std::vector<double> eager, recorded, difference;
  const auto chain = [&] {
    at::Tensor x = one;
    for (int i = 0; i < kOperators; ++i) x = x.add(one);
  };
  for (int round = -1; round < rounds; ++round) {
    const double plain = seconds(chain) / kOperators;
    flashlight::TraceScope scope;
    const double traced = seconds(chain) / kOperators;
    if (round < 0) continue;
    eager.push_back(plain);
    recorded.push_back(traced);
    difference.push_back((traced - plain) * 1e6);
  }
  report.raw("add of one element", "eager", eager);
  report.raw("add of one element", "recorded", recorded);
  report.target("7.2 recording an operator, microseconds", "<=", 1.0,
                benchmarks::median(difference));
}

// 7.3: peak memory of a child process that only runs, against one that captures, and 1.6: one that
// calls the capture, too.
enum class Runs { eager, capture, first_call };

double peak_megabytes(const Subject& (*make)(), Runs runs) {
  int channel[2];
  if (pipe(channel) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    at::set_num_threads(1);  // the parent's pool does not survive a fork
    const Subject& subject = make();
    const at::AutoGradMode grad(subject.grad);
    if (runs == Runs::eager)
      subject.run(subject.inputs(1));
    else if (runs == Runs::capture)
      capture(subject, subject.inputs(1));
    else
      capture(subject, subject.inputs(1), true)(subject.inputs(2));
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const double megabytes = static_cast<double>(usage.ru_maxrss) / 1024;
    if (write(channel[1], &megabytes, sizeof megabytes) < 0) std::abort();
    _exit(0);
  }
  double megabytes = 0;
  if (read(channel[0], &megabytes, sizeof megabytes) != sizeof megabytes) std::abort();
  waitpid(child, nullptr, 0);
  close(channel[0]);
  close(channel[1]);
  return megabytes;
}

template <Subject (*make)()>
const Subject& made() {
  static const Subject subject = make();
  return subject;
}

template <Subject (*make)()>
void measure_memory(const std::string& name, Report& report) {
  const double eager = peak_megabytes(made<make>, Runs::eager),
               captured = peak_megabytes(made<make>, Runs::capture),
               called = peak_megabytes(made<make>, Runs::first_call);
  report.raw(name, "peak memory of eager, capture and first call, MB", {eager, captured, called});
  report.target("1.6 peak memory first call / eager, " + name, "<=", 1.1, called / eager);
  report.target("7.3 peak memory capture / eager, " + name, "<=", 1.05, captured / eager);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 7;
  std::string only;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--only") == 0) only = argv[i + 1];
  }
  const auto wanted = [&](const char* name) { return only.empty() || only == name; };
  Report report("capture");
  if (wanted("memory")) {  // first: children must not inherit what the others allocate
    measure_memory<zoo::resnet50>("resnet50", report);
    measure_memory<zoo::bert_base>("bert_base", report);
    measure_memory<zoo::vae_decoder>("sd_vae_decoder", report);
  }
  if (wanted("recording")) measure_recording(rounds, report);
  struct Entry {
    const char* name;
    Subject (*make)();
    bool timed, capture_target;
  };
  const Entry entries[] = {{"small_encoder", zoo::small_encoder, true, false},
                           {"resnet50", zoo::resnet50, true, true},
                           {"bert_base", zoo::bert_base, true, true},
                           {"clip_text", zoo::clip_text, true, false},
                           {"sd_unet", zoo::unet, true, true},
                           {"sd_vae_decoder", zoo::vae_decoder, true, false},
                           {"resnet18_train", zoo::resnet18_train, false, false},
                           {"bert_train", zoo::bert_train, false, false},
                           {"resnet18_step", zoo::resnet18_step, true, false},
                           {"bert_step", zoo::bert_step, true, false}};
  for (const Entry& entry : entries) {
    if (!wanted(entry.name)) continue;
    const Subject subject = entry.make();
    measure_bits(subject, report);
    if (entry.timed) measure_times(subject, rounds, entry.capture_target, report);
    if (entry.timed) measure_first_call(subject, rounds, report);
  }
  return report.finish();
}
