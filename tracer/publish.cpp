#include "tracer/publish.h"

#include <ATen/Version.h>

#include <optional>
#include <unordered_map>

#include "composit/ir/error.h"
#include "tracer/backtrace.h"
#include "tracer/convert.h"
#include "tracer/liveness.h"
#include "tracer/module_scopes.h"
#include "tracer/twin.h"
#include "tracer/view_chain.h"

namespace flashlight::tracer {
namespace {

using composit::Attribute;
using composit::LazyTensor;
using composit::LazyTensors;
using composit::NodeSpec;

class Publisher {
 public:
  Publisher(Recording& recording, std::vector<ValueId> roots, bool effects,
            std::vector<bool> held = {})
      : recording_(recording),
        held_(std::move(held)),
        live_(find_live(recording, roots, effects)),
        scopes_(recording),
        sources_(recording.backtraces),
        types_(recording.geometries.size()),
        values_(recording.values.size()),
        frames_(recording.values.size(), 0) {
    place_all();
    build_frame(root_, items_[kNone]);
  }

  LazyTensor value(ValueId id) { return resolve(root_, id); }
  const std::vector<composit::NodePtr>& effects() const { return root_.effects; }
  std::vector<RecordId> take_steps() { return std::move(steps_); }
  bool is_live(RecordId id) const { return live_.record[id]; }
  std::unordered_map<RecordId, composit::NodePtr> take_nodes() { return std::move(nodes_); }
  // Absent in a region, and for one that was not published.
  LazyTensor value_outside(ValueId id) const {
    return id != kNone && frames_[id] == 0 ? values_[id] : LazyTensor();
  }

 private:
  struct Item {
    bool composite;
    uint32_t id;
  };
  // The nodes of one region under construction; number 0 is the graph itself.
  struct Frame {
    uint32_t number = 0;
    Frame* parent = nullptr;
    LazyTensors blocks;             // the region's inputs
    std::vector<ValueId> captured;  // values from outside beyond the operator's own operands
    std::vector<composit::NodePtr> effects;
    std::vector<std::pair<ValueId, LazyTensor>> shadowed;  // bindings of the frames around
    std::vector<uint32_t> shadowed_frames;
  };

  // ---- the order of nodes -----------------------------------------------------------------------

  uint32_t closed_parent(uint32_t composite) const {
    while (composite != kNone && live_.open[composite])
      composite = recording_.composites[composite].parent;
    return composite;
  }
  // Puts records into their innermost closed composite, and a composite, after its last record,
  // into the one around it.
  void place_all() {
    std::unordered_map<uint32_t, RecordId> last;
    const auto for_each_composite = [&](RecordId id, auto visit) {
      for (uint32_t c = closed_parent(recording_.records[id].composite); c != kNone;
           c = closed_parent(recording_.composites[c].parent))
        visit(c);
    };
    for (RecordId id = 0; id < recording_.records.size(); ++id)
      if (live_.record[id]) for_each_composite(id, [&](uint32_t c) { last[c] = id; });
    for (RecordId id = 0; id < recording_.records.size(); ++id) {
      if (!live_.record[id]) continue;
      items_[closed_parent(recording_.records[id].composite)].push_back({false, id});
      for_each_composite(id, [&](uint32_t c) {
        if (last[c] == id)
          items_[closed_parent(recording_.composites[c].parent)].push_back({true, c});
      });
    }
  }
  void build_frame(Frame& frame, const std::vector<Item>& items) {
    for (const Item& item : items)
      item.composite ? build_composite(frame, item.id) : build_record(frame, item.id);
  }

