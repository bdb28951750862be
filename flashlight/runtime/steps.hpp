// A program as steps whose order is data: which code runs, on which memory, with which numbers.
//
//   run_steps(team, steps.data(), steps.data() + steps.size(), at.data(), arena, nullptr, numbers,
//             nullptr);
//
// A written program for several sizes has a plan for each of them, as words in its file of weights:
//
//   const StepPlan plan(weights.plans, {batch, tokens});
//   plan.run({arguments, known, results, weights.prepared, arena, nullptr}, kEntries, 2, nullptr);
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "flashlight/runtime/team.hpp"
#include "flashlight/runtime/times.hpp"

namespace fl {

class Generator;

// The code of a step. `at`: the first elements of what it reads and writes.
using StepEntry = void(const Team&, void* const* at, std::byte* arena, Generator*,
                       const std::int64_t* numbers);

struct Step {
  StepEntry* enter;
  std::size_t numbers, places;  // where its own begin among those of all steps
  bool is_kernel;               // false: it is not timed
  bool is_waited_for;           // the next step needs what it writes
};

// Runs the steps in order, by all threads of a team. `times`: nullptr, or room for a number per
// kernel, and one more.
inline void run_steps(const Team& team, const Step* begin, const Step* end, void* const* at,
                      std::byte* arena, Generator* generator, const std::int64_t* numbers,
                      std::int64_t* times) {
  start_times(team, times);
  int number = 0;
  for (const Step* step = begin; step != end; ++step) {
    step->enter(team, at + step->places, arena, generator, numbers + step->numbers);
    if (step->is_kernel)
      end_kernel(team, times, ++number);
    else if (step->is_waited_for)
      team.wait();
  }
}

// Where a value lies during a call: its number among arguments, results or weights, or bytes behind
// the beginning of prepared memory or of the arena.
enum class StepMemory : std::uint8_t { nothing, argument, result, weight, prepared, arena };
constexpr int kStepMemoryBits = 3;

// The memory of a call.
struct StepCall {
  const void* const* arguments;
  const void* const* weights;
  void* const* results;
  const std::byte* prepared;
  std::byte* arena;
  Generator* generator;
};

// A plan of a program: what runs at some sizes.
//
// `plans` are words: the number of sizes; for each the least number, the greatest, and the distance
// of two; for each combination, the last size fastest, the place of its plan, or 0. A plan is the
// place of its form and the words in which it differs from others of that form. A form: how many
// words, how many of them differ, the places of these, the words. Words of a plan: the bytes of the
// arena; a count of copies, and for each the result, the argument and bytes; a count of steps, and
// for each its entry, 1 for a kernel + 2 if it is waited for, and counts of places and numbers; all
// places, each a StepMemory and, shifted by kStepMemoryBits, where there; all numbers.
class StepPlan {
 public:
  // std::runtime_error for sizes without a plan.
  StepPlan(const std::int64_t* plans, std::initializer_list<std::int64_t> sizes) {
    const std::int64_t* plan = plans + place_of(plans, sizes);
    const std::int64_t* const form = plans + *plan++;
    const std::int64_t count = form[0], varying = form[1];
    words_.assign(form + 2 + varying, form + 2 + varying + count);
    for (std::int64_t i = 0; i < varying; ++i)
      words_[static_cast<std::size_t>(form[2 + i])] = plan[i];
  }
  std::int64_t arena_bytes() const { return words_[0]; }

  // Results that are new values of arguments are written over a copy of these where a kernel reads
  // there what it writes. Throws what steps throw.
  void run(const StepCall& call, StepEntry* const* entries, int threads,
           std::int64_t* times) const {
    const std::int64_t* word = words_.data() + 1;
    for (std::int64_t copies = *word++; copies > 0; --copies, word += 3) {
      void* const to = call.results[word[0]];
      const void* const from = call.arguments[word[1]];
      if (to != from) std::memcpy(to, from, static_cast<std::size_t>(word[2]));
    }
    std::vector<Step> steps(static_cast<std::size_t>(*word++));
    std::size_t places = 0, numbers = 0;
    for (Step& step : steps) {
      step = {entries[word[0]], numbers, places, (word[1] & 1) != 0, (word[1] & 2) != 0};
      places += static_cast<std::size_t>(word[2]);
      numbers += static_cast<std::size_t>(word[3]);
      word += 4;
    }
    std::vector<void*> at(places);
    for (void*& one : at) one = address(*word++, call);
    run_team(threads, [&](const Team& team) {
      run_steps(team, steps.data(), steps.data() + steps.size(), at.data(), call.arena,
                call.generator, word, times);
    });
  }

 private:
  static std::int64_t place_of(const std::int64_t* plans,
                               std::initializer_list<std::int64_t> sizes) {
    const std::int64_t* word = plans + 1;
    std::int64_t number = 0;
    bool is_known = static_cast<std::int64_t>(sizes.size()) == plans[0];
    for (const std::int64_t size : sizes) {
      const std::int64_t least = word[0], most = word[1], step = word[2];
      is_known = is_known && size >= least && size <= most && (size - least) % step == 0;
      number = number * ((most - least) / step + 1) + (size - least) / step;
      word += 3;
    }
    if (is_known && word[number] > 0) return word[number];
    std::string text;
    for (const std::int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
    throw std::runtime_error("the program was not written for these sizes: " + text);
  }

  static void* address(std::int64_t place, const StepCall& call) {
    const std::int64_t there = place >> kStepMemoryBits;
    switch (static_cast<StepMemory>(place & ((1 << kStepMemoryBits) - 1))) {
      case StepMemory::argument:
        return const_cast<void*>(call.arguments[there]);
      case StepMemory::result:
        return call.results[there];
      case StepMemory::weight:
        return const_cast<void*>(call.weights[there]);
      case StepMemory::prepared:
        return const_cast<std::byte*>(call.prepared) + there;
      case StepMemory::arena:
        return call.arena + there;
      case StepMemory::nothing:
        break;
    }
    return nullptr;
  }

  std::vector<std::int64_t> words_;
};

// A number of these words that a change of one of them changes.
inline std::uint64_t hash_of_words(const std::int64_t* words, std::int64_t count) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::int64_t i = 0; i < count; ++i)
    hash = (hash ^ static_cast<std::uint64_t>(words[i])) * 0x9e3779b97f4a7c15 + (hash >> 29);
  return hash;
}

// std::runtime_error unless these are the plans that a program was written with.
inline void check_plans(const std::int64_t* plans, std::int64_t count, std::uint64_t hash) {
  if (hash_of_words(plans, count) != hash)
    throw std::runtime_error(
        "the file of weights has plans of another program, or damaged ones");
}

}  // namespace fl
