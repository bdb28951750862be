#include "composit/io/drawing/dot.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>

#include "composit/io/drawing/label.h"
#include "composit/io/drawing/text.h"

namespace composit::drawing {
namespace {

// Writes one page.
class PageWriter {
 public:
  PageWriter(const Diagram& diagram, const Plan& plan, uint32_t page, const Links& links)
      : diagram_(diagram), plan_(plan), page_(page), top_(plan.pages[page].box), links_(links) {}

  std::string write(const std::vector<std::vector<uint32_t>>& sources,
                    const std::vector<std::vector<uint32_t>>& targets) {
    open_page();
    write_members(top_, 1);
    for (uint32_t item : items_) {
      for (uint32_t source : sources[item]) add_edge(source, item);
      for (uint32_t target : targets[item]) add_edge(item, target);
    }
    write_edges();
    return std::move(text_) + "}\n";
  }

 private:
  template <class... Parts>
  void line(int depth, fmt::format_string<Parts...> format, Parts&&... parts) {
    text_.append(static_cast<size_t>(2 * depth), ' ');
    text_ += fmt::format(format, std::forward<Parts>(parts)...) + "\n";
  }

  void open_page() {
    text_ = fmt::format(R"(digraph page {{
  graph [fontname="{0}", fontsize=11, fontcolor="{1}", bgcolor=white, pad=0.3, nodesep=0.25,
    ranksep=0.3, labelloc=t, labeljust=l, target="_top", tooltip=" ", label=<{2}>];
  node [shape=box, style="rounded,filled", fontname="{0}", fontsize=12, fontcolor="{1}",
    margin="0.1,0.05", height=0.3];
  edge [color="#8c959f", arrowsize=0.6, tooltip=" "];
)",
                        "Helvetica,Arial,sans-serif", kDark, trail());
  }

  // The path to this page: "contents / unet / down_blocks.0", each a link.
  std::string trail() const {
    if (top_ == 0 && links_.contents.empty()) return "";
    std::vector<uint32_t> boxes;
    for (uint32_t box = top_; box != 0; box = diagram_.boxes[box].parent) boxes.push_back(box);
    std::vector<std::string> cells;
    if (!links_.contents.empty()) cells.push_back(cell("contents", links_.contents));
    cells.push_back(cell("overview", top_ == 0 ? "" : links_.overview));
    for (size_t i = boxes.size(); i-- > 0;)
      cells.push_back(
          cell(title_with_repeats(diagram_.boxes[boxes[i]]), i == 0 ? "" : page_link(boxes[i])));
    return fmt::format(R"(<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="3"><TR>{}</TR></TABLE>)",
                       fmt::join(cells, "<TD>/</TD>"));
  }

  static std::string cell(const std::string& text, const std::string& link) {
    if (link.empty()) return fmt::format("<TD>{}</TD>", bold(text));
    return fmt::format(R"(<TD HREF="{}"><FONT COLOR="#2f63a8"><U>{}</U></FONT></TD>)", html(link),
                       label(text));
  }

  std::string page_link(uint32_t box) const {
    const uint32_t page = plan_.page_of_box[box];
    return page == kNone ? "" : link_to(page);
  }
  std::string link_to(uint32_t page) const {
    return page == 0 ? links_.overview : links_.pages + url(plan_.pages[page].file);
  }

  // ---- boxes and items --------------------------------------------------------------------------

  bool is_closed(uint32_t box) const { return box != top_ && plan_.page_of_box[box] != kNone; }

  void write_members(uint32_t box, int depth) {
    for (const Member& member : diagram_.boxes[box].members) {
      if (!member.is_box)
        write_item(member.index, depth);
      else if (is_closed(member.index))
        write_closed(member.index, depth);
      else
        write_cluster(member.index, depth);
    }
  }

  void write_cluster(uint32_t index, int depth) {
    const Box& box = diagram_.boxes[index];
    line(depth, "subgraph cluster_{} {{", index);
    line(depth + 1, R"(label=<{}>; tooltip={};)", cluster_label(box),
         quoted(shortened(box.path, 500)));
    line(depth + 1, R"(style="rounded,filled"; fillcolor="{}"; color="{}"; penwidth={};)",
         depth % 2 == 1 ? "#f8f9fb" : "#ffffff", box.repeats > 1 ? kRed : "#c8cfd8",
         box.repeats > 1 ? 1.4 : 1.0);
    write_members(index, depth + 1);
    line(depth, "}}");
  }

  void write_item(uint32_t index, int depth) {
    const Item& item = diagram_.items[index];
    const Colours& paint = colours(item.kind);
    line(depth, R"(n{} [label=<{}>, fillcolor="{}", color="{}", tooltip={}];)", index,
         item_label(item, diagram_.boxes[item.box].path), paint.fill,
         item.remarks.empty() && item.writes.empty() ? paint.line : kRed,
         quoted(shortened(item.tooltip, 800)));
    items_.push_back(index);
  }

