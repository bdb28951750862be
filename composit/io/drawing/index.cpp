#include "composit/io/drawing/index.h"

#include <spdlog/fmt/fmt.h>

#include "composit/io/drawing/text.h"

namespace composit::drawing {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Graph</title>
<style>
  body { font: 14px/1.5 Helvetica, Arial, sans-serif; color: #24292f; margin: 2em; }
  main { display: flex; flex-wrap: wrap; gap: 2em; align-items: flex-start; }
  nav { flex: 0 0 22em; }
  figure { flex: 1 1 30em; margin: 0; overflow: auto; max-height: 90vh; border: 1px solid #d0d7de; }
  ul { list-style: none; padding-left: 1.2em; margin: 0; }
  nav > ul { padding-left: 0; }
  a { color: #2f63a8; text-decoration: none; }
  a:hover { text-decoration: underline; }
  .count { color: #6b7280; font-size: 12px; }
  .badge { color: #b5483f; font-weight: bold; }
  .key { border: 1px solid; border-radius: 4px; padding: 0 .5em; margin: 0 .3em .3em 0; }
  .key { font-size: 12px; display: inline-block; }
</style>
</head>
<body>
)";

class IndexWriter {
 public:
  IndexWriter(const Diagram& diagram, const Plan& plan, const Links& links)
      : diagram_(diagram), plan_(plan), links_(links) {}

  std::string write() {
    text_ = kHead;
    text_ += fmt::format("<p>{} nodes on {} pages.</p>\n<p>", diagram_.boxes[0].nodes,
                         plan_.pages.size());
    for (uint8_t kind = 0; kind < static_cast<uint8_t>(OpKind::count_); ++kind) {
      const Colours& paint = colours(static_cast<OpKind>(kind));
      text_ +=
          fmt::format(R"(<span class="key" style="background: {}; border-color: {}">{}</span>)",
                      paint.fill, paint.line, paint.name);
    }
    text_ +=
        fmt::format("</p>\n<main>\n<nav>\n<a href=\"{}\">overview</a>\n", html(links_.overview));
    write_boxes(0);
    text_ += fmt::format(
        "</nav>\n<figure><object type=\"image/svg+xml\" "
        "data=\"{}\"></object></figure>\n</main>\n</body>\n</html>\n",
        html(links_.overview));
    return std::move(text_);
  }

 private:
  void write_boxes(uint32_t parent) {
    text_ += "<ul>\n";
    for (const Member& member : diagram_.boxes[parent].members)
      if (member.is_box) write_box(member.index);
    text_ += "</ul>\n";
  }

  void write_box(uint32_t index) {
    const Box& box = diagram_.boxes[index];
    const std::string title = html(shortened(title_of(box), 80));
    const uint32_t page = plan_.page_of_box[index];
    text_ += "<li>";
    text_ += page == kNone ? title
                           : fmt::format(R"(<a href="{}">{}</a>)",
                                         html(links_.pages + url(plan_.pages[page].file)), title);
    if (box.repeats > 1) text_ += fmt::format(R"( <span class="badge">×{}</span>)", box.repeats);
    text_ += fmt::format(" <span class=\"count\">{}</span>", box.nodes);
    bool has_boxes = false;
    for (const Member& member : box.members) has_boxes = has_boxes || member.is_box;
    if (has_boxes) write_boxes(index);
    text_ += "</li>\n";
  }

  const Diagram& diagram_;
  const Plan& plan_;
  const Links& links_;
  std::string text_;
};

}  // namespace

std::string index_html(const Diagram& diagram, const Plan& plan, const Links& links) {
  return IndexWriter(diagram, plan, links).write();
}

}  // namespace composit::drawing
