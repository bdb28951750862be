// The notes that a scope takes while the program runs: plain records in arenas, which become a
// graph once, at the end.
//
// Every record is a *leaf*: an operator that LibTorch executed in one piece, or one the recorder
// needs to express a write through a view. Composite operators lie over the leaves as ranges:
// whether one becomes a node with a region or is opened is decided when the whole program is known
// (publish.h).
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/ir/number_formula.h"
#include "tracer/chunked_vector.h"
#include "tracer/geometry.h"
#include "tracer/op_info.h"

namespace flashlight::tracer {

using ValueId = uint32_t;
using RecordId = uint32_t;
constexpr uint32_t kNone = ~0u;

// Output `output` of record `record`.
struct Value {
  RecordId record = kNone;
  GeometryId geometry = kNone;  // kNone: an undefined tensor
  uint32_t output = 0;
  RecordId birth =
      0;  // record count when the storage it lies in was first seen; 0 for storages from outside
};

enum class RecordKind : uint8_t {
  op,               // `info` was run, or stands for a run of itself on other operands
  input,            // index into Recording::inputs
  constant,         // index into Recording::constants
  storage_of,       // all bytes of the storage that the operand lies in, as uint8
  storage_view,     // the bytes of the operand read with another geometry
  storage_scatter,  // operand 0's storage with operand 1 written at a geometry
  storage_zeros,    // a storage of `geometry` bytes whose content is unknown
  storage_resize,   // operand's storage grown
  set_generator,    // index into Recording::generator_states
  // The state that the generator is in, and setting it to the operand: indices into
  // Recording::generators.
  generator_state,
  restore_generator
};

// An operand that the operator sees as a view of another: operands that share storage with a
// written one.
struct JointView {
  uint32_t position = 0;  // among the record's operands
  GeometryId geometry = kNone;
  uint32_t object = 0;  // position of the first operand that is the same tensor object
};

// The place of a call in the program. A host language that has modules and lines of its own tells
// them; C++ has the machine's stack.
struct Place {
  uint32_t module = kNone;  // into Recording::modules
  uint32_t line = kNone;    // into Recording::lines
  uint32_t frames = kNone;  // into Recording::backtraces
};

struct Record {
  RecordKind kind = RecordKind::op;
  bool grad = false;
  bool effect = false;    // keeps its position, also if it is unused
  bool throws = false;    // threw, after it may have written
  bool replays = false;   // repeats a view operator recorded before, to regenerate a view
  bool rewrites = false;  // puts a write that autograd does not see into its base
  bool followed = false;  // reads a number that is no guard: see GivenNumber
  const OpInfo* info = nullptr;
  uint32_t index = 0;                        // see RecordKind
  uint32_t operands = 0, operand_count = 0;  // into Recording::operands
  uint32_t attributes = 0,
           attribute_count = 0;  // into Recording::attributes: the non-tensor arguments in order
  ValueId values = 0;
  uint32_t value_count = 0;
  uint32_t composite = kNone;  // innermost composite around it
  uint32_t joint = kNone;      // into Recording::joints
  uint32_t expected = kNone;   // into Recording::expected
  Place place;
};

// A composite operator: its arguments at entry, the records its kernel caused, its results.
struct Composite {
  const OpInfo* info = nullptr;
  uint32_t parent = kNone;
  RecordId begin = 0, end = 0;
  uint32_t operands = 0, operand_count = 0;
  uint32_t attributes = 0, attribute_count = 0;
  c10::SmallVector<ValueId, 2> results;
  bool grad = false;
  bool ended = false;
  Place place;
};

struct RecordedInput {
  std::string name;
  composit::InputKind kind = composit::InputKind::user_input;
  at::Tensor tensor;
  ValueId value = kNone;
  bool requires_grad = false;
  std::vector<std::string> tied;  // further names of the same tensor
  uint32_t shares = kNone;        // an input before it that lies in the same storage
  int64_t shift = 0;  // bytes from the first element of that one to the first of this one
  // In an excerpt: a tensor without a name, which becomes an input only if the graph reads it.
  bool discovered = false;
  // If originals are kept: its value and its memory when it came in.
  at::Tensor original = {}, came_in = {};
};

struct RecordedConstant {
  at::Tensor tensor;
  bool number = false;     // numbers of the program that became a tensor inside the scope
  Place place;             // of the operator that read it first
  ValueId shares = kNone;  // a value that came in with the same memory before
};

// State of a generator before a draw that did not follow from the run before it: the program seeded
// it.
struct GeneratorState {
  std::string role;
  at::Tensor state;
};

// A generator that lives on after the scope is the caller's, as an input is: replay draws from it.
// One that died in the scope starts each replay in the state it had at first use.
struct RecordedGenerator {
  std::string role;
  c10::weak_intrusive_ptr<c10::GeneratorImpl> live;
  RecordId first_state = kNone;  // sets that state; kNone for the default generator
};

using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

// Memory that was made inside the scope and outlives it: which values can be read from it.
struct Survivor {
  struct View {
    GeometryId geometry;
    ValueId value;
  };
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  std::vector<View> views;
  std::vector<WeakTensor> tensors;  // in this memory, as far as operators gave them; alive
};

// A number that the program computed of numbers which it had read, and gave to what the records
// from `begin` to before `end` are. Names in the formula are those of `name_of_read`.
struct GivenNumber {
  RecordId begin = 0, end = 0;
  double value = 0;
  composit::NumberFormula formula;
};
// The number that record `id` read, in formulas.
inline std::string name_of_read(RecordId id) { return "read_" + std::to_string(id); }

// In `operands`: a list of the low bits' length follows; an optional list that is absent.
constexpr uint32_t kListMark = 0x80000000u;
constexpr uint32_t kAbsentList = kNone - 1;
constexpr size_t kMaxFrames = 24;
using Backtrace = std::array<void*, kMaxFrames>;

struct Recording {
  ChunkedVector<Record> records;
  ChunkedVector<Value> values;
  ChunkedVector<uint32_t> operands;
  ChunkedVector<c10::IValue> attributes;
  std::vector<Composite> composites;
  std::vector<std::vector<JointView>> joints;
  std::vector<std::vector<c10::IValue>> expected;
  std::vector<RecordedInput> inputs;
  std::vector<RecordedConstant> constants;
  std::vector<GeneratorState> generator_states;
  std::vector<RecordedGenerator> generators;
  std::vector<Backtrace> backtraces;
  std::vector<std::string> modules, lines;                    // each text once
  std::unordered_map<ValueId, std::string> custom_gradients;  // see custom_gradient.h
  GeometryTable geometries;
  std::vector<std::string> remarks;  // for Capture::assumptions()
  uint32_t current_composite = kNone;
  bool grad = c10::GradMode::is_enabled();  // at the begin of the scope

