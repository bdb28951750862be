#include "composit/io/drawing/label.h"

#include <spdlog/fmt/fmt.h>

#include "composit/io/drawing/text.h"

namespace composit::drawing {
namespace {

constexpr size_t kMaxText = 60;    // characters of one text
constexpr size_t kMaxShared = 46;  // characters of a line that several names share
constexpr size_t kMaxLines = 8;    // of one sort in a node

// The last of the lines is "and 3 more" where there are too many.
void add_lines(std::vector<std::string>& lines, const std::vector<std::string>& texts,
               std::string_view colour) {
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i + 1 == kMaxLines && texts.size() > kMaxLines) {
      lines.push_back(font(fmt::format("and {} more", texts.size() - i), 9, colour));
      return;
    }
    lines.push_back(font(texts[i], 9, colour));
  }
}

std::string badge(const Box& box) {
  if (box.repeats == 1) return "";
  return fmt::format(R"( <FONT POINT-SIZE="11" COLOR="{}"><B>×{}</B></FONT>)", kRed, box.repeats);
}

std::string size_text(const Box& box) {
  const std::string nodes = box.nodes == 1 ? "1 node" : fmt::format("{} nodes", box.nodes);
  return box.repeats == 1 ? nodes : nodes + " each";
}

// As seen from the item's scope.
std::string relative_name(std::string_view name, const Item& item, const std::string& path) {
  for (const std::string& scope : {path, item.caption})
    if (!scope.empty() && name.starts_with(scope + ".")) name.remove_prefix(scope.size() + 1);
  return shortened(name, kMaxText / 2);
}

// The dtype only where it is not the item's own.
std::string_view relative_type(std::string_view type, const Item& item) {
  const std::string_view own = item.types.empty() ? std::string_view() : item.types[0];
  const size_t dtype = own.find(' ');
  if (dtype != std::string_view::npos && type.starts_with(own.substr(0, dtype + 1)))
    type.remove_prefix(dtype + 1);
  return type;
}

// Names with something in common, a few on a line: "weight, bias  64".
class SharedLines {
 public:
  void add(const std::string& name, const std::string& prefix, const std::string& suffix) {
    const size_t length = names_.size() + name.size() + prefix.size() + suffix.size();
    if (!names_.empty() && (prefix != prefix_ || suffix != suffix_ || length > kMaxShared))
      end_line();
    names_ += (names_.empty() ? "" : ", ") + name;
    prefix_ = prefix;
    suffix_ = suffix;
  }
  std::vector<std::string> take() {
    if (!names_.empty()) end_line();
    return std::move(lines_);
  }

 private:
  void end_line() {
    lines_.push_back(prefix_ + names_ + suffix_);
    names_.clear();
  }

  std::vector<std::string> lines_;
  std::string prefix_, names_, suffix_;
};

}  // namespace

std::string title_of(const Box& box) {
  if (box.repeats == 1) return box.name;
  const size_t digits = box.last_name.find_last_not_of("0123456789") + 1;
  return box.name + " … " + box.last_name.substr(digits);
}

std::string title_with_repeats(const Box& box) {
  return box.repeats == 1 ? title_of(box) : fmt::format("{} ×{}", title_of(box), box.repeats);
}

std::string label(std::string_view text) {
  // Graphviz wants no element without text.
  return text.empty() ? "(unnamed)" : html(shortened(text, kMaxText));
}

std::string bold(std::string_view text) { return fmt::format("<B>{}</B>", label(text)); }

std::string font(std::string_view text, int size, std::string_view colour) {
  return fmt::format(R"(<FONT POINT-SIZE="{}" COLOR="{}">{}</FONT>)", size, colour, label(text));
}

// A table, because graphviz sets plain lines of different size too close.
std::string stacked(const std::vector<std::string>& lines) {
  std::string rows;
  for (const std::string& line : lines) rows += fmt::format("<TR><TD>{}</TD></TR>", line);
  return fmt::format(R"(<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="1">{}</TABLE>)", rows);
}

std::string item_label(const Item& item, const std::string& path) {
  std::vector<std::string> lines;
  if (!item.caption.empty()) lines.push_back(font(item.caption, 9, kGrey));
  lines.push_back(bold(item.title));
  add_lines(lines, item.types, kGrey);
  SharedLines satellites, writes;
  for (const Satellite& satellite : item.satellites)
    satellites.add(relative_name(satellite.name, item, path), "",
                   fmt::format("  {}", relative_type(satellite.type, item)));
  for (const std::string& name : item.writes)
    writes.add(relative_name(name, item, path), "writes ", "");
  add_lines(lines, satellites.take(), kBrown);
  add_lines(lines, writes.take(), kRed);
  add_lines(lines, item.remarks, kRed);
  return stacked(lines);
}

std::string closed_label(const Box& box, const std::vector<std::string>& summary) {
  std::vector<std::string> lines{bold(title_of(box)) + badge(box), font(size_text(box), 10, kDark)};
  add_lines(lines, summary, kGrey);
  return stacked(lines);
}

std::string cluster_label(const Box& box) { return label(title_of(box)) + badge(box); }

}  // namespace composit::drawing
