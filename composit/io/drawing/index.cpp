#include "composit/io/drawing/index.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "composit/io/drawing/label.h"
#include "composit/io/drawing/text.h"

namespace composit::drawing {
namespace {

constexpr std::string_view kStyle = R"(<style>
  body { font: 14px/1.5 Helvetica, Arial, sans-serif; color: #24292f; margin: 2em; }
  h1 { font-size: 20px; }
  main { display: flex; flex-wrap: wrap; gap: 2em; align-items: flex-start; }
  nav { flex: 0 0 22em; }
  figure { flex: 1 1 30em; margin: 0; overflow: auto; max-height: 90vh; }
  figure { border: 1px solid #d0d7de; }
  nav ul { list-style: none; padding-left: 1.2em; margin: 0; }
  a { color: #2f63a8; text-decoration: none; }
  a:hover { text-decoration: underline; }
  .count { color: #6b7280; font-size: 12px; }
  .badge { color: #b5483f; font-weight: bold; }
  .key { border: 1px solid; border-radius: 4px; padding: 0 .5em; margin: 0 .3em .3em 0; }
  .key { font-size: 12px; display: inline-block; }
</style>
)";

class IndexWriter {
 public:
  IndexWriter(const Diagram& diagram, const Plan& plan, const Links& links)
      : diagram_(diagram), plan_(plan), links_(links) {}

  std::string write(const std::string& title) {
    const std::string name = html(shortened(title, 80));
    const std::string overview = html(links_.overview);
    text_ = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    text_ += fmt::format("<title>{}</title>\n{}</head>\n<body>\n<h1>{}</h1>\n", name, kStyle, name);
    text_ +=
        fmt::format("<p>{} nodes on {} pages</p>\n<main>\n<nav>\n<a href=\"{}\">overview</a>\n",
                    diagram_.boxes[0].nodes, plan_.pages.size(), overview);
    write_boxes(0);
    text_ += "</nav>\n<figure>";
    text_ += fmt::format(R"(<object type="image/svg+xml" data="{}"></object>)", overview);
    text_ += "</figure>\n</main>\n<p>Colours:\n";
    write_legend();
    text_ += "</p>\n</body>\n</html>\n";
    return std::move(text_);
  }

 private:
  void write_legend() {
    for (uint8_t kind = 0; kind < static_cast<uint8_t>(OpKind::count_); ++kind) {
      const Colours& paint = colours(static_cast<OpKind>(kind));
      text_ +=
          fmt::format("<span class=\"key\" style=\"background: {}; border-color: {}\">{}</span>\n",
                      paint.fill, paint.line, paint.name);
    }
  }

  void write_boxes(uint32_t parent) {
    text_ += "<ul>\n";
    for (const Member& member : diagram_.boxes[parent].members)
      if (member.is_box) write_box(member.index);
    text_ += "</ul>\n";
  }

  // A box with boxes inside can be folded; all but the outermost are folded at first.
  void write_box(uint32_t index) {
    const Box& box = diagram_.boxes[index];
    const bool has_boxes = std::any_of(box.members.begin(), box.members.end(),
                                       [](const Member& member) { return member.is_box; });
    text_ += "<li>";
    if (has_boxes) text_ += box.parent == 0 ? "<details open><summary>" : "<details><summary>";
    write_title(index);
    if (has_boxes) {
      text_ += "</summary>\n";
      write_boxes(index);
      text_ += "</details>";
    }
    text_ += "</li>\n";
  }

  void write_title(uint32_t index) {
    const Box& box = diagram_.boxes[index];
    const std::string title = html(shortened(title_of(box), 80));
    const uint32_t page = plan_.page_of_box[index];
    text_ += page == kNone ? title
                           : fmt::format(R"(<a href="{}">{}</a>)",
                                         html(links_.pages + url(plan_.pages[page].file)), title);
    if (box.repeats > 1) text_ += fmt::format(R"( <span class="badge">×{}</span>)", box.repeats);
    text_ += fmt::format(R"( <span class="count">{}</span>)", box.nodes);
  }

  const Diagram& diagram_;
  const Plan& plan_;
  const Links& links_;
  std::string text_;
};

}  // namespace

std::string index_html(const std::string& title, const Diagram& diagram, const Plan& plan,
                       const Links& links) {
  return IndexWriter(diagram, plan, links).write(title);
}

}  // namespace composit::drawing