  // Adds `record` with these operands and one output of geometry `geometry`; returns the output.
  ValueId push(Record record, c10::ArrayRef<ValueId> record_operands, GeometryId geometry,
               RecordId birth) {
    record.operand_count = static_cast<uint32_t>(record_operands.size());
    record.operands = operands.size();
    for (ValueId operand : record_operands) operands.push(operand);
    record.composite = current_composite;
    record.grad = c10::GradMode::is_enabled();
    record.values = values.push({records.size(), geometry, 0, birth});
    record.value_count = 1;
    records.push(record);
    return record.values;
  }
  // Once.
  void remark(const std::string& text) {
    if (std::find(remarks.begin(), remarks.end(), text) == remarks.end()) remarks.push_back(text);
  }
  // Adds a record without outputs.
  void push_effect(Record record, c10::ArrayRef<ValueId> record_operands = {}) {
    record.effect = true;
    record.operand_count = static_cast<uint32_t>(record_operands.size());
    record.operands = operands.size();
    for (ValueId operand : record_operands) operands.push(operand);
    record.composite = current_composite;
    records.push(record);
  }

  // With RecorderOptions::follow_numbers: those that the host language saw.
  std::vector<GivenNumber> given;

  // Filled at the end of the scope.
  std::vector<ValueId> outputs;
  struct Mutation {
    uint32_t input;
    ValueId value;
  };
  std::vector<Mutation> mutations;
  std::vector<Mutation> gradients;  // left in `.grad` of an input, in memory that was made inside
  std::vector<Survivor> survivors;  // but for excerpts
};

}  // namespace flashlight::tracer
