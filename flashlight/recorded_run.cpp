#include "flashlight/recorded_run.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include <memory>
#include <utility>
#include <vector>

#include "composit/ir/error.h"

namespace flashlight {

using composit::UserError;

namespace {

// The numbers of writes to what a program may write.
std::vector<int64_t> versions(const TracedProgram& program, const FlatValues& arguments) {
  std::vector<int64_t> all;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined() && !tensor.is_inference())
      all.push_back(static_cast<int64_t>(tensor._version()));
  };
  for (const at::Tensor& tensor : arguments.tensors) add(tensor);
  if (program.named)
    for (const NamedTensor& named : program.named()) add(named.tensor);
  return all;
}

// What `run` gives, recorded. Where the tracer refuses an operator, or the recording at its end,
// the program's results all the same: those of its run, or of another one if nothing was written
// yet.
FlatValues results_of(const std::function<FlatValues()>& run, const LastResults& last,
                      const AdaptiveProgram& program, const FlatValues& arguments,
                      std::string& why) {
  const std::vector<int64_t> before = versions(program, arguments);
  at::Generator draws = at::globalContext().defaultGenerator(c10::kCPU);
  const at::Tensor drawn_before = draws.get_state();
  last->reset();
  FlatValues results;
  try {
    results = run();
  } catch (const UserError& error) {
    why = error.what();
    if (why.starts_with("[capture]")) throw;
    if (!last->has_value()) {
      if (versions(program, arguments) != before) throw;
      draws.set_state(drawn_before);
      return program.run(arguments.tensors);
    }
  }
  if (last->has_value()) {
    results = std::move(**last);
    results.of_look = true;
    last->reset();
  }
  return results;
}

}  // namespace

RecordedRun recorded_run(const AdaptiveProgram& program, const FlatValues& arguments,
                         const TraceOptions& options) {
  RecordedRun run;
  run.last = std::make_shared<std::optional<FlatValues>>();
  TracedProgram watched = program;
  watched.run = [run = program.run, last = run.last](const std::vector<at::Tensor>& tensors) {
    FlatValues values = run(tensors);
    *last = values;
    return values;
  };
  const auto recording = [&] {
    run.capture = CaptureBase::capture(std::move(watched), arguments, options);
    return FlatValues();
  };
  run.results = results_of(recording, run.last, program, arguments, run.why);
  if (program.beyond) run.beyond = program.beyond();
  return run;
}

FlatValues look_again(const CaptureBase& capture, const LastResults& last,
                      const AdaptiveProgram& program, const FlatValues& arguments) {
  std::string why;
  return results_of([&] { return capture.call(arguments.tensors); }, last, program, arguments, why);
}

}  // namespace flashlight
