#include "composit/io/drawing/arrange.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace composit::drawing {
namespace {

bool has_items(const Box& box) {
  return std::any_of(box.members.begin(), box.members.end(),
                     [](const Member& member) { return !member.is_box; });
}

// ---- dissolve_interleaved -----------------------------------------------------------------------

// True if items of `parent` outside of `box` stand between the first and the last item of `box`.
bool is_interleaved(const Diagram& diagram, const std::vector<uint32_t>& parent_items,
                    uint32_t box) {
  const std::vector<uint32_t> items = items_in(diagram, box);
  const auto begin = std::lower_bound(parent_items.begin(), parent_items.end(), items.front());
  const auto end = std::upper_bound(begin, parent_items.end(), items.back());
  const auto inner = std::count_if(begin, end, [&](uint32_t item) {
    return diagram.items[item].kind != OpKind::input && diagram.items[item].kind != OpKind::output;
  });
  return inner > static_cast<std::ptrdiff_t>(items.size());
}

// The boxes of `box` as members of its parent.
std::vector<Member> lift_boxes(Diagram& diagram, uint32_t box) {
  for (const Member& member : diagram.boxes[box].members) {
    Box& child = diagram.boxes[member.index];
    child.parent = diagram.boxes[box].parent;
    child.name = diagram.boxes[box].name + "." + child.name;
  }
  return diagram.boxes[box].members;
}

void sort_members(const Diagram& diagram, std::vector<Member>& members) {
  std::vector<std::pair<uint32_t, Member>> keyed;
  for (const Member& member : members)
    keyed.emplace_back(member.is_box ? items_in(diagram, member.index).front() : member.index,
                       member);
  std::sort(keyed.begin(), keyed.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(keyed.begin(), keyed.end(), members.begin(),
                 [](const auto& pair) { return pair.second; });
}

// ---- fold_repeats -------------------------------------------------------------------------------

// "layer.11" is number 11 of "layer."; -1 for names that do not end in a number.
std::pair<std::string_view, int64_t> numbered(std::string_view name) {
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  int64_t number = -1;
  std::from_chars(name.data() + digits, name.data() + name.size(), number);
  return {name.substr(0, digits), number};
}

bool follows(const Box& first, const Box& second) {
  const auto [first_prefix, first_number] = numbered(first.name);
  const auto [second_prefix, second_number] = numbered(second.name);
  const bool is_list = first_prefix.empty() || first_prefix.ends_with('.');  // not "fc1", "fc2"
  return is_list && first_prefix == second_prefix && first_number >= 0 &&
         second_number == first_number + 1;
}

// `path` as seen from `base`: "conv1" for "layer.0.conv1" and "layer.0".
std::string_view relative(std::string_view path, std::string_view base) {
  if (path == base) return {};
  const bool inside =
      path.size() > base.size() && path.starts_with(base) && path[base.size()] == '.';
  return inside ? path.substr(base.size() + 1) : path;
}

class Folder {
 public:
  explicit Folder(Diagram& diagram) : diagram_(diagram), original_(diagram.items.size()) {}

  void fold_all() {
    std::vector<uint32_t> pending{0};
    while (!pending.empty()) {
      const uint32_t box = pending.back();
      pending.pop_back();
      fold(box);
      for (const Member& member : diagram_.boxes[box].members)
        if (member.is_box) pending.push_back(member.index);
    }
  }

 private:
  struct Copy {
    uint32_t run = kNone;
    uint32_t number = 0;
    uint32_t original = kNone;  // its counterpart in copy 0
  };

  // Boxes to be drawn as one, and what the last of them has beyond the others.
  struct Run {
    std::vector<uint32_t> boxes;
    std::vector<uint32_t> extras;
  };

  // Folds runs among the boxes that stand directly in `box`.
  void fold(uint32_t box) {
    link_predecessors();
    std::vector<Member> kept;
    bool folded = false;
    const std::vector<Member> members = diagram_.boxes[box].members;
    for (size_t begin = 0; begin < members.size();) {
      const Run run = run_at(members, begin);
      kept.push_back(members[begin]);
      if (run.boxes.size() > 1) {
        fold_run(run.boxes, static_cast<uint32_t>(begin));
        folded = true;
      }
      for (uint32_t item : run.extras) {
        kept.push_back({item, false});
        diagram_.items[item].box = box;
      }
      begin += std::max<size_t>(run.boxes.size(), 1);
    }
    if (!folded) return;
    diagram_.boxes[box].members = std::move(kept);
    redirect_edges();
  }

  Run run_at(const std::vector<Member>& members, size_t begin) const {
    Run run;
    for (size_t i = begin; i < members.size() && members[i].is_box && run.extras.empty(); ++i) {
      const uint32_t next = members[i].index;
      if (!run.boxes.empty() && !continues(run.boxes.back(), next)) break;
      run.boxes.push_back(next);
      const std::vector<uint32_t> items = items_in(diagram_, next);
      const size_t size = items_in(diagram_, run.boxes[0]).size();
      run.extras.assign(items.begin() + static_cast<std::ptrdiff_t>(size), items.end());
    }
    return run;
  }

  // `next` may end with a little more: operations that read no parameter count as part of the
  // module before them, so that the last layer has what follows the layers.
  bool continues(uint32_t previous, uint32_t next) const {
    if (!follows(diagram_.boxes[previous], diagram_.boxes[next])) return false;
    const size_t size = items_in(diagram_, previous).size();
    const size_t next_size = items_in(diagram_, next).size();
    return size <= next_size && next_size - size <= size / 4 &&
           signature(previous, size) == signature(next, size) && feeds(previous, next);
  }

  bool feeds(uint32_t from, uint32_t to) const {
    const std::vector<uint32_t> sources = items_in(diagram_, from);
    for (uint32_t item : items_in(diagram_, to))
      for (uint32_t source : predecessors_[item])
        if (std::binary_search(sources.begin(), sources.end(), source)) return true;
    return false;
  }

  // The hash of the first `size` items of `box`.
  Hash signature(uint32_t box, size_t size) const {
    Hasher hasher;
    const std::string& base = diagram_.boxes[box].path;
    std::vector<uint32_t> items = items_in(diagram_, box);
    items.resize(size);
    for (uint32_t index : items) {
      const Item& item = diagram_.items[index];
      hasher.add(item.signature);
      hasher.add(relative(diagram_.boxes[item.box].path, base));
      for (const Satellite& satellite : item.satellites) {
        hasher.add(relative(satellite.name, base));
        hasher.add(std::string_view(satellite.type));
      }
      for (uint32_t source : predecessors_[index]) {
        const auto found = std::lower_bound(items.begin(), items.end(), source);
        const bool inside = found != items.end() && *found == source;
        hasher.add(inside ? static_cast<uint64_t>(found - items.begin()) : uint64_t{kNone});
      }
    }
    return hasher.finish();
  }

  void fold_run(const std::vector<uint32_t>& run, uint32_t run_number) {
    const std::vector<uint32_t> originals = items_in(diagram_, run[0]);
    for (uint32_t number = 0; number < run.size(); ++number) {
      const std::vector<uint32_t> copies = items_in(diagram_, run[number]);
      for (size_t i = 0; i < originals.size(); ++i)
        original_[copies[i]] = {run_number, number, originals[i]};
    }
    Box& first = diagram_.boxes[run[0]];
    first.repeats = static_cast<uint32_t>(run.size());
    first.last_name = diagram_.boxes[run.back()].name;
  }

  // Edges from one copy to the next are what the badge "×12" says.
  void redirect_edges() {
    std::vector<Edge> edges;
    for (const Edge& edge : diagram_.edges) {
      const Copy& from = original_[edge.from];
      const Copy& to = original_[edge.to];
      if (from.run != kNone && from.run == to.run && from.number != to.number) continue;
      edges.push_back(
          {from.run == kNone ? edge.from : from.original, to.run == kNone ? edge.to : to.original});
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    diagram_.edges = std::move(edges);
    std::fill(original_.begin(), original_.end(), Copy{});
    linked_ = false;
  }

  void link_predecessors() {
    if (linked_) return;
    predecessors_.assign(diagram_.items.size(), {});
    for (const Edge& edge : diagram_.edges) predecessors_[edge.to].push_back(edge.from);
    linked_ = true;
  }

  Diagram& diagram_;
  std::vector<Copy> original_;
  std::vector<std::vector<uint32_t>> predecessors_;
  bool linked_ = false;
};

// ---- simplify -----------------------------------------------------------------------------------

void replace_member(Diagram& diagram, uint32_t box, Member by) {
  for (Member& member : diagram.boxes[diagram.boxes[box].parent].members)
    if (member.is_box && member.index == box) member = by;
}

void simplify_box(Diagram& diagram, uint32_t index) {
  const Box& box = diagram.boxes[index];
  if (box.members.size() != 1 || box.repeats > 1) return;
  const Member member = box.members[0];
  if (!member.is_box) {
    Item& item = diagram.items[member.index];
    item.caption = item.caption.empty() ? box.name : box.name + "." + item.caption;
    item.box = box.parent;
  } else {
    Box& child = diagram.boxes[member.index];
    child.name = box.name + "." + child.name;
    if (child.repeats > 1) child.last_name = box.name + "." + child.last_name;
    child.parent = box.parent;
  }
  replace_member(diagram, index, member);
}

}  // namespace

void dissolve_interleaved(Diagram& diagram) {
  for (uint32_t box = 0; box < diagram.boxes.size(); ++box) {
    const std::vector<uint32_t> items = items_in(diagram, box);
    std::vector<Member> pending = diagram.boxes[box].members;
    std::vector<Member> members;
    for (size_t i = 0; i < pending.size(); ++i) {
      const Member member = pending[i];
      if (!member.is_box || has_items(diagram.boxes[member.index]) ||
          !is_interleaved(diagram, items, member.index)) {
        members.push_back(member);
        continue;
      }
      const std::vector<Member> lifted = lift_boxes(diagram, member.index);
      pending.insert(pending.end(), lifted.begin(), lifted.end());
      diagram.boxes[member.index].members.clear();
    }
    if (pending.size() > diagram.boxes[box].members.size()) sort_members(diagram, members);
    diagram.boxes[box].members = std::move(members);
  }
}

void fold_repeats(Diagram& diagram) { Folder(diagram).fold_all(); }

void simplify(Diagram& diagram) {
  for (auto box = static_cast<uint32_t>(diagram.boxes.size()); box-- > 1;)
    simplify_box(diagram, box);
}

void split(Diagram& diagram, size_t limit) {
  for (uint32_t box = 0; box < diagram.boxes.size(); ++box) {
    const std::vector<Member> members = diagram.boxes[box].members;
    if (members.size() <= limit) continue;
    const size_t parts = std::min((members.size() + limit - 1) / limit, limit);
    std::vector<Member> part_members;
    for (size_t part = 0; part < parts; ++part) {
      const auto index = static_cast<uint32_t>(diagram.boxes.size());
      Box piece;
      piece.name = "part " + std::to_string(part + 1) + " of " + std::to_string(parts);
      piece.path = diagram.boxes[box].path;
      piece.parent = box;
      piece.members.assign(
          members.begin() + static_cast<std::ptrdiff_t>(members.size() * part / parts),
          members.begin() + static_cast<std::ptrdiff_t>(members.size() * (part + 1) / parts));
      for (const Member& member : piece.members) {
        if (!member.is_box) diagram.items[member.index].box = index;
        if (member.is_box) diagram.boxes[member.index].parent = index;
        const Box* inner = member.is_box ? &diagram.boxes[member.index] : nullptr;
        piece.nodes += inner ? inner->nodes * inner->repeats : 1;
      }
      diagram.boxes.push_back(std::move(piece));
      part_members.push_back({index, true});
    }
    diagram.boxes[box].members = std::move(part_members);
  }
}

}  // namespace composit::drawing
