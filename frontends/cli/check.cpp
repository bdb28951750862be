#include <ATen/Context.h>

#include <ostream>

#include "composit/ir/error.h"
#include "flashlight/capture.h"
#include "flashlight/check_compiled.h"
#include "flashlight/difference.h"
#include "frontends/cli/commands.h"
#include "tracer/convert.h"

namespace cli {

int check_grad(const std::string& folder, size_t loss, std::ostream& out) {
  const auto captured = flashlight::CaptureBase::load(folder);
  const auto report = captured.check_grad(captured.example_arguments(), loss);
  out << str(report);
  return report.exit_code();
}

int check_compiled(const CheckCompiledArguments& arguments, std::ostream& out) {
  const auto captured = flashlight::CaptureBase::load(arguments.folder);
  flashlight::CompileSettings settings;
  settings.backend = {arguments.backend->name(), arguments.options};
  const auto report = flashlight::check_compiled_flat(
      captured, settings, captured.example_arguments(), {.every_node = arguments.every_node});
  out << str(report);
  return report.exit_code();
}

void replay_example(const std::string& folder) {
  composit::SavedCapture saved = composit::load(folder);
  // What another file was imported as has none of a program's structure.
  if (saved.example_outputs.empty() || !saved.properties.contains("arguments")) return;
  const auto captured = flashlight::CaptureBase::load(folder);
  saved.example_outputs.clear();
  for (const at::Tensor& result : captured.replay(captured.example_arguments()))
    saved.example_outputs.push_back(flashlight::tracer::to_array(result.detach()));
  composit::save(saved, folder);
}

int check(const std::string& folder, std::ostream& out) {
  const auto captured = flashlight::CaptureBase::load(folder);
  at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
  if (captured.example_generator().defined())  // its draws are those of the example
    generator.set_state(captured.example_generator());
  if (captured.example_results().empty() && !captured.graph().outputs().empty())
    throw composit::UserError("[check] " + folder +
                              " has no results to compare with: no run of the program made it");
  const auto results = captured.replay(captured.example_arguments());
  const auto& expected = captured.example_results();
  bool equal = results.size() == expected.size();
  for (size_t i = 0; i < results.size() && i < expected.size(); ++i) {
    const flashlight::Distance apart = flashlight::distance(results[i], expected[i]);
    out << "result " << i << ": " << (apart.equal ? "equal" : "different")
        << ", largest difference " << apart.absolute << " (" << apart.ulp << " ULP)\n";
    equal = equal && apart.equal;
  }
  return equal ? 0 : 1;
}

}  // namespace cli
