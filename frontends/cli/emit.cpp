#include "flashlight/mosaic/emit.h"

#include <filesystem>
#include <ostream>

#include "composit/io/saved_capture.h"
#include "flashlight/cpp/backend.h"
#include "frontends/cli/commands.h"

namespace cli {

int emit(const EmitArguments& arguments, std::ostream& out) {
  check_backend("emit", arguments.backend);
  const composit::SavedCapture capture = load_to_compile(arguments.folder);
  const std::string name = std::filesystem::path(arguments.folder).stem();
  if (arguments.backend == "mosaic") {
    const flashlight::mosaic::Plan plan =
        flashlight::mosaic::plan_of(capture.graph, {.name = name});
    out << flashlight::mosaic::emit(plan, name).text;
    return 0;
  }
  flashlight::loops::LowerOptions options;
  options.name = name;
  if (!arguments.link.empty()) options.aten = flashlight::loops::aten_schemas(capture.schemas);
  out << flashlight::cpp::source_of(capture.graph, options).text;
  return 0;
}

}  // namespace cli
