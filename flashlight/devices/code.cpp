#include "flashlight/devices/code.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "composit/ir/error.h"
#include "flashlight/devices/queues.h"
#include "flashlight/loops/arena.h"
#include "flashlight/package/arena_pool.h"
#include "flashlight/package/backend.h"
#include "flashlight/runtime/profile.hpp"

namespace flashlight::devices {

using composit::Array;
using composit::Buffer;
using composit::Buffers;
using composit::Compiled;
using composit::InputBuffer;
using composit::InputBuffers;

namespace {

using Arrays = std::vector<Array>;
constexpr size_t kNone = SIZE_MAX;

int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// The place of a value in one memory during a call: a result's buffer, or the arena. One that is
// the new value of an input has both: it waits in the arena where the buffer is the input's.
struct Location {
  size_t result = kNone;
  int64_t offset = -1;
};
using InMemory = std::pair<size_t, std::string>;  // a value, in a memory
struct Layout {
  std::map<InMemory, Location> locations;  // of values that parts and copies make
  int64_t bytes = 0;
};

class LayoutMaker {
 public:
  LayoutMaker(const Partition& partition, const Schedule& schedule, const CodeOptions& options)
      : partition_(partition),
        schedule_(schedule),
        outputs_(partition.results.size() - options.targets.size()),
        keeps_all_(options.overlap && schedule.overlaps) {}

  Layout run() {
    for (size_t i = 0; i < schedule_.tasks.size(); ++i) touch_all(schedule_.tasks[i], i);
    std::vector<loops::Lifetime> lifetimes;
    std::vector<Location*> places;
    for (const auto& [place, life] : lives_) {
      Location& location = layout_.locations[place];
      if (place.second == kCallersMemory) location.result = result_of(place.first);
      if (location.result < outputs_) continue;
      const bool waits = location.result != kNone;  // until all is computed
      lifetimes.push_back({partition_.values[place.first].type.nbytes(), life.first,
                           waits ? schedule_.tasks.size() : life.second});
      places.push_back(&location);
    }
    const std::vector<int64_t> offsets = loops::place(lifetimes);
    for (size_t i = 0; i < offsets.size(); ++i) places[i]->offset = offsets[i];
    layout_.bytes = loops::arena_size(lifetimes, offsets);
    return std::move(layout_);
  }

 private:
  // The first result that has this value; kNone: it is no result.
  size_t result_of(size_t value) const {
    const auto found = std::find(partition_.results.begin(), partition_.results.end(), value);
    return found == partition_.results.end()
               ? kNone
               : static_cast<size_t>(found - partition_.results.begin());
  }

  void touch_all(const Task& task, size_t number) {
    if (task.is_copy) {
      const Copy& copy = schedule_.copies[task.number];
      touch({copy.value, copy.from}, number);
      touch({copy.value, copy.to}, number);
      return;
    }
    const Part& part = partition_.parts[task.number];
    const std::string& memory = partition_.devices[part.device].memory;
    for (const size_t value : part.makes) touch({value, memory}, number);
    for (const size_t value : part.reads) touch({value, memory}, number);
  }
  // Callers have inputs in their own memory. Tasks that overlap do not follow each other, so then
  // nothing shares memory.
  void touch(const InMemory& value, size_t task) {
    const bool is_input = partition_.values[value.first].maker == PassedValue::kCaller;
    if (is_input && (value.second == kCallersMemory || is_kept(value))) return;
    const auto [life, is_new] = lives_.emplace(value, std::pair(task, task));
    life->second.second = task;
    if (keeps_all_) life->second = {0, schedule_.tasks.size()};
  }
  bool is_kept(const InMemory& value) const {
    return std::any_of(schedule_.kept.begin(), schedule_.kept.end(), [&](const Copy& copy) {
      return copy.value == value.first && copy.to == value.second;
    });
  }

  const Partition& partition_;
  const Schedule& schedule_;
  const size_t outputs_;  // results before the new values of inputs
  const bool keeps_all_;
  std::map<InMemory, std::pair<size_t, size_t>> lives_;  // first and last task
  Layout layout_;
};

// The part of the code that all calls share, for any weights.
struct Program {
  Program(Partition parts, Schedule order, CodeOptions chosen)
      : partition(std::move(parts)),
        schedule(std::move(order)),
        options(std::move(chosen)),
        layout(LayoutMaker(partition, schedule, options).run()) {}

  Partition partition;
  Schedule schedule;
  CodeOptions options;
  Layout layout;
  package::ArenaPool arenas;
};

class DevicesCode : public composit::Code {
 public:
  using Kept = std::map<InMemory, Array>;  // by input and memory

