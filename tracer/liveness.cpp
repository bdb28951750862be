#include "tracer/liveness.h"

#include <algorithm>

namespace flashlight::tracer {
namespace {

class Marker {
 public:
  Marker(const Recording& recording, const std::vector<bool>& open)
      : recording_(recording),
        open_(open),
        record_(recording.records.size(), false),
        composite_(recording.composites.size(), false) {}

  void need(ValueId value) {
    if (value != kNone) need_record(recording_.values[value].record);
  }
  void need_record(RecordId id) {
    if (record_[id]) return;
    record_[id] = true;
    work_.push_back(id);
  }
  void run() {
    while (!work_.empty()) {
      const Record& record = recording_.records[work_.back()];
      work_.pop_back();
      for_each_operand(recording_, record.operands, record.operand_count,
                       [&](ValueId value) { need(value); });
      for (uint32_t c = record.composite; c != kNone && !composite_[c];
           c = recording_.composites[c].parent)
        touch(c);
    }
  }
  std::vector<bool>& records() { return record_; }
  std::vector<bool>& composites() { return composite_; }

 private:
  // A closed composite is needed with all its operands and results: a node has what its schema
  // says.
  void touch(uint32_t c) {
    composite_[c] = true;
    if (open_[c]) return;
    const Composite& composite = recording_.composites[c];
    for (ValueId result : composite.results) need(result);
    for_each_operand(recording_, composite.operands, composite.operand_count,
                     [&](ValueId value) { need(value); });
  }

  const Recording& recording_;
  const std::vector<bool>& open_;
  std::vector<bool> record_, composite_;
  std::vector<RecordId> work_;
};

class Escapes {
 public:
  Escapes(const Recording& recording, Liveness& live) : recording_(recording), live_(live) {
    depth_.reserve(recording.composites.size());
    for (const Composite& composite : recording.composites)
      depth_.push_back(composite.parent == kNone ? 1 : depth_[composite.parent] + 1);
  }

  // `value` is used by something inside composite `user` (kNone: at top level).
  void use(ValueId value, uint32_t user) {
    if (value == kNone) return;
    uint32_t made_in = recording_.records[recording_.values[value].record].composite;
    for (; made_in != kNone && !contains(made_in, user);
         made_in = recording_.composites[made_in].parent)
      escape(made_in, value);
  }

 private:
  bool contains(uint32_t outer, uint32_t inner) const {
    while (inner != kNone && depth_[inner] > depth_[outer])
      inner = recording_.composites[inner].parent;
    return inner == outer;
  }
  void escape(uint32_t c, ValueId value) {
    const Composite& composite = recording_.composites[c];
    if (std::find(composite.results.begin(), composite.results.end(), value) !=
        composite.results.end())
      return;
    auto& exports = live_.exports[c];
    if (std::find(exports.begin(), exports.end(), value) != exports.end()) return;
    if (recording_.values[value].birth <= composite.begin)
      exports.push_back(value);
    else
      live_.open[c] = true;
  }

  const Recording& recording_;
  Liveness& live_;
  std::vector<uint32_t> depth_;
};

}  // namespace

namespace {

// Computes the live values if the composites of `open` are open, and finds the composites that
// cannot stay closed then.
Liveness find_live(const Recording& recording, const std::vector<ValueId>& roots, bool effects,
                   const std::vector<bool>& open) {
  Marker marker(recording, open);
  for (ValueId root : roots) marker.need(root);
  for (RecordId id = 0; effects && id < recording.records.size(); ++id)
    if (recording.records[id].effect) marker.need_record(id);
  marker.run();
  Liveness live{std::move(marker.records()), std::move(marker.composites()), open,
                std::vector<std::vector<ValueId>>(recording.composites.size())};
  Escapes escapes(recording, live);
  for (RecordId id = 0; id < recording.records.size(); ++id) {
    if (!live.record[id]) continue;
    const Record& record = recording.records[id];
    for_each_operand(recording, record.operands, record.operand_count,
                     [&](ValueId value) { escapes.use(value, record.composite); });
  }
  for (ValueId root : roots) escapes.use(root, kNone);
  for (uint32_t c = 0; c < recording.composites.size(); ++c) {
    if (!live.composite[c] || open[c]) continue;
    const Composite& composite = recording.composites[c];
    for (ValueId result : composite.results)
      escapes.use(result, c);  // made inside an inner composite
    for_each_operand(recording, composite.operands, composite.operand_count,
                     [&](ValueId value) { escapes.use(value, composite.parent); });
  }
  return live;
}

}  // namespace

// A value that opens a composite may be needed by a closed composite only. So a composite that was
// opened stays open, and the rest is computed again.
Liveness find_live(const Recording& recording, const std::vector<ValueId>& roots, bool effects) {
  std::vector<bool> open(recording.composites.size());
  for (uint32_t c = 0; c < recording.composites.size(); ++c)
    open[c] = !recording.composites[c].ended;  // `lazy` while its kernel runs
  for (;;) {
    Liveness live = find_live(recording, roots, effects, open);
    if (live.open == open) return live;
    open = live.open;
  }
}

}  // namespace flashlight::tracer