  void write_closed(uint32_t index, int depth) {
    const Box& box = diagram_.boxes[index];
    for (uint32_t item : items_in(diagram_, index)) {
      shown_as_[item] = index;
      items_.push_back(item);
    }
    line(depth,
         R"(b{} [label=<{}>, fillcolor="#ffffff", color="{}", penwidth=1.6, URL={}, tooltip={}];)",
         index, closed_label(box, summary_of(index)), box.repeats > 1 ? kRed : "#57606a",
         quoted(page_link(index)), quoted(shortened(box.path, 500)));
  }

  // The most frequent operations: "12 conv2d".
  std::vector<std::string> summary_of(uint32_t box) const {
    std::map<std::string, size_t> counts;
    std::vector<std::pair<uint32_t, size_t>> pending{{box, 1}};  // boxes, and how often they occur
    while (!pending.empty()) {
      const auto [next, times] = pending.back();
      pending.pop_back();
      for (const Member& member : diagram_.boxes[next].members) {
        const Item* item = member.is_box ? nullptr : &diagram_.items[member.index];
        if (member.is_box)
          pending.emplace_back(member.index, times * diagram_.boxes[member.index].repeats);
        else if (item->kind != OpKind::input && item->kind != OpKind::output)
          counts[item->title] += times;
      }
    }
    std::vector<std::pair<size_t, std::string>> order;
    for (const auto& [title, count] : counts) order.emplace_back(count, title);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::string> lines;
    for (size_t i = 0; i < std::min<size_t>(order.size(), 3); ++i)
      lines.push_back(fmt::format("{} {}", order[i].first, order[i].second));
    return lines;
  }

  // ---- edges ------------------------------------------------------------------------------------

  void add_edge(uint32_t from, uint32_t to) {
    const std::string tail = end_of(from, "from");
    const std::string head = end_of(to, "to");
    if (tail != head) edges_.insert({tail, head});
  }

  // An edge from a value that is read all over the page, such as a mask, is drawn lighter, so that
  // it does not hide the rest.
  void write_edges() {
    constexpr size_t kMany = 6;
    std::map<std::string, size_t> readers;
    for (const auto& [from, to] : edges_) ++readers[from];
    for (const auto& [from, to] : edges_)
      line(1, "{} -> {}{};", from, to, readers[from] < kMany ? "" : R"( [color="#ced5dd"])");
  }

  // The node of this page that stands for an item, which may lie elsewhere.
  std::string end_of(uint32_t item, std::string_view direction) {
    if (const auto closed = shown_as_.find(item); closed != shown_as_.end())
      return fmt::format("b{}", closed->second);
    if (plan_.page_of_item[item] == page_) return fmt::format("n{}", item);
    return stub(item, direction);
  }

  // Something outside this page, as coarse as possible: the largest box around it that does not
  // hold this page.
  std::string stub(uint32_t item, std::string_view direction) {
    uint32_t outside = kNone;
    for (uint32_t box = diagram_.items[item].box; !holds_page(box);
         box = diagram_.boxes[box].parent)
      outside = box;
    const std::string id = outside == kNone ? fmt::format("{}_n{}", direction, item)
                                            : fmt::format("{}_b{}", direction, outside);
    if (!stubs_.insert(id).second) return id;
    const std::string title =
        outside == kNone ? name_of(diagram_.items[item]) : full_title(diagram_.boxes[outside]);
    const uint32_t page = outside != kNone && plan_.page_of_box[outside] != kNone
                              ? plan_.page_of_box[outside]
                              : plan_.page_of_item[item];
    line(1, R"({} [label=<{}>, style="rounded,dashed", color="{}", URL={}, tooltip=" "];)", id,
         font(fmt::format("{} {}", direction, title), 10, kGrey), kGrey, quoted(link_to(page)));
    return id;
  }

  static const std::string& name_of(const Item& item) {
    return item.caption.empty() ? item.title : item.caption;
  }
  // By its path where it has one; a part of a divided scope has its scope's.
  std::string full_title(const Box& box) const {
    return box.repeats > 1 || box.path == diagram_.boxes[box.parent].path ? title_of(box)
                                                                          : box.path;
  }

  bool holds_page(uint32_t box) const {
    for (uint32_t around = top_; around != kNone; around = diagram_.boxes[around].parent)
      if (around == box) return true;
    return false;
  }

  const Diagram& diagram_;
  const Plan& plan_;
  uint32_t page_;
  uint32_t top_;
  const Links& links_;
  std::string text_;
  std::vector<uint32_t> items_;            // on this page, those in closed boxes included
  std::map<uint32_t, uint32_t> shown_as_;  // items in closed boxes
  std::set<std::string> stubs_;
  std::set<std::pair<std::string, std::string>> edges_;
};

}  // namespace

DotWriter::DotWriter(const Diagram& diagram, const Plan& plan)
    : diagram_(diagram),
      plan_(plan),
      sources_(diagram.items.size()),
      targets_(diagram.items.size()) {
  for (const Edge& edge : diagram.edges) {
    sources_[edge.to].push_back(edge.from);
    targets_[edge.from].push_back(edge.to);
  }
}

std::string DotWriter::page(uint32_t page, const Links& links) const {
  return PageWriter(diagram_, plan_, page, links).write(sources_, targets_);
}

}  // namespace composit::drawing
