#include <filesystem>
#include <ostream>

#include "composit/io/saved_capture.h"
#include "frontends/cli/commands.h"

namespace cli {

int emit(const BackendArguments& arguments, std::ostream& out) {
  const composit::SavedCapture capture = load_to_compile(arguments.folder);
  const std::string name = std::filesystem::path(arguments.folder).stem();
  composit::CompileOptions options = compile_options(capture, arguments.options, name);
  options.may_prepare = options.may_update = true;  // as callers of compiled code do
  out << arguments.backend->source(capture.graph, options);
  return 0;
}

}  // namespace cli