  DevicesCode(std::shared_ptr<const Program> program, std::vector<Compiled> parts, Kept kept = {})
      : Code(program->options.ports),
        program_(std::move(program)),
        parts_(std::move(parts)),
        kept_(std::move(kept)) {
    for (size_t i = 0; i < parts_.size(); ++i)
      source_ += section(program_->partition, i, parts_[i]->source());
  }

  const std::string& source() const override { return source_; }
  bool draws() const override {
    return std::any_of(parts_.begin(), parts_.end(),
                       [](const Compiled& part) { return part->draws(); });
  }
  // An input that one part packs is taken for all, and so is a weight that goes to another memory.
  bool is_frozen(size_t input) const override {
    for (const Copy& copy : program_->schedule.kept)
      if (copy.value == input) return true;
    for (size_t i = 0; i < parts_.size(); ++i)
      if (const size_t place = position(i, input); place != kNone && parts_[i]->is_frozen(place))
        return true;
    return false;
  }

  // A new value waits in the arena until the last part has ended, so a call that throws writes
  // nothing. One that is an input as it was is not written in place: that may be written as well.
  bool may_update(size_t result) const override {
    const Numbers& results = program_->partition.results;
    return result >= outputs() && result < results.size() &&
           program_->partition.values[results[result]].maker != PassedValue::kCaller;
  }

  std::shared_ptr<const composit::Code> prepare(const Arrays& weights) const override {
    std::vector<Compiled> prepared;
    for (size_t i = 0; i < parts_.size(); ++i) {
      Arrays given;
      for (const size_t value : program_->partition.parts[i].reads)
        given.push_back(value < weights.size() ? weights[value] : Array());
      prepared.emplace_back(parts_[i]->prepare(given));
    }
    Kept kept;
    for (size_t i = 0; i < parts_.size(); ++i) keep_weights_of(i, weights, kept);
    return std::make_shared<const DevicesCode>(program_, std::move(prepared), std::move(kept));
  }

  void run(InputBuffers inputs, Buffers results, fl::Generator* generator) const override {
    call(inputs, results, generator, nullptr);
  }
  std::vector<fl::TimedKernel> profile(InputBuffers inputs, Buffers results,
                                       fl::Generator* generator) const override {
    std::vector<fl::Profile> profiles(program_->schedule.tasks.size());
    call(inputs, results, generator, &profiles);
    fl::Profile all;
    for (const fl::Profile& one : profiles) all.insert(all.end(), one.begin(), one.end());
    return all;
  }

 private:
  class Call;

  size_t outputs() const {
    return program_->partition.results.size() - program_->options.targets.size();
  }
  // The position of an input of the graph among those of a part.
  size_t position(size_t part, size_t input) const {
    const Numbers& reads = program_->partition.parts[part].reads;
    const auto found = std::find(reads.begin(), reads.end(), input);
    return found == reads.end() ? kNone : static_cast<size_t>(found - reads.begin());
  }
  // Those that the part reads at each call, in the memory of its device.
  void keep_weights_of(size_t part, const Arrays& weights, Kept& kept) const {
    const Partition& partition = program_->partition;
    const Part& one = partition.parts[part];
    const std::string& memory = partition.devices[one.device].memory;
    for (size_t place = 0; place < one.reads.size(); ++place) {
      const size_t input = one.reads[place];
      if (input >= weights.size() || !is_frozen(input) || parts_[part]->is_frozen(place)) continue;
      const Array tight = weights[input].contiguous();
      kept.emplace(std::pair(input, memory),
                   memory == kCallersMemory ? tight : Array::copy_of(tight.type(), tight.data()));
    }
  }

  void call(InputBuffers inputs, Buffers results, fl::Generator* generator,
            std::vector<fl::Profile>* profiles) const;

  std::shared_ptr<const Program> program_;
  std::vector<Compiled> parts_;
  Kept kept_;  // frozen inputs that parts read at each call
  std::string source_;
};

// ---- a call -------------------------------------------------------------------------------------

class DevicesCode::Call {
 public:
  Call(const DevicesCode& code, InputBuffers inputs, std::vector<void*> results,
       fl::Generator* generator)
      : code_(code),
        partition_(code.program_->partition),
        inputs_(inputs),
        results_(std::move(results)),
        generator_(generator),
        outputs_(code.outputs()),
        arena_(code.program_->arenas.take(static_cast<size_t>(code.program_->layout.bytes))) {}

