#include <ATen/Context.h>

#include <ostream>

#include "composit/family/saved_family.h"
#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "flashlight/capture.h"
#include "flashlight/check_compiled.h"
#include "flashlight/difference.h"
#include "frontends/cli/commands.h"
#include "tracer/convert.h"

namespace cli {

namespace {

// What another file was imported as has none of a program's structure.
bool is_of_program(const composit::SavedCapture& saved) {
  return saved.properties.contains("arguments");
}

flashlight::CaptureBase load_program(const std::string& folder) {
  if (const composit::SavedCapture saved = composit::load(folder);
      !composit::is_family(saved) && !is_of_program(saved))
    throw composit::UserError("[check] " + folder +
                              " was imported, so no program's arguments are known to check it "
                              "with; `flashlight run " +
                              folder + "` compares results with those that were saved with it");
  return flashlight::CaptureBase::load(folder);
}

}  // namespace

int check_grad(const std::string& folder, size_t loss, std::ostream& out) {
  const auto captured = load_program(folder);
  const auto report = captured.check_grad(captured.example_arguments(), loss);
  out << str(report);
  return report.exit_code();
}

int check_compiled(const CheckCompiledArguments& arguments, std::ostream& out) {
  const auto captured = load_program(arguments.folder);
  flashlight::CompileSettings settings;
  settings.backend = {arguments.backend->name(), arguments.options};
  const auto report = flashlight::check_compiled_flat(
      captured, settings, captured.example_arguments(), {.every_node = arguments.every_node});
  out << str(report);
  return report.exit_code();
}

void replay_example(const std::string& folder) {
  composit::SavedCapture saved = composit::load(folder);
  if (saved.example_outputs.empty() || !is_of_program(saved)) return;
  const auto captured = flashlight::CaptureBase::load(folder);
  saved.example_outputs.clear();
  for (const at::Tensor& result : captured.replay(captured.example_arguments()))
    saved.example_outputs.push_back(flashlight::tracer::to_array(result.detach()));
  composit::save(saved, folder);
}

int check(const std::string& folder, std::ostream& out) {
  const auto captured = load_program(folder);
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
