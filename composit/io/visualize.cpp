#include "composit/io/visualize.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "composit/io/drawing/arrange.h"
#include "composit/io/drawing/dot.h"
#include "composit/io/drawing/index.h"
#include "composit/io/drawing/render.h"
#include "composit/io/drawing/text.h"
#include "composit/io/file.h"
#include "composit/io/log.h"
#include "composit/ir/error.h"

namespace composit {
namespace {

namespace fs = std::filesystem;
using namespace drawing;  // NOLINT: this file is its front door

Diagram arranged(const Graph& graph, const VisualizeOptions& options) {
  Diagram diagram = make_diagram(graph, options.open_bodies);
  dissolve_interleaved(diagram);
  if (options.fold_repeats) fold_repeats(diagram);
  simplify(diagram);
  return diagram;
}

void write_text(const fs::path& path, std::string_view text) {
  io::OutputFile file(path);
  file.write(text);
  file.commit();
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) io::throw_system_error("visualize", folder, error.value());
}

// The files of a picture.
struct Layout {
  std::string title;
  fs::path overview;
  fs::path pages;     // folder
  fs::path contents;  // index.html; empty: none is written
};

Layout layout_of(const fs::path& path, bool is_folder, bool one_page) {
  const std::string title = path.stem().string();
  if (is_folder) return {title, path / "overview.svg", path, path / "index.html"};
  if (one_page) return {title, path, {}, {}};
  fs::path pages = path;
  pages.replace_extension();
  pages += "_pages";
  return {title, path, pages, pages / "index.html"};
}

Links links_from(const fs::path& folder, const Layout& layout) {
  const auto link = [&](const fs::path& file) {
    return file.empty() ? "" : url(file.lexically_relative(folder).string());
  };
  std::string pages = link(layout.pages);
  pages = pages.empty() || pages == "." ? "" : pages + "/";
  return {pages, link(layout.overview), link(layout.contents)};
}

void draw(const Diagram& diagram, const Plan& plan, const Layout& layout,
          const VisualizeOptions& options) {
  const DotWriter writer(diagram, plan);
  std::vector<fs::path> files;
  std::vector<std::string> pages;
  for (uint32_t page = 0; page < plan.pages.size(); ++page) {
    files.push_back(page == 0 ? layout.overview : layout.pages / plan.pages[page].file);
    pages.push_back(writer.page(page, links_from(files.back().parent_path(), layout)));
  }
  const size_t processes =
      options.processes ? options.processes : std::max(1U, std::thread::hardware_concurrency());
  const std::vector<std::string> pictures = render_svg(pages, options.dot, processes);

  if (!layout.pages.empty()) make_folder(layout.pages);
  for (size_t page = 0; page < files.size(); ++page) write_text(files[page], pictures[page]);
  if (!layout.contents.empty())
    write_text(layout.contents, index_html(layout.title, diagram, plan,
                                           links_from(layout.contents.parent_path(), layout)));
}

}  // namespace

void visualize(const Graph& graph, const fs::path& path, const VisualizeOptions& options) {
  const Progress progress("drawing", 1);
  const std::string extension = path.extension().string();
  if (extension == ".dot" || extension == ".gv") {
    write_text(path, to_dot(graph, options));
    if (progress.is_long()) log().info("drew {}", path.string());
    return;
  }
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored) || extension.empty();
  if (!is_folder && extension != ".svg")
    throw UserError(fmt::format(
        "[visualize] expected a file that ends in .svg, .dot or .gv, or a folder, received '{}'",
        path.string()));

  Diagram diagram = arranged(graph, options);
  const bool one_page = items_in(diagram, 0).size() <= options.max_nodes;
  const size_t limit = one_page ? options.max_nodes : std::max<size_t>(options.max_nodes / 2, 2);
  if (!one_page) split(diagram, limit);
  const Plan plan = plan_pages(diagram, limit);
  draw(diagram, plan, layout_of(fs::absolute(path), is_folder, one_page), options);
  if (progress.is_long())
    log().info("drew {}: {} nodes, {} in {:.1f} s", path.string(), graph.size(),
               one_page ? "one page" : fmt::format("{} pages", plan.pages.size()),
               progress.seconds());
}

std::string to_dot(const Graph& graph, const VisualizeOptions& options) {
  const Diagram diagram = arranged(graph, options);
  const Plan plan = plan_pages(diagram, std::numeric_limits<size_t>::max());
  return DotWriter(diagram, plan).page(0, {});
}

}  // namespace composit
