#include "flashlight/mosaic/step_runner.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "flashlight/runtime/flashlight.hpp"
#include "flashlight/runtime/steps.hpp"

namespace flashlight::mosaic {
namespace {

// Steps in order. There is one of these for each size that was asked for: what all steps have is in
// one piece.
struct Steps {
  std::vector<fl::Step> steps;
  std::vector<int64_t> numbers;
  std::vector<Place> places;
  std::set<std::shared_ptr<const toolchain::Library>> libraries;  // that the code is in

  Steps(const std::vector<OpenStep>& open, const std::vector<ReadyStep>& ready) {
    for (size_t i = 0; i < open.size(); ++i) {
      steps.push_back({ready[i].enter, numbers.size(), places.size(), open[i].is_kernel,
                       open[i].is_waited_for});
      numbers.insert(numbers.end(), ready[i].numbers.begin(), ready[i].numbers.end());
      places.insert(places.end(), open[i].places.begin(), open[i].places.end());
      libraries.insert(ready[i].library);
    }
    steps.shrink_to_fit();
    numbers.shrink_to_fit();
    places.shrink_to_fit();
  }
};

// Where everything lies during a call.
struct Memory {
  const package::Pointers& at;
  const std::vector<PreparedMemory>& prepared;
  std::byte* arena;

  void* address(const Place& place) const {
    switch (place.in) {
      case Place::In::nothing:
        return nullptr;
      case Place::In::argument:
        return const_cast<void*>(at.arguments[place.index]);
      case Place::In::result:
        return at.results[place.index];
      case Place::In::weight:
        return const_cast<void*>(at.weights[place.index]);
      case Place::In::prepared:
        return prepared[place.index].first.get();
      case Place::In::arena:
        return arena + place.offset;
    }
    return nullptr;
  }
};

// The addresses that all steps get.
std::vector<void*> addresses(const Steps& steps, const Memory& memory) {
  std::vector<void*> all;
  all.reserve(steps.places.size());
  for (const Place& place : steps.places) all.push_back(memory.address(place));
  return all;
}

// A step of the preparation: the values that it reads and writes.
struct Preparation {
  std::vector<size_t> reads, writes;
};

bool has_any(const std::vector<size_t>& values, const std::vector<bool>& of) {
  return std::any_of(values.begin(), values.end(), [&](size_t value) { return of[value]; });
}

// What is to be prepared again: what stays and has no memory, and what it is made of. A step fills
// all that it writes, and no one else may read that yet.
std::vector<bool> to_fill(const std::vector<Preparation>& steps,
                          const std::vector<PreparedValue>& values,
                          const std::vector<PreparedMemory>& memory) {
  std::vector<bool> fill;
  for (size_t i = 0; i < values.size(); ++i)
    fill.push_back(values[i].stays && memory[i].first == nullptr);
  for (bool changed = true; changed;) {
    changed = false;
    const auto add = [&](size_t value) {
      changed = changed || !fill[value];
      fill[value] = true;
    };
    for (const Preparation& step : steps) {
      if (!has_any(step.writes, fill)) continue;
      for (const size_t value : step.writes) add(value);
      for (const size_t value : step.reads)
        if (memory[value].first == nullptr) add(value);
    }
  }
  return fill;
}

class StepRunner : public Runner {
 public:
  StepRunner(const OpenProgram& program, const ReadySteps& steps, int threads)
      : prepare_(program.prepare, steps.prepare),
        run_(program.run, steps.run),
        prepared_(program.prepared),
        threads_(threads) {
    for (const OpenStep& step : program.prepare) {
      preparations_.push_back({{}, step.prepares});
      for (const Place& place : step.places)
        if (place.in == Place::In::prepared) preparations_.back().reads.push_back(place.index);
    }
  }

  bool take(const PreparedList& others, std::vector<PreparedMemory>& memory) const override {
    bool all = true;
    for (size_t i = 0; i < prepared_.size(); ++i) {
      memory.push_back({prepared_[i].key, taken(others, i)});
      all = all && (memory.back().first != nullptr || !prepared_[i].stays);
    }
    return all;
  }

