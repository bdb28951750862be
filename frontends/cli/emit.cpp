#include <filesystem>
#include <ostream>

#include "composit/io/saved_capture.h"
#include "flashlight/cpp/backend.h"
#include "frontends/cli/commands.h"

namespace cli {

int emit(const std::string& folder, std::ostream& out) {
  const composit::SavedCapture capture = composit::load(folder);
  out << flashlight::cpp::source_of(capture.graph, std::filesystem::path(folder).stem()).text;
  return 0;
}

}  // namespace cli
