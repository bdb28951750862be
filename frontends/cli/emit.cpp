#include <filesystem>
#include <ostream>

#include "composit/io/saved_capture.h"
#include "flashlight/cpp/backend.h"
#include "frontends/cli/commands.h"

namespace cli {

int emit(const std::string& folder, const std::string& link, std::ostream& out) {
  const composit::SavedCapture capture = composit::load(folder);
  flashlight::cpp::LowerOptions options;
  options.name = std::filesystem::path(folder).stem();
  if (!link.empty()) options.aten = flashlight::cpp::aten_schemas(capture.schemas);
  out << flashlight::cpp::source_of(capture.graph, options).text;
  return 0;
}

}  // namespace cli
