// Writes down what runs: told of every operator before and after its call, it keeps a Recording and
// a model of memory.
//
//   Recorder recorder(options);  recorder.add_input(x, "x", InputKind::user_input);
//   auto pending = recorder.before(info, arguments);  ... the call ...  recorder.after(pending,
//   results);
//
// It never calls an operator itself, so several recorders (nested scopes) can watch one call. Calls
// may come from pool threads: every entry takes the lock, which is never held while an operator
// runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "tracer/aliasing.h"
#include "tracer/allocation_watch.h"
#include "tracer/foreign_threads.h"
#include "tracer/generator_watch.h"
#include "tracer/observed_writes.h"
#include "tracer/recording.h"
#include "tracer/stopped_operator.h"

namespace flashlight::tracer {

struct RecorderOptions {
  bool chains = true;         // write through views as view operators where they have inverses
  bool source_lines = false;  // keep a backtrace per operator
  // The line of a host language that runs now, "model.py:12 in forward"; empty where it knows none.
  // Asked on the recorder's thread, with no lock held.
  std::function<std::string()> host_line = nullptr;
  bool excerpt = false;                                        // see TraceOptions
  bool keep_originals = false;                                 // see TraceOptions
  bool follow_numbers = false;                                 // see TraceOptions
  std::function<void(const std::string&)> on_error = nullptr;  // see TraceOptions
};

// Tensors of one argument in order, absent ones as undefined tensors.
c10::SmallVector<at::Tensor, 4> tensors_of(const c10::IValue& value);

class Recorder {
 public:
  // The data of an operator's call, collected before it runs.
  struct Pending {
    const OpInfo* info = nullptr;
    c10::SmallVector<uint32_t, 8> operands;  // values and list marks, in the order of the schema
    c10::SmallVector<JointView, 2> joint;
    c10::SmallVector<at::Tensor, 2> written;
    c10::SmallVector<int64_t, 2> written_sizes;  // number of elements before the call
    c10::SmallVector<bool, 2> written_joined;    // per written tensor: is one of `joint`
    uint32_t attributes = 0, attribute_count = 0;
    uint32_t composite = kNone;  // the composite this call opens
    uint32_t parent = kNone;
    std::optional<GeneratorWatch>* generator = nullptr;
    bool grad = false;
    bool requires_grad = false;  // grad mode is on and an argument requires grad
    std::shared_ptr<const ArgumentContents> contents;  // before a call of a foreign operator
    std::vector<c10::IValue> arguments;  // of a call that writes in grad mode, or with `hooks`
    bool hooks = false;        // on what autograd saves: may stop the operator (stopped_operator.h)
    uint64_t allocations = 0;  // with hooks: AllocationWatch::count() before
    c10::SmallVector<uint64_t, 2> write_marks;  // with hooks: of `written`, before
    Place place;
  };
  // Called with each new leaf and the tensors it returned or wrote, in the order of its values.
  using Observer = std::function<void(RecordId, c10::ArrayRef<at::Tensor>)>;

  Recorder(RecorderOptions options, std::shared_ptr<AllocationWatch> allocations);

  // Before the first operator. Parameters, buffers and arguments under the names a user knows them
  // by.
  void add_input(const at::Tensor& tensor, const std::string& name, composit::InputKind kind);
  void observe(Observer observer) { observer_ = std::move(observer); }
  // Assigns all operators until `leave_module` to the module of this path, "encoder.layer.0".
  // Without these calls, modules are derived from the parameters that operators read
  // (module_scopes.h).
  void enter_module(const std::string& path);
  void leave_module();

  // A generator of the caller's, before the first operator: what the program does to it before it
  // draws first is seen, too. Others are taken to be in the caller's state at their first draw.
  void watch(const at::Generator& generator);

  // Errors are told to `on_error`, by `abandon`: nothing more is recorded then.
  bool tolerant() const { return options_.on_error != nullptr; }
  void abandon(const std::string& why);

  Pending before(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments);
  void after(Pending& pending, c10::ArrayRef<c10::IValue> results);
  void failed(Pending& pending);  // the call threw

  // After the last operator: what the tensors hold, and which inputs were written. The recorder is
  // spent then.
  std::unique_ptr<Recording> finish(const std::vector<at::Tensor>& outputs);
  bool finished() const { return recording_ == nullptr; }
  const std::shared_ptr<ForeignThreads>& foreign_threads() const { return foreign_; }
  // Generators get back the bits they would have without a recorder (generator_watch.h). `finish`
  // and the destructor do so, too.
  void forget_generators();

  // Is it in memory that an operator or a name has brought in; was that made by an operator?
  bool knows(const at::Tensor& tensor) const { return aliasing_.knows(tensor); }
  bool made_inside(const at::Tensor& tensor) const { return aliasing_.made_inside(tensor); }
  // The value it holds now; nothing for memory that no operator and no name has brought in, or that
  // the host may still fill.
  std::optional<ValueId> held_value(const at::Tensor& tensor);
  // For a host language that follows the numbers which a program reads (given_numbers.h).
  bool follows_numbers() const { return options_.follow_numbers && !finished(); }
  RecordId record_count() const { return recording_->records.size(); }
  // The last record, if it reads a number.
  std::optional<RecordId> last_read() const;
  void give(std::vector<GivenNumber> numbers) { recording_->given = std::move(numbers); }
  // For Capture::assumptions().
  void remark(const std::string& text);
  // Is it in memory that the scope made, or that was passed in?
  bool is_own(const at::Tensor& tensor);
  // The value a tensor holds now, as a graph.
  composit::LazyTensor lazy(const at::Tensor& tensor);
  const Recording& recording() const { return *recording_; }