  // One table serves all frames: the innermost binding of a value shadows those of the frames
  // around it.
  void bind(Frame& frame, ValueId id, LazyTensor value) {
    if (frame.parent != nullptr && frames_[id] != frame.number) {
      frame.shadowed.emplace_back(id, std::move(values_[id]));
      frame.shadowed_frames.push_back(frames_[id]);
    }
    values_[id] = std::move(value);
    frames_[id] = frame.number;
  }
  void leave(Frame& frame) {
    for (size_t i = frame.shadowed.size(); i-- > 0;) {
      auto& [id, value] = frame.shadowed[i];
      values_[id] = std::move(value);
      frames_[id] = frame.shadowed_frames[i];
    }
  }
  LazyTensor resolve(Frame& frame, ValueId id) {
    if (id == kNone) return {};
    COMPOSIT_ASSERT(values_[id], "a value is used before it is made");
    if (frames_[id] != frame.number) bind(frame, id, add_block(frame, id, true));
    return values_[id];
  }
  // Regions share their blocks: an input is its name and type, and half of a captured ResNet's
  // nodes would be such. `captured`: the region reads `id` from outside.
  LazyTensor add_block(Frame& frame, ValueId id, bool captured) {
    const uint64_t place = frame.blocks.size();
    LazyTensor& block = blocks_[place << 32 | recording_.values[id].geometry];
    if (!block)
      block = composit::input(std::to_string(place), type(id), composit::InputKind::block);
    frame.blocks.push_back(block);
    if (captured) frame.captured.push_back(id);
    return block;
  }
  const composit::Type& type(ValueId id) {
    const GeometryId geometry = recording_.values[id].geometry;
    static const composit::Type undefined = composit::undefined_type();
    if (geometry == kNone) return undefined;
    if (geometry >= types_.size()) types_.resize(recording_.geometries.size());
    auto& type = types_[geometry];
    if (!type) type = type_of(recording_.geometries[geometry]);
    return *type;
  }

  // ---- composites -------------------------------------------------------------------------------

  void build_composite(Frame& frame, uint32_t c) {
    const Composite& composite = recording_.composites[c];
    const std::string scope = scopes_.of(composite);
    Frame inner;
    inner.number = ++last_frame_;
    inner.parent = &frame;
    for_each_operand(recording_, composite.operands, composite.operand_count, [&](ValueId id) {
      if (id == kNone) return;
      LazyTensor block = add_block(inner, id, false);
      if (frames_[id] != inner.number) bind(inner, id, std::move(block));
    });
    scopes_.enter(scope);
    build_frame(inner, items_[c]);
    scopes_.leave();
    std::vector<ValueId> results(composite.results.begin(), composite.results.end());
    results.insert(results.end(), live_.exports[c].begin(), live_.exports[c].end());

    NodeSpec spec(composite.info->name);
    composit::Graph::Parts body;
    for (ValueId id : results) {
      body.outputs.push_back(resolve(inner, id));
      spec.output(id == kNone ? composit::undefined_type() : type(id));
    }
    body.inputs = std::move(inner.blocks);
    body.effects = inner.effects;
    leave(inner);
    add_operands(frame, spec, *composite.info, composite.operands, composite.operand_count, {});
    if (!inner.captured.empty()) {
      LazyTensors captured;
      for (ValueId id : inner.captured) captured.push_back(resolve(frame, id));
      spec.list(captured);
    }
    add_attributes(spec, *composite.info, composite.attributes);
    spec.run("body", std::make_shared<const composit::Graph>(std::move(body)));
    if (!inner.effects.empty()) add_effect(frame, spec);
    add_grad(spec, composite.grad);
    add_custom_gradient(spec, results);
    finish_node(frame, std::move(spec), scope, composite.place, results, !inner.effects.empty());
  }

  // ---- records ----------------------------------------------------------------------------------

  void build_record(Frame& frame, RecordId id) {
    const Record& record = recording_.records[id];
    std::vector<ValueId> values(record.value_count);
    for (uint32_t i = 0; i < record.value_count; ++i) values[i] = record.values + i;
    if (record.kind == RecordKind::input || record.kind == RecordKind::constant) {
      const LazyTensor source = source_node(record);
      if (!recording_.given.empty()) nodes_.emplace(id, source.node);
      bind(root_, record.values, source);
      return;
    }
    steps_.push_back(id);
    std::string scope = scopes_.of(record);
    NodeSpec spec =
        record.kind == RecordKind::op ? op_node(frame, record) : memory_node(frame, record);
    for (ValueId value : values) spec.output(type(value));
    add_custom_gradient(spec, values);
    if (record.rewrites && recording_.grad) spec.run("rewrites", true);
    if (record.effect) add_effect(frame, spec);
    composit::NodePtr node =
        finish_node(frame, std::move(spec), std::move(scope), record.place, values, record.effect);
    if (!recording_.given.empty()) nodes_.emplace(id, std::move(node));
    if (record.kind != RecordKind::op || record.value_count != 1) return;
    const ValueId first = record.operand_count > 0 ? recording_.operands[record.operands] : kNone;
    if (first < kListMark && (is_view_operator(*record.info))) scopes_.derive(first, record.values);
  }

