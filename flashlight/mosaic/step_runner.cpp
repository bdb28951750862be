#include "flashlight/mosaic/step_runner.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "flashlight/runtime/flashlight.hpp"
#include "flashlight/runtime/times.hpp"

namespace flashlight::mosaic {
namespace {

// A step, without its text.
struct Step {
  ReadyStep::Enter* enter;
  size_t numbers, places;  // where its own begin among those of all steps
  bool is_kernel, is_waited_for;
};

// Steps in order. There is one of these for each size that was asked for: what all steps have is in
// one piece.
struct Steps {
  std::vector<Step> steps;
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

// What is to be prepared again: a step fills all that it writes, and no one else may read that yet.
// `prepares`: by step, the values that it writes.
std::vector<bool> to_fill(const std::vector<std::vector<size_t>>& prepares,
                          const std::vector<PreparedMemory>& memory) {
  std::vector<bool> fill;
  for (const PreparedMemory& one : memory) fill.push_back(one.first == nullptr);
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::vector<size_t>& values : prepares) {
      const auto is_open = [&](size_t value) { return fill[value]; };
      if (std::none_of(values.begin(), values.end(), is_open)) continue;
      for (const size_t value : values) {
        changed = changed || !fill[value];
        fill[value] = true;
      }
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
    for (const OpenStep& step : program.prepare) prepares_.push_back(step.prepares);
  }

  bool take(const PreparedList& others, std::vector<PreparedMemory>& memory) const override {
    bool all = true;
    for (size_t i = 0; i < prepared_.size(); ++i) {
      memory.push_back({prepared_[i].key, taken(others, i)});
      all = all && memory.back().first != nullptr;
    }
    return all;
  }

  const char* prepare(const std::vector<const void*>& weights,
                      std::vector<PreparedMemory>& memory) const override {
    const std::vector<bool> fill = to_fill(prepares_, memory);
    std::vector<int64_t> bytes;
    for (size_t i = 0; i < fill.size(); ++i)
      if (fill[i]) bytes.push_back(prepared_[i].bytes);
    std::vector<std::shared_ptr<std::byte>> fresh = allocate_together(bytes);
    for (size_t i = 0, next = 0; i < fill.size(); ++i)
      if (fill[i]) memory[i].first = std::move(fresh[next++]);
    Steps steps = prepare_;
    steps.steps.clear();
    for (size_t i = 0; i < prepares_.size(); ++i)
      if (std::any_of(prepares_[i].begin(), prepares_[i].end(),
                      [&](size_t value) { return fill[value]; }))
        steps.steps.push_back(prepare_.steps[i]);
    const package::Pointers at = {.weights = weights};
    return call(steps, {at, memory, nullptr}, nullptr);
  }

  const char* run(const package::Pointers& at, const Prepared& prepared, std::byte* arena,
                  int64_t* times) const override {
    return call(run_, {at, prepared.memory, arena}, times);
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

  const char* call(const Steps& steps, const Memory& memory, int64_t* times) const {
    const std::vector<void*> all = addresses(steps, memory);
    try {
      fl::run_team(threads_, [&](const fl::Team& team) {
        fl::start_times(team, times);
        int number = 0;
        for (const Step& step : steps.steps) {
          step.enter(team, all.data() + step.places, memory.arena, memory.at.generator,
                     steps.numbers.data() + step.numbers);
          if (step.is_kernel)
            fl::end_kernel(team, times, ++number);
          else if (step.is_waited_for)
            team.wait();
        }
      });
    } catch (const std::exception& error) {
      return fl::keep_message(error.what());
    }
    return nullptr;
  }

  const Steps prepare_, run_;
  std::vector<std::vector<size_t>> prepares_;  // by step of preparation, the values that it writes
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
  std::set<const std::string*> known;
  const auto add = [&](const char* part, const std::vector<Line>& lines) {
    order += fmt::format("\n// {}:\n", part);
    for (const Line& line : lines) {
      if (known.insert(line.text.get()).second) texts += *line.text;
      const size_t begin = line.text->find("step_");
      order += fmt::format("//   {}: {}\n", line.name,
                           line.text->substr(begin, line.text->find(' ', begin) - begin));
    }
  };
  add("prepare", prepare_);
  add("run", run_);
  return texts + order;
}

}  // namespace flashlight::mosaic
