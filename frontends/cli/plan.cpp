#include <filesystem>
#include <ostream>

#include "composit/io/drawing/render.h"
#include "composit/io/file.h"
#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "flashlight/mosaic/backend.h"
#include "flashlight/mosaic/draw.h"
#include "frontends/cli/commands.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  composit::io::OutputFile file(path);
  file.write(text);
  file.commit();
}

void check_ending(const std::string& file, bool is_graph) {
  const std::string ending = fs::path(file).extension();
  if (ending == ".svg" || (is_graph && (ending == ".dot" || ending == ".gv"))) return;
  throw composit::UserError("[plan] expected a file that ends in .svg" +
                            std::string(is_graph ? ", .dot or .gv" : "") + ", received '" + file +
                            "'");
}

void draw(const PlanArguments& arguments, const composit::SavedCapture& capture,
          const composit::CompileOptions& options) {
  if (arguments.backend->name() != "mosaic")
    throw composit::UserError("[plan] expected the backend mosaic for a drawing, received '" +
                              arguments.backend->name() + "'");
  if (!arguments.arena.empty()) check_ending(arguments.arena, false);
  if (!arguments.graph.empty()) check_ending(arguments.graph, true);
  const flashlight::mosaic::Plan plan =
      flashlight::mosaic::plan_of(capture.graph, flashlight::mosaic::plan_options(options));
  if (!arguments.arena.empty()) write_text(arguments.arena, flashlight::mosaic::arena_svg(plan));
  if (!arguments.graph.empty()) {
    const std::string dot = flashlight::mosaic::kernels_dot(plan);
    const bool is_svg = fs::path(arguments.graph).extension() == ".svg";
    write_text(arguments.graph,
               is_svg ? composit::drawing::render_svg({dot}, "dot", 1).at(0) : dot);
  }
}

}  // namespace

int plan(const PlanArguments& arguments, std::ostream& out) {
  const composit::SavedCapture capture = load_to_compile(arguments.folder);
  composit::CompileOptions options =
      compile_options(capture, arguments.options, fs::path(arguments.folder).stem());
  options.may_prepare = options.may_update = true;  // as callers of compiled code do
  if (!arguments.arena.empty() || !arguments.graph.empty()) {
    draw(arguments, capture, options);
    return 0;
  }
  out << arguments.backend->plan(capture.graph, options);
  return 0;
}

}  // namespace cli
