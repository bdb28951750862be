#include "composit/io/drawing/diagram.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "composit/io/drawing/text.h"

namespace composit::drawing {
namespace {

constexpr size_t kMaxDepth = 32;  // scopes nested deeper share a box

// The source of a value: an item, or a satellite of the item that reads it.
struct Source {
  uint32_t item = kNone;
  Satellite satellite;
};

// The values of one graph, by node and output.
using Sources = std::unordered_map<const Node*, std::vector<Source>>;

Hash signature_of(const Node& node) {
  static const Symbol effect("effect");
  Hasher hasher;
  hasher.add(std::string_view(node.op().str()));
  for (const auto* attributes : {&node.attributes(), &node.execution()}) {
    for (const NamedAttribute& attribute : *attributes) {
      if (attribute.name == effect) continue;  // differs from one repetition to the next
      hasher.add(attribute.key());
      attribute.value.add_to(hasher);
    }
  }
  for (const Type& type : node.outputs()) {
    hasher.add(std::string_view(type_text(type)));
    for (int64_t stride : type.strides) hasher.add(static_cast<uint64_t>(stride));
  }
  return hasher.finish();
}

bool is_satellite(const Node& node) {
  if (node.op() == ops::kConstant) return true;
  if (!is_input(node)) return false;
  const InputKind kind = input_kind(node);
  return kind == InputKind::parameter || kind == InputKind::buffer;
}

Satellite satellite_of(const Node& node) {
  const std::string type = type_text(node.outputs().at(0));
  if (is_input(node)) return {input_name(node), type};
  const Attribute* value = node.find_attribute("value");
  const Array* array = value ? value->get_if<Array>() : nullptr;
  const std::string text = array && array->type().numel() == 1 ? value_text(*array) : "";
  return {text.empty() ? "constant" : text, type};
}

class Builder {
 public:
  explicit Builder(bool open_bodies) : open_bodies_(open_bodies) { diagram_.boxes.push_back({}); }

  Diagram build(const Graph& graph) && {
    Sources sources;
    add_nodes(graph, 0, sources);
    add_mutations(graph, sources);
    add_outputs(graph, sources);
    std::sort(diagram_.edges.begin(), diagram_.edges.end());
    diagram_.edges.erase(std::unique(diagram_.edges.begin(), diagram_.edges.end()),
                         diagram_.edges.end());
    count_nodes();
    return std::move(diagram_);
  }

 private:
  // Block inputs of a region stand in `sources` already.
  void add_nodes(const Graph& graph, uint32_t region_box, Sources& sources) {
    for (const NodePtr& node : graph.nodes()) {
      if (sources.contains(node.get())) continue;
      const uint32_t box = region_box != 0 ? region_box : scope_box(node->annotation("scope"));
      if (is_satellite(*node)) {
        sources[node.get()] = {{kNone, satellite_of(*node)}};
      } else if (const Graph* body = open_body(*node)) {
        sources[node.get()] = add_body(*node, *body, box, sources);
      } else {
        const uint32_t item = add_node(*node, box, sources);
        sources[node.get()].assign(node->outputs().size(), {item, {}});
      }
    }
  }

  uint32_t add_node(const Node& node, uint32_t box, const Sources& sources) {
    Item item;
    item.kind = kinds_.of(node);
    item.title = is_input(node) ? input_name(node) : std::string(node.op().base_name());
    for (const Type& type : node.outputs()) item.types.push_back(type_text(type));
    if (const int64_t effect = node.effect(); effect >= 0)
      item.remarks.push_back("effect " + std::to_string(effect));
    item.tooltip = tooltip_text(node);
    item.signature = signature_of(node);
    const uint32_t index = add_item(std::move(item), box);
    for (const LazyTensor& operand : node.operands()) connect(operand, index, sources);
    return index;
  }

  // A box is placed in its parent with its first member.
  uint32_t add_item(Item item, uint32_t box) {
    const auto index = static_cast<uint32_t>(diagram_.items.size());
    item.box = box;
    diagram_.items.push_back(std::move(item));
    for (Member member{index, false};; member = {box, true}, box = diagram_.boxes[box].parent) {
      auto& members = diagram_.boxes[box].members;
      members.push_back(member);
      if (box == 0 || members.size() > 1) return index;
    }
  }

  void connect(const LazyTensor& value, uint32_t to, const Sources& sources) {
    if (!value) return;
    const Source& source = sources.at(value.node.get()).at(value.index);
    if (source.item != kNone)
      diagram_.edges.push_back({source.item, to});
    else
      diagram_.items[to].satellites.push_back(source.satellite);
  }

  // ---- scopes and regions -----------------------------------------------------------------------

