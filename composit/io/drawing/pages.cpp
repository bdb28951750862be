#include "composit/io/drawing/pages.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace composit::drawing {
namespace {

class Planner {
 public:
  Planner(const Diagram& diagram, size_t limit)
      : diagram_(diagram), limit_(limit), sizes_(diagram.boxes.size()) {
    plan_.page_of_box.assign(diagram.boxes.size(), kNone);
    plan_.page_of_item.assign(diagram.items.size(), kNone);
    for (uint32_t box = 0; box < sizes_.size(); ++box) sizes_[box] = items_in(diagram, box).size();
  }

  Plan plan() && {
    add_page(0);
    for (uint32_t page = 0; page < plan_.pages.size(); ++page) fill(page);
    return std::move(plan_);
  }

 private:
  void add_page(uint32_t box) {
    plan_.page_of_box[box] = static_cast<uint32_t>(plan_.pages.size());
    plan_.pages.push_back({box, file_name(box)});
  }

  // Letters that are safe in a file name, made unique.
  std::string file_name(uint32_t box) {
    std::string name = box == 0 ? "overview" : title_path(box);
    for (char& c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_') c = '-';
    if (name.size() > 100) name.resize(100);
    if (name.starts_with('.')) name.insert(0, 1, '_');
    std::string unique = name;
    for (int number = 2; !files_.insert(lower(unique)).second; ++number)
      unique = name + "~" + std::to_string(number);
    return unique + ".svg";
  }

  static std::string lower(std::string text) {  // some file systems do not tell "A" from "a"
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  }

  std::string title_path(uint32_t box) const {
    std::string path;
    for (; box != 0; box = diagram_.boxes[box].parent)
      path = diagram_.boxes[box].name + (path.empty() ? "" : "." + path);
    return path;
  }

  void fill(uint32_t page) {
    const uint32_t top = plan_.pages[page].box;
    size_t shown = diagram_.boxes[top].members.size();
    std::vector<uint32_t> level = open(page, top);
    while (!level.empty()) {
      size_t more = 0;
      for (uint32_t box : level) more += diagram_.boxes[box].members.size() - 1;
      if (shown + more > limit_) break;
      shown += more;
      std::vector<uint32_t> next;
      for (uint32_t box : level) {
        const auto inner = open(page, box);
        next.insert(next.end(), inner.begin(), inner.end());
      }
      level = std::move(next);
    }
    open_small(page, level, shown);
  }

  // Opens what is small and stands among small ones; the others get pages.
  void open_small(uint32_t page, const std::vector<uint32_t>& level, size_t shown) {
    std::map<uint32_t, std::vector<uint32_t>> siblings;
    for (uint32_t box : level) siblings[diagram_.boxes[box].parent].push_back(box);
    for (const auto& [parent, boxes] : siblings) {
      size_t more = 0;
      bool small = true;
      for (uint32_t box : boxes) {
        more += sizes_[box] - 1;
        small = small && sizes_[box] <= limit_ / 5;
      }
      const bool opened = small && shown + more <= limit_;
      if (opened) shown += more;
      for (uint32_t box : boxes) opened ? open_all(page, box) : add_page(box);
    }
  }

  void open_all(uint32_t page, uint32_t box) {
    std::vector<uint32_t> pending{box};
    while (!pending.empty()) {
      const uint32_t next = pending.back();
      pending.pop_back();
      const auto inner = open(page, next);
      pending.insert(pending.end(), inner.begin(), inner.end());
    }
  }

  // Shows the items of `box` on `page`; the boxes in it remain to be dealt with.
  std::vector<uint32_t> open(uint32_t page, uint32_t box) {
    std::vector<uint32_t> boxes;
    for (const Member& member : diagram_.boxes[box].members) {
      if (member.is_box)
        boxes.push_back(member.index);
      else
        plan_.page_of_item[member.index] = page;
    }
    return boxes;
  }

  const Diagram& diagram_;
  size_t limit_;
  std::vector<size_t> sizes_;
  std::set<std::string> files_;
  Plan plan_;
};

}  // namespace

Plan plan_pages(const Diagram& diagram, size_t limit) { return Planner(diagram, limit).plan(); }

}  // namespace composit::drawing