  // What stays is one piece of memory; the rest lives from the first step that has it to the last.
  const char* prepare(const std::vector<const void*>& weights,
                      std::vector<PreparedMemory>& memory) const override {
    const std::vector<bool> fill = to_fill(preparations_, prepared_, memory);
    std::vector<int64_t> bytes;
    for (size_t i = 0; i < fill.size(); ++i)
      if (fill[i] && prepared_[i].stays) bytes.push_back(prepared_[i].bytes);
    std::vector<std::shared_ptr<std::byte>> fresh = allocate_together(bytes);
    for (size_t i = 0, next = 0; i < fill.size(); ++i)
      if (fill[i] && prepared_[i].stays) memory[i].first = std::move(fresh[next++]);
    const package::Pointers at = {.weights = weights};
    std::vector<size_t> last(fill.size(), 0);
    for (size_t i = 0; i < preparations_.size(); ++i)
      for (const size_t value : preparations_[i].reads) last[value] = i;
    for (size_t i = 0; i < preparations_.size(); ++i) {
      const Preparation& step = preparations_[i];
      if (!has_any(step.writes, fill)) continue;
      for (const size_t value : step.writes)
        if (!prepared_[value].stays && memory[value].first == nullptr)
          memory[value].first = allocate_together({prepared_[value].bytes})[0];
      const Memory places = {at, memory, nullptr};
      if (const char* error = call(prepare_, i, i + 1, places, nullptr)) return error;
      for (const auto* values : {&step.reads, &step.writes})
        for (const size_t value : *values)
          if (!prepared_[value].stays && last[value] <= i) memory[value].first.reset();
    }
    return nullptr;
  }

  const char* run(const package::Pointers& at, const Prepared& prepared, std::byte* arena,
                  int64_t* times) const override {
    return call(run_, 0, run_.steps.size(), {at, prepared.memory, arena}, times);
  }

 private:
  // The memory of value `i`; nullptr if no other has it. Most often the first one has, at the same
  // place.
  std::shared_ptr<std::byte> taken(const PreparedList& others, size_t i) const {
    const composit::Hash& key = prepared_[i].key;
    for (const auto& other : others)
      if (i < other->memory.size() && other->memory[i].key == key) return other->memory[i].first;
    for (const auto& other : others)
      for (const PreparedMemory& one : other->memory)
        if (one.key == key) return one.first;
    return nullptr;
  }

  const char* call(const Steps& steps, size_t begin, size_t end, const Memory& memory,
                   int64_t* times) const {
    const std::vector<void*> all = addresses(steps, memory);
    try {
      const fl::Step* const first = steps.steps.data();
      fl::run_team(threads_, [&](const fl::Team& team) {
        fl::run_steps(team, first + begin, first + end, all.data(), memory.arena,
                      memory.at.generator, steps.numbers.data(), times);
      });
    } catch (const std::exception& error) {
      return fl::keep_message(error.what());
    }
    return nullptr;
  }

  const Steps prepare_, run_;
  std::vector<Preparation> preparations_;
  const std::vector<PreparedValue> prepared_;
  const int threads_;
};

}  // namespace

std::shared_ptr<const Runner> step_runner(const OpenProgram& program, const ReadySteps& steps,
                                          int threads) {
  return std::make_shared<const StepRunner>(program, steps, threads);
}

StepListing::StepListing(const OpenProgram& program, const ReadySteps& steps)
    : prepare_(lines(program.prepare, steps.prepare)), run_(lines(program.run, steps.run)) {}

std::vector<StepListing::Line> StepListing::lines(const std::vector<OpenStep>& open,
                                                  const std::vector<ReadyStep>& ready) {
  std::vector<Line> all;
  for (size_t i = 0; i < open.size(); ++i) all.push_back({open[i].name, ready[i].text});
  return all;
}

std::string StepListing::text() const {
  std::string texts, order;
  std::set<const StepText*> known;
  const auto add = [&](const char* part, const std::vector<Line>& lines) {
    order += fmt::format("\n// {}:\n", part);
    for (const Line& line : lines) {
      if (known.insert(line.text.get()).second)
        texts += text_of(*line.text, line.text->name, "void enter");
      order += fmt::format("//   {}: {}\n", line.name, line.text->name);
    }
  };
  add("prepare", prepare_);
  add("run", run_);
  return texts + order;
}

}  // namespace flashlight::mosaic