  uint32_t scope_box(std::string_view scope) {
    if (scope.empty()) return 0;
    const auto known = scopes_.find(std::string(scope));
    if (known != scopes_.end()) return known->second;
    uint32_t box = 0;
    size_t begin = 0;
    for (size_t depth = 1; begin <= scope.size(); ++depth) {
      const size_t dot = depth < kMaxDepth ? scope.find('.', begin) : std::string_view::npos;
      const size_t end = std::min(dot, scope.size());
      const auto [entry, added] = scopes_.try_emplace(std::string(scope.substr(0, end)), 0);
      if (added)
        entry->second = add_box(std::string(scope.substr(begin, end - begin)), entry->first, box);
      box = entry->second;
      begin = end + 1;
    }
    return box;
  }

  uint32_t add_box(std::string name, std::string path, uint32_t parent) {
    Box box;
    box.name = std::move(name);
    box.path = std::move(path);
    box.parent = parent;
    diagram_.boxes.push_back(std::move(box));
    return static_cast<uint32_t>(diagram_.boxes.size() - 1);
  }

  const Graph* open_body(const Node& node) const {
    const Attribute* body = open_bodies_ ? node.find_run("body") : nullptr;
    const Region* region = body ? body->get_if<Region>() : nullptr;
    return region && *region && (*region)->outputs().size() == node.outputs().size() ? region->get()
                                                                                     : nullptr;
  }

  // The body's inputs are the node's operands, in order. Its outputs, as sources, are the node's.
  std::vector<Source> add_body(const Node& node, const Graph& body, uint32_t parent,
                               const Sources& outside) {
    const uint32_t box =
        add_box(std::string(node.op().base_name()), diagram_.boxes[parent].path, parent);
    Sources inside;
    size_t operand = 0;
    for (const LazyTensor& input : body.inputs()) {
      while (operand < node.operands().size() && !node.operands()[operand]) ++operand;
      if (operand == node.operands().size()) break;
      const LazyTensor& value = node.operands()[operand++];
      inside[input.node.get()] = {outside.at(value.node.get()).at(value.index)};
    }
    add_nodes(body, box, inside);
    std::vector<Source> outputs;
    for (const LazyTensor& output : body.outputs())
      outputs.push_back(output ? inside.at(output.node.get()).at(output.index)
                               : Source{kNone, {"undefined", ""}});
    return outputs;
  }

  // ---- what leaves the graph --------------------------------------------------------------------

  void add_mutations(const Graph& graph, const Sources& sources) {
    for (const Mutation& mutation : graph.mutations()) {
      const Source& value = sources.at(mutation.value.node.get()).at(mutation.value.index);
      const std::string& name = input_name(*mutation.target.node);
      if (value.item != kNone)
        diagram_.items[value.item].writes.push_back(name);
      else
        add_sink("writes " + name, OpKind::effect, mutation.value, sources);
    }
  }

  // One item for all outputs that are the same value.
  void add_outputs(const Graph& graph, const Sources& sources) {
    std::map<std::pair<const Node*, uint32_t>, uint32_t> known;
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      const LazyTensor& output = graph.outputs()[i];
      const auto [entry, added] = known.try_emplace({output.node.get(), output.index}, 0);
      if (added)
        entry->second = add_sink("output " + std::to_string(i), OpKind::output, output, sources);
      else
        diagram_.items[entry->second].title += ", " + std::to_string(i);
    }
  }

  uint32_t add_sink(std::string title, OpKind kind, const LazyTensor& value,
                    const Sources& sources) {
    Item item;
    item.kind = kind;
    item.title = std::move(title);
    item.types.push_back(value ? type_text(value.type()) : "undefined");
    const uint32_t index = add_item(std::move(item), 0);
    connect(value, index, sources);
    return index;
  }

  // Boxes come after their parents.
  void count_nodes() {
    for (const Item& item : diagram_.items) ++diagram_.boxes[item.box].nodes;
    for (size_t box = diagram_.boxes.size(); box-- > 1;)
      diagram_.boxes[diagram_.boxes[box].parent].nodes += diagram_.boxes[box].nodes;
  }

  bool open_bodies_;
  const Kinds kinds_;
  Diagram diagram_;
  std::map<std::string, uint32_t> scopes_;
};

}  // namespace

Diagram make_diagram(const Graph& graph, bool open_bodies) {
  return Builder(open_bodies).build(graph);
}

std::vector<uint32_t> items_in(const Diagram& diagram, uint32_t box) {
  std::vector<uint32_t> items;
  std::vector<uint32_t> pending{box};
  while (!pending.empty()) {
    const uint32_t next = pending.back();
    pending.pop_back();
    for (const Member& member : diagram.boxes[next].members)
      (member.is_box ? pending : items).push_back(member.index);
  }
  std::sort(items.begin(), items.end());
  return items;
}

}  // namespace composit::drawing