  // The time of a task is added to `profile`, where there is one.
  void work(const Task& task, fl::Profile* profile) {
    if (task.is_copy)
      copy(code_.program_->schedule.copies[task.number], profile);
    else
      run(task.number, profile);
  }

  // Results that are inputs, or come twice; last, when all that inputs were has been read, what is
  // written to inputs.
  void finish() {
    for (const bool in_place : {false, true})
      for (size_t i = 0; i < partition_.results.size(); ++i) {
        if (is_in_place(i) != in_place) continue;
        const size_t value = partition_.results[i];
        const void* from = address(value, kCallersMemory);
        if (from != results_[i]) transfer(results_[i], from, value);
      }
  }

 private:
  void copy(const Copy& copy, fl::Profile* profile) {
    const int64_t start = now();
    if (const void* from = address(copy.value, copy.from))
      transfer(address_of({copy.value, copy.to}), from, copy.value);
    if (profile != nullptr)
      profile->push_back({.name = "copy to " + copy.to,
                          .module = partition_.values[copy.value].name,
                          .start = start,
                          .end = now(),
                          .bytes = 2 * partition_.values[copy.value].type.nbytes()});
  }

  void run(size_t number, fl::Profile* profile) {
    const Part& part = partition_.parts[number];
    const DeviceChoice& device = partition_.devices[part.device];
    std::vector<InputBuffer> from;
    for (const size_t value : part.reads) from.emplace_back(address(value, device.memory));
    std::vector<Buffer> to;
    for (const size_t value : part.makes) to.emplace_back(address_of({value, device.memory}));
    const composit::Code& code = *code_.parts_[number];
    fl::Generator* const generator = code.draws() ? generator_ : nullptr;
    if (profile == nullptr) return code.run(from, to, generator);
    const int64_t start = now();
    code.run(from, to, generator);
    profile->push_back({.name = "part " + std::to_string(number) + " on " + device.name,
                        .module = "",
                        .start = start,
                        .end = now()});
  }

  // The address of a value in a memory; nullptr for an input that all who read it there have
  // packed.
  const void* address(size_t value, const std::string& memory) const {
    if (const auto kept = code_.kept_.find({value, memory}); kept != code_.kept_.end())
      return kept->second.data();
    if (value < inputs_.size() && memory == kCallersMemory) return inputs_[value].data;
    return address_of({value, memory});
  }
  void* address_of(const InMemory& value) const {
    const auto found = layout().locations.find(value);
    if (found == layout().locations.end()) return nullptr;
    const Location& location = found->second;
    const bool in_arena = location.result == kNone || is_in_place(location.result);
    return in_arena ? arena_.get() + location.offset : results_[location.result];
  }
  // True for a new value of an input that goes to the input's own memory.
  bool is_in_place(size_t result) const {
    if (result < outputs_) return false;
    const size_t target = code_.program_->options.targets[result - outputs_];
    return results_[result] != nullptr && results_[result] == inputs_[target].data;
  }
  const Layout& layout() const { return code_.program_->layout; }
  void transfer(void* to, const void* from, size_t value) const {
    const auto bytes = static_cast<size_t>(partition_.values[value].type.nbytes());
    if (bytes > 0) std::memcpy(to, from, bytes);
  }

  const DevicesCode& code_;
  const Partition& partition_;
  InputBuffers inputs_;
  std::vector<void*> results_;
  fl::Generator* generator_;
  size_t outputs_;
  package::ArenaPool::Loan arena_;
};

void DevicesCode::call(InputBuffers inputs, Buffers results, fl::Generator* generator,
                       std::vector<fl::Profile>* profiles) const {
  std::vector<void*> places = ports().places(results);
  std::optional<fl::Generator> fresh;
  if (generator == nullptr && draws()) generator = &fresh.emplace(package::kDefaultSeed);
  for (const size_t value : program_->partition.results)
    if (value < inputs.size()) ports().given(value, inputs);
  Call call(*this, inputs, std::move(places), generator);
  const Schedule& schedule = program_->schedule;
  run_in_queues(schedule, program_->options.overlap && profiles == nullptr, [&](size_t task) {
    call.work(schedule.tasks[task], profiles == nullptr ? nullptr : &(*profiles)[task]);
  });
  call.finish();
}

}  // namespace

Compiled code_of(Partition partition, Schedule schedule, std::vector<Compiled> parts,
                 CodeOptions options) {
  auto program = std::make_shared<const Program>(std::move(partition), std::move(schedule),
                                                 std::move(options));
  return {std::make_shared<const DevicesCode>(std::move(program), std::move(parts))};
}

}  // namespace flashlight::devices