  LazyTensor source_node(const Record& record) {
    if (record.kind == RecordKind::constant) {
      const RecordedConstant& constant = recording_.constants[record.index];
      NodeSpec spec(composit::ops::kConstant);
      spec.attribute("value", constant_attribute(constant.tensor));
      if (constant.tensor.unsafeGetTensorImpl()->is_wrapped_number())
        spec.attribute("wrapped", true);
      spec.annotate("name", "constant_" + std::to_string(record.index)).output(type(record.values));
      if (std::string line = source_line(constant.place); !line.empty())
        spec.annotate("source", std::move(line));
      return std::move(spec).make();
    }
    const RecordedInput& input = recording_.inputs[record.index];
    NodeSpec spec(composit::ops::kInput);
    spec.attribute("name", input.name).attribute("kind", std::string(composit::name(input.kind)));
    if (input.requires_grad) spec.attribute("requires_grad", true);
    if (input.shares != kNone)
      spec.attribute("shares", recording_.inputs[input.shares].name)
          .attribute("shift", input.shift);
    if (record.index < held_.size() && held_[record.index])
      spec.held = to_array(input.tensor.detach());
    return std::move(spec.output(type(record.values))).make();
  }

  NodeSpec op_node(Frame& frame, const Record& record) {
    const OpInfo& info = *record.info;
    const OpInfo* twin =
        record.joint == kNone && !record.throws ? functional_twin(recording_, record) : nullptr;
    NodeSpec spec(twin ? twin->name : info.name);
    add_operands(frame, spec, info, record.operands, record.operand_count,
                 twin ? info.out : std::vector<bool>());
    add_attributes(spec, info, record.attributes);
    if (twin) spec.run("via", info.name.str());
    if (record.joint != kNone) spec.run("views", views(record));
    if (info.packed) spec.run("packed_for", at::get_cpu_capability());
    if (record.throws) spec.run("throws", true);
    if (!info.observed.empty())
      spec.run("writes", composit::int_list({info.observed.begin(), info.observed.end()}));
    if (record.expected != kNone && !record.followed)
      spec.run("expected", numbers_attribute(recording_.expected[record.expected]));
    add_grad(spec, record.grad);
    return spec;
  }

  NodeSpec memory_node(Frame& frame, const Record& record) {
    const auto operand = [&](uint32_t i) { return recording_.operands[record.operands + i]; };
    const auto geometry_of_value = [&](ValueId id) -> const Geometry& {
      return recording_.geometries[recording_.values[id].geometry];
    };
    NodeSpec spec(
        memory_op(record, record.operand_count > 0 ? &geometry_of_value(operand(0)) : nullptr));
    for (uint32_t i = 0; i < record.operand_count; ++i) spec.tensor(resolve(frame, operand(i)));
    const auto add_geometry = [&](const Geometry& geometry) {
      spec.attribute("size", composit::int_list({geometry.sizes.begin(), geometry.sizes.end()}));
      spec.attribute("stride",
                     composit::int_list({geometry.strides.begin(), geometry.strides.end()}));
      spec.attribute("storage_offset", geometry.offset);
    };
    if (record.kind == RecordKind::storage_view) add_geometry(geometry_of_value(record.values));
    if (record.kind == RecordKind::storage_of) {
      const Geometry& geometry = geometry_of_value(operand(0));
      spec.attribute("begin", geometry.offset * geometry.item_size());
    }
    if (record.kind == RecordKind::storage_scatter)
      add_geometry(recording_.geometries[record.index]);
    if (record.kind == RecordKind::set_generator) {
      const GeneratorState& state = recording_.generator_states[record.index];
      spec.attribute("generator", composit::Generator{state.role})
          .attribute("state", to_array(state.state));
    }
    if (record.kind == RecordKind::generator_state || record.kind == RecordKind::restore_generator)
      spec.attribute("generator", composit::Generator{recording_.generators[record.index].role});
    return spec;
  }
  // ATen's word where the storage is read with its own dtype, which is nearly always.
  std::string memory_op(const Record& record, const Geometry* base) const {
    const auto plain = [&](const Geometry& view) {
      return view.dtype == base->dtype && base->offset == 0 && !view.conj && !view.neg &&
             is_row_major(*base);
    };
    switch (record.kind) {
      case RecordKind::storage_view:
        return plain(recording_.geometries[recording_.values[record.values].geometry])
                   ? "aten::as_strided"
                   : "composit::storage_view";
      case RecordKind::storage_scatter:
        return plain(recording_.geometries[record.index]) ? "aten::as_strided_scatter"
                                                          : "composit::storage_scatter";
      case RecordKind::storage_of:
        return "composit::storage";
      case RecordKind::storage_zeros:
        return "composit::storage_zeros";
      case RecordKind::storage_resize:
        return "composit::storage_resize";
      case RecordKind::generator_state:
        return "composit::generator_state";
      case RecordKind::restore_generator:
        return "composit::restore_generator_state";
      default:
        return "composit::set_generator_state";
    }
  }

