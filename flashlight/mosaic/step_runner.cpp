#include "flashlight/mosaic/step_runner.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <utility>

#include "flashlight/runtime/flashlight.hpp"
#include "flashlight/runtime/times.hpp"

namespace flashlight::mosaic {
namespace {

// A step, without its text.
struct Step {
  ReadyStep::Enter* enter;
  toolchain::Library library;
  std::vector<int64_t> numbers;
  std::vector<Place> places;
  std::vector<size_t> prepares;
  bool is_kernel, is_waited_for;
};

std::vector<Step> runnable(std::vector<OpenStep> open, std::vector<ReadyStep> ready) {
  std::vector<Step> steps;
  for (size_t i = 0; i < open.size(); ++i)
    steps.push_back({ready[i].enter, std::move(ready[i].library), std::move(ready[i].numbers),
                     std::move(open[i].places), std::move(open[i].prepares), open[i].is_kernel,
                     open[i].is_waited_for});
  return steps;
}

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

// The addresses that all steps get, those of one after those of the one before.
std::vector<void*> addresses(const std::vector<Step>& steps, const Memory& memory) {
  std::vector<void*> all;
  for (const Step& step : steps)
    for (const Place& place : step.places) all.push_back(memory.address(place));
  return all;
}

// What is to be prepared again: a step fills all that it writes, and no one else may read that yet.
std::vector<bool> to_fill(const std::vector<Step>& steps,
                          const std::vector<PreparedMemory>& memory) {
  std::vector<bool> fill;
  for (const PreparedMemory& one : memory) fill.push_back(one.first == nullptr);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Step& step : steps) {
      const auto is_open = [&](size_t value) { return fill[value]; };
      if (std::none_of(step.prepares.begin(), step.prepares.end(), is_open)) continue;
      for (const size_t value : step.prepares) {
        changed = changed || !fill[value];
        fill[value] = true;
      }
    }
  }
  return fill;
}

class StepRunner : public Runner {
 public:
  StepRunner(OpenProgram program, ReadySteps steps, int threads)
      : prepare_(runnable(std::move(program.prepare), std::move(steps.prepare))),
        run_(runnable(std::move(program.run), std::move(steps.run))),
        prepared_(std::move(program.prepared)),
        threads_(threads) {}

  bool take(const PreparedList& others, std::vector<PreparedMemory>& memory) const override {
    std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<std::byte>> known;
    for (const auto& other : others)
      for (const PreparedMemory& one : other->memory)
        known.try_emplace({one.key.low, one.key.high}, one.first);
    bool all = true;
    for (const PreparedValue& value : prepared_) {
      const auto found = known.find({value.key.low, value.key.high});
      memory.push_back({value.key, found == known.end() ? nullptr : found->second});
      all = all && found != known.end();
    }
    return all;
  }

  const char* prepare(const std::vector<const void*>& weights,
                      std::vector<PreparedMemory>& memory) const override {
    const std::vector<bool> fill = to_fill(prepare_, memory);
    std::vector<int64_t> bytes;
    for (size_t i = 0; i < fill.size(); ++i)
      if (fill[i]) bytes.push_back(prepared_[i].bytes);
    std::vector<std::shared_ptr<std::byte>> fresh = allocate_together(bytes);
    for (size_t i = 0, next = 0; i < fill.size(); ++i)
      if (fill[i]) memory[i].first = std::move(fresh[next++]);
    std::vector<Step> steps;
    for (const Step& step : prepare_)
      if (std::any_of(step.prepares.begin(), step.prepares.end(),
                      [&](size_t value) { return fill[value]; }))
        steps.push_back(step);
    const package::Pointers at = {.weights = weights};
    return call(steps, {at, memory, nullptr}, nullptr);
  }

  const char* run(const package::Pointers& at, const Prepared& prepared, std::byte* arena,
                  int64_t* times) const override {
    return call(run_, {at, prepared.memory, arena}, times);
  }

 private:
  const char* call(const std::vector<Step>& steps, const Memory& memory, int64_t* times) const {
    const std::vector<void*> all = addresses(steps, memory);
    try {
      fl::run_team(threads_, [&](const fl::Team& team) {
        fl::start_times(team, times);
        void* const* at = all.data();
        int number = 0;
        for (const Step& step : steps) {
          step.enter(team, at, memory.arena, memory.at.generator, step.numbers.data());
          at += step.places.size();
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

  const std::vector<Step> prepare_, run_;
  const std::vector<PreparedValue> prepared_;
  const int threads_;
};

}  // namespace

std::shared_ptr<const Runner> step_runner(OpenProgram program, ReadySteps steps, int threads) {
  return std::make_shared<const StepRunner>(std::move(program), std::move(steps), threads);
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
