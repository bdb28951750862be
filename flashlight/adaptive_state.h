// What an adaptive program knows. For adaptive.cpp and its like only.
#pragma once

#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "composit/ir/hash.h"
#include "flashlight/adaptive.h"
#include "flashlight/adaptive_costs.h"
#include "flashlight/background.h"
#include "flashlight/family_programs.h"
#include "flashlight/recorded_run.h"
#include "flashlight/run_lock.h"

namespace flashlight {

// All combinations that differ in sizes only.
struct AdaptiveKind {
  std::vector<CaptureBase> examples;
  std::optional<FamilyBase> family;
  std::shared_ptr<FamilyPrograms> programs;  // of it, compiled
  size_t members = 0;                        // of the examples, the first so many made the family
  std::string why;                           // there is no family, or it was not extended
  size_t checks = 0;                         // of sizes that the family gives, the first ones
  size_t new_sizes = 0;                      // that it gives
  RunCosts costs;                            // of its runs
  bool is_refuted = false;                   // a family of it gave another graph than the program
};

struct AdaptiveEntry {
  enum class Stage {
    fresh,      // not called yet
    recorded,   // `capture` waits for a look
    seen,       // called once, not recorded
    ready,      // a capture, or the family, may be compiled
    compiling,  // in the background
    compiled,   // `compiled` runs
    program     // the program runs for good: `line.state` says why
  };
  Stage stage = Stage::fresh;
  AdaptiveProgram program;
  AdaptiveKind* kind = nullptr;
  std::optional<CaptureBase> capture;
  LastResults last_results;                   // of the capture's looks
  std::optional<composit::SizeValues> sizes;  // of the family that gives the graph
  std::vector<bool> trained;                  // by argument: it requires a gradient
  std::shared_ptr<const CompiledCapture> compiled;
  Structure results;
  size_t last_call = 0, since_sample = 0, refusals = 0, looks = 0;
  AdaptiveCombination line;
};

struct AdaptiveBase::State {
  using Entry = AdaptiveEntry;
  using Stage = Entry::Stage;

  explicit State(AdaptiveSettings settings) : settings(std::move(settings)) {}

  FlatValues call(const ProgramFor& program, const FlatValues& arguments,
                  const std::string& signature);
  AdaptiveReport report() const;

  FlatValues run_program(Entry& entry, const FlatValues& arguments);
  // The first two calls of a combination, and those of compiled code.
  FlatValues first_call(Entry& entry, const FlatValues& arguments);
  std::shared_ptr<const CompiledCapture> at_once(Entry& entry, FamilyPrograms& programs);
  FlatValues look(Entry& entry, const FlatValues& arguments);
  // The program runs and is recorded, unless others run at once. `count`: of such runs. `take`,
  // with the lock, gets the run.
  FlatValues run_recorded(Entry& entry, const FlatValues& arguments, size_t& count,
                          const std::function<void(RecordedRun&)>& take);
  FlatValues record(Entry& entry, const FlatValues& arguments);
  void keep_recording(Entry& entry, RecordedRun& run);  // needs the lock
  FlatValues run_compiled(Entry& entry, const CompiledCapture& compiled,
                          const FlatValues& arguments);
  // The program runs, is recorded, and compared in the background with what is, or will be,
  // compiled. `count`: of such runs.
  FlatValues run_and_check(Entry& entry, const FlatValues& arguments, size_t& count);

  // Work in the background.
  void add(std::function<void()> piece);
  void unify(AdaptiveKind& kind);
  void prepare(const AdaptiveKind& kind, const std::shared_ptr<FamilyPrograms>& programs);
  // Sizes of a family whose programs are made before they are asked for.
  struct Ahead {
    std::shared_ptr<FamilyPrograms> programs;
    std::vector<composit::SizeValues> sizes;  // the last one is next
    bool any = false;                         // some are made: sizes are data
  };
  void prepare_ahead(const AdaptiveKind& kind, const std::shared_ptr<Ahead>& ahead);
  bool is_of(const AdaptiveKind& kind, const std::shared_ptr<FamilyPrograms>& programs) const;
  void check(Entry& entry, const CaptureBase& there);
  void compile(Entry& entry);
  // The following need the lock.
  bool may_record() const;
  Entry& entry_for(const composit::Hash& key, const composit::Hash& kind_key,
                   AdaptiveProgram program, const FlatValues& arguments);
  void start_compiling(Entry& entry);
  void give_up(Entry& entry, const std::string& why);
  void make_room();

  const AdaptiveSettings settings;
  mutable std::mutex mutex;
  std::unordered_map<composit::Hash, std::unique_ptr<Entry>> entries;
  std::unordered_map<composit::Hash, std::unique_ptr<AdaptiveKind>> kinds;
  std::vector<const Entry*> in_order;
  size_t calls = 0, compiled_calls = 0, recorded = 0, refused = 0, samples = 0;
  RunLock runs;
  Background background;  // the last member: it ends first
};

}  // namespace flashlight