  // ---- parts of nodes ---------------------------------------------------------------------------

  void add_operands(Frame& frame, NodeSpec& spec, const OpInfo& info, uint32_t begin,
                    uint32_t count, const std::vector<bool>& dropped) {
    spec.arguments.reserve(info.arguments.size());
    spec.operands.reserve(count);
    uint32_t i = begin;
    for (size_t argument = 0; argument < info.arguments.size() && i < begin + count; ++argument) {
      if (info.arguments[argument] == ArgumentKind::other) continue;
      const uint32_t operand = recording_.operands[i++];
      if (info.arguments[argument] == ArgumentKind::tensor) {
        if (dropped.empty() || !dropped[argument]) spec.tensor(resolve(frame, operand));
        continue;
      }
      if (operand == kAbsentList) {
        spec.tensor({});
        continue;
      }
      LazyTensors list;
      for (uint32_t n = operand & ~kListMark; n > 0; --n)
        list.push_back(resolve(frame, recording_.operands[i++]));
      spec.list(list);
    }
  }
  void add_attributes(NodeSpec& spec, const OpInfo& info, uint32_t attribute) {
    spec.attributes.reserve(info.arguments.size());
    for (size_t i = 0; i < info.arguments.size(); ++i) {
      if (info.arguments[i] != ArgumentKind::other) continue;
      const c10::TypePtr& type = info.schema->arguments()[i].real_type();
      spec.attributes.push_back(
          {info.argument_names[i], to_attribute(recording_.attributes[attribute++], type)});
    }
  }
  // Marks of lists and absent tensors take no place among a node's operands.
  uint32_t node_operand(const Record& record, uint32_t position) const {
    uint32_t absent = 0, in_list = 0;
    for (uint32_t i = record.operands; i < record.operands + position; ++i) {
      const uint32_t operand = recording_.operands[i];
      const bool mark = operand != kNone && operand >= kListMark;
      if (mark || (operand == kNone && in_list == 0)) ++absent;
      if (mark)
        in_list = operand == kAbsentList ? 0 : operand & ~kListMark;
      else if (in_list > 0)
        --in_list;
    }
    return position - absent;
  }
  Attribute views(const Record& record) const {
    composit::List list{composit::AttributeKind::list, {}};
    for (const JointView& view : recording_.joints[record.joint]) {
      const Geometry& geometry = recording_.geometries[view.geometry];
      composit::List item{composit::AttributeKind::none, {}};
      item.items = {
          Attribute(node_operand(record, view.position)),
          Attribute(node_operand(record, view.object)),
          Attribute(to_composit(geometry.dtype)),
          Attribute(composit::int_list({geometry.sizes.begin(), geometry.sizes.end()})),
          Attribute(composit::int_list({geometry.strides.begin(), geometry.strides.end()})),
          Attribute(geometry.offset),
          Attribute(geometry.conj),
          Attribute(geometry.neg)};
      list.items.emplace_back(std::move(item));
    }
    return list;
  }
  void add_grad(NodeSpec& spec, bool grad) const {
    if (grad != recording_.grad) spec.run("grad", grad);
  }
  void add_custom_gradient(NodeSpec& spec, c10::ArrayRef<ValueId> values) const {
    for (ValueId value : values)
      if (const auto found = recording_.custom_gradients.find(value);
          found != recording_.custom_gradients.end()) {
        spec.run("custom_grad", found->second);
        return;
      }
  }
  static void add_effect(Frame& frame, NodeSpec& spec) {
    spec.run("effect", static_cast<int64_t>(frame.effects.size()));
  }
  composit::NodePtr finish_node(Frame& frame, NodeSpec&& spec, std::string scope,
                                const Place& place, c10::ArrayRef<ValueId> values, bool effect) {
    if (!scope.empty()) spec.annotate("scope", std::move(scope));
    if (std::string line = source_line(place); !line.empty())
      spec.annotate("source", std::move(line));
    composit::NodePtr node = std::move(spec).make_node();
    // A composite may return what it was given: that stays what it was.
    for (uint32_t i = 0; i < values.size(); ++i)
      if (values[i] != kNone && !values_[values[i]]) bind(frame, values[i], LazyTensor{node, i});
    if (effect) frame.effects.push_back(node);
    return node;
  }

