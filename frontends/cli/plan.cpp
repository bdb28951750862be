#include <filesystem>
#include <ostream>

#include "composit/io/drawing/render.h"
#include "composit/io/file.h"
#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
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

// None where there is no file.
flashlight::mosaic::Choices read_choices(const std::string& file) {
  if (file.empty()) return {};
  return flashlight::mosaic::parse_choices(composit::io::MappedFile::open(file)->text());
}

}  // namespace

int plan(const PlanArguments& arguments, std::ostream& out) {
  if (!arguments.arena.empty()) check_ending(arguments.arena, false);
  if (!arguments.graph.empty()) check_ending(arguments.graph, true);
  const flashlight::mosaic::Plan plan = flashlight::mosaic::plan_of(
      load_to_compile(arguments.folder).graph,
      {.name = fs::path(arguments.folder).stem(), .choices = read_choices(arguments.choices)});
  if (!arguments.arena.empty()) write_text(arguments.arena, flashlight::mosaic::arena_svg(plan));
  if (!arguments.graph.empty()) {
    const std::string dot = flashlight::mosaic::kernels_dot(plan);
    const bool is_svg = fs::path(arguments.graph).extension() == ".svg";
    write_text(arguments.graph,
               is_svg ? composit::drawing::render_svg({dot}, "dot", 1).at(0) : dot);
  }
  if (arguments.arena.empty() && arguments.graph.empty()) out << print(plan);
  return 0;
}

}  // namespace cli