 private:
  using Results = c10::SmallVector<at::Tensor, 4>;

  // Composites are followed on the thread that made the recorder; leaves of other threads stand
  // outside of them.
  struct OwnThread {
    explicit OwnThread(Recorder& recorder)
        : own(std::this_thread::get_id() == recorder.owner_),
          recording(*recorder.recording_),
          composite(recording.current_composite) {
      if (!own) recording.current_composite = kNone;
    }
    ~OwnThread() {
      if (!own) recording.current_composite = composite;
    }
    const bool own;
    Recording& recording;
    const uint32_t composite;
  };

  void read_arguments(Pending& pending, c10::ArrayRef<c10::IValue> arguments);
  ValueId read(const at::Tensor& tensor, bool content = true);
  c10::IValue attribute(const c10::IValue& argument);
  void begin_composite(Pending& pending);

  struct Operand;
  std::vector<Operand> operands_of(Pending& pending, c10::ArrayRef<c10::IValue> arguments);
  bool shares(const Pending& pending, const Operand& written,
              const std::vector<Operand>& operands) const;
  void join_shared(Pending& pending, c10::ArrayRef<c10::IValue> arguments);

  std::optional<GeneratorWatch>& generator_watch(const at::Generator& generator,
                                                 bool from_begin = false);
  RecordId set_generator_state(const GeneratorWatch& watch, const composit::Hash& state);
  void set_moved_generator(GeneratorWatch& watch);
  std::string generator_role(const at::Generator& generator) const;
  void watch_generator(Pending& pending, c10::ArrayRef<c10::IValue> arguments);
  void settle_generators();
  ValueId read_place(ValueId value);
  std::optional<ValueId> from_generator(const at::Tensor& tensor);
  void end_generators(const std::vector<at::Tensor>& outputs);

  Record make_record(const Pending& pending);
  void note_hooks(Pending& pending, c10::ArrayRef<c10::IValue> arguments);
  bool record_stopped(Pending& pending);
  std::optional<ValueId> from_stopped(const at::Tensor& tensor);
  void moved(c10::ArrayRef<c10::IValue> results);
  void record_leaf(Pending& pending, c10::ArrayRef<c10::IValue> results);
  void end_composite(Pending& pending, c10::ArrayRef<c10::IValue> results);
  void push_leaf(Pending& pending, Record record, const Results& fresh);
  std::vector<std::pair<at::Tensor, bool>> outputs_written(const Pending& pending) const;

  // Errors where another thread has worked on the scope's values, or made `tensor`
  // (foreign_work.cpp).
  void expect_no_foreign_work();
  void expect_not_foreign(const at::Tensor& tensor) const;
  // Keeps the arguments' content for a foreign operator (foreign_work.cpp).
  void keep_contents(Pending& pending, c10::ArrayRef<c10::IValue> arguments);
  void note_observed_writes(Pending& pending);

  ValueId from_outside(const at::Tensor& tensor);
  ValueId add_source(RecordKind kind, uint32_t index, const at::Tensor& tensor);
  void note_shared_memory(uint32_t index, ValueId first);
  void promote_written_constants();
  RecordedInput& promote(Record& constant, std::string name, composit::InputKind kind);
  void promote_constants();
  void keep_original(const at::Tensor& written);
  void note_originals();
  void note_survivors();
  void note_gradients();
  void expect_own_memory(uint32_t index) const;
  void expect_same_type(const RecordedInput& input, ValueId now) const;
  Place place_here();
  static uint32_t intern(std::vector<std::string>& texts,
                         std::unordered_map<std::string, uint32_t>& known, const std::string& text);

  bool keeps_originals() const { return options_.excerpt || options_.keep_originals; }

  const RecorderOptions options_;
  std::shared_ptr<AllocationWatch> allocations_;
  std::unique_ptr<Recording> recording_;
  Aliasing aliasing_;
  const std::thread::id owner_;
  std::unordered_map<const c10::TensorImpl*, uint32_t> named_;  // parameters and buffers: the input
  std::unordered_map<const c10::GeneratorImpl*, std::optional<GeneratorWatch>> generators_;
  std::unordered_map<composit::Hash, ValueId> generator_places_;  // the states of the run
  std::unordered_map<composit::Hash, const GeneratorWatch*> unmarked_places_;
  std::vector<const GeneratorWatch*> unsettled_;  // at a place that has no record yet
  std::map<std::vector<int64_t>, c10::IValue> int_lists_;
  std::map<std::string, c10::IValue> strings_;
  std::vector<uint32_t> modules_;  // entered now: into Recording::modules
  std::unordered_map<std::string, uint32_t> known_modules_, known_lines_;
  // With `keep_originals`: inputs and constants as they came in, sharing memory, and copies of the
  // memory that was written since.
  std::unordered_map<ValueId, at::Tensor> came_in_;
  std::unordered_map<const c10::StorageImpl*, at::Tensor> originals_;
  StoppedResults stopped_;
  int unnamed_parameters_ = 0;
  int unnamed_buffers_ = 0;
  Observer observer_;
  const std::shared_ptr<ForeignThreads> foreign_ = std::make_shared<ForeignThreads>();
  bool foreign_read_ = false;  // another thread read what came into the scope
  std::recursive_mutex mutex_;
  const std::string* current_op_ = nullptr;  // for messages
  Place current_place_;
};

}  // namespace flashlight::tracer