  std::string source_line(const Place& place) {
    if (place.line != kNone) return recording_.lines[place.line];
    return place.frames == kNone ? std::string() : sources_.user_line(place.frames);
  }

  Recording& recording_;
  std::vector<bool> held_;  // inputs that bring their value along
  Liveness live_;
  ModuleScopes scopes_;
  SourceLines sources_;
  std::vector<std::optional<composit::Type>> types_;  // by geometry
  std::unordered_map<uint32_t, std::vector<Item>> items_;
  std::unordered_map<uint64_t, LazyTensor> blocks_;  // by place and geometry
  std::vector<RecordId> steps_;
  std::unordered_map<RecordId, composit::NodePtr> nodes_;  // where numbers are followed
  LazyTensors values_;  // by value: its innermost binding, and the frame that made it
  std::vector<uint32_t> frames_;
  uint32_t last_frame_ = 0;
  Frame root_;
};

}  // namespace

namespace {

// Which inputs of the graph the further outputs belong to; the inputs are published already.
void find_gradients(const Recording& recording, Published& published) {
  for (const auto& left : recording.gradients)
    for (size_t i = 0; i < published.inputs.size(); ++i)
      if (published.inputs[i].value == recording.inputs[left.input].value)
        published.gradients.push_back(i);
}

}  // namespace

Published publish(Recording& recording, bool gradients) {
  std::vector<ValueId> roots = recording.outputs;
  for (const auto& left : recording.gradients)
    if (gradients) {
      roots.push_back(left.value);
      roots.push_back(recording.inputs[left.input].value);
    }
  for (const auto& mutation : recording.mutations) {
    roots.push_back(mutation.value);
    roots.push_back(recording.inputs[mutation.input].value);
  }
  for (const RecordedInput& input : recording.inputs)
    if (input.kind == composit::InputKind::user_input && !input.discovered)
      roots.push_back(input.value);
  Publisher publisher(recording, roots, true);

  Published published;
  composit::Graph::Parts parts;
  for (const RecordedInput& input : recording.inputs) {
    if (!publisher.is_live(recording.values[input.value].record)) continue;
    parts.inputs.push_back(publisher.value(input.value));
  }
  for (ValueId output : recording.outputs) parts.outputs.push_back(publisher.value(output));
  for (const auto& left : recording.gradients)
    if (gradients) parts.outputs.push_back(publisher.value(left.value));
  for (const auto& mutation : recording.mutations)
    parts.mutations.push_back(
        {publisher.value(recording.inputs[mutation.input].value), publisher.value(mutation.value)});
  for (const RecordedInput& input : recording.inputs)
    if (publisher.is_live(recording.values[input.value].record)) published.inputs.push_back(input);
  parts.effects = publisher.effects();
  published.graph = composit::Graph(std::move(parts));
  if (gradients) find_gradients(recording, published);
  published.generators = recording.generators;
  published.remarks = recording.remarks;
  published.grad = recording.grad;
  published.steps = publisher.take_steps();
  published.nodes = publisher.take_nodes();
  for (RecordId id = 0; id < recording.records.size(); ++id) {
    const Record& record = recording.records[id];
    if (record.followed && publisher.is_live(id))
      if (LazyTensor read = publisher.value_outside(recording.operands[record.operands]))
        published.reads.emplace(id, std::move(read));
    const bool constant = record.kind == RecordKind::constant;
    if ((!constant && record.kind != RecordKind::input) || !publisher.is_live(id)) continue;
    published.sources.push_back(id);
    if (constant) published.constants.push_back(recording.constants[record.index]);
  }
  return published;
}

composit::LazyTensor publish_value(Recording& recording, ValueId value,
                                   std::vector<bool> unwritten) {
  return Publisher(recording, {value}, false, std::move(unwritten)).value(value);
}

}  // namespace flashlight::tracer
