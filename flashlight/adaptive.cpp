#include "flashlight/adaptive.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "flashlight/adaptive_keys.h"
#include "flashlight/adaptive_state.h"
#include "flashlight/family_maker.h"
#include "flashlight/number_differences.h"
#include "tracer/trace_scope.h"

namespace flashlight {

using composit::Hash;
using composit::UserError;
using Entry = AdaptiveEntry;
using Stage = Entry::Stage;

namespace {

// Runs of a combination, until it is given up.
constexpr size_t kMostLooks = 6;
// Later ones are not remembered: the program runs.
constexpr size_t kMostCombinations = 4096;

// The adaptive programs that this thread is in: one that calls itself runs.
class Inside {
 public:
  explicit Inside(const void* program) { programs().push_back(program); }
  ~Inside() { programs().pop_back(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool is_in(const void* program) {
    return std::count(programs().begin(), programs().end(), program) > 0;
  }

 private:
  static std::vector<const void*>& programs() {
    thread_local std::vector<const void*> all;
    return all;
  }
};

// The sizes of these arguments where the family was shown to hold; nothing elsewhere.
std::optional<composit::SizeValues> sizes_within(const FamilyBase& family,
                                                 const std::vector<at::Tensor>& arguments) {
  try {
    composit::SizeValues sizes = family.sizes_of(arguments);
    const composit::Cases& cases = family.cases();
    const composit::Family& there = cases.cases[composit::shown_cases_at(cases, sizes).at(0)];
    composit::input_types(there, sizes);
    return there.value_sizes.empty() ? std::optional(std::move(sizes)) : std::nullopt;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

bool has_gradient(const AdaptiveEntry& entry) {
  return std::count(entry.trained.begin(), entry.trained.end(), true) > 0 ||
         FamilyMaker::inside(entry.kind->examples.front()).grad;
}

// Compiled code does no more than the graph.
std::string reason_not_to_compile(const CaptureBase& capture) {
  if (!FamilyMaker::inside(capture).replayed.gradients.empty())
    return "it leaves gradients in '.grad', which compiled code does not";
  return "";
}

bool is_confirmed(const CaptureBase& capture) {
  return capture.refusal().empty() &&
         (capture.trust() != Trust::seen_once || FamilyMaker::inside(capture).by_name);
}

}  // namespace

// ---- calls --------------------------------------------------------------------------------------

FlatValues AdaptiveBase::State::call(const ProgramFor& program_for, const FlatValues& arguments,
                                     const std::string& signature) {
  AdaptiveProgram program = program_for(arguments.structure);
  if (is_recording() || Inside::is_in(this)) return program.run(arguments.tensors);
  const Inside inside(this);
  const Hash kind = kind_key_of(program, arguments, signature);
  std::unique_lock lock(mutex);
  ++calls;
  const Hash key = key_of(kind, arguments);
  if (entries.size() >= kMostCombinations && !entries.contains(key)) {
    lock.unlock();
    const RunLock::Run run(runs);
    return program.run(arguments.tensors);
  }
  Entry& entry = entry_for(key, kind, std::move(program), arguments);
  entry.last_call = calls;
  ++entry.line.calls;
  switch (entry.stage) {
    case Stage::fresh:
      entry.stage = Stage::seen;
      lock.unlock();
      return first_call(entry, arguments);
    case Stage::recorded:
      if (!may_record()) break;
      lock.unlock();
      return look(entry, arguments);
    case Stage::seen:
      if (!may_record()) break;
      lock.unlock();
      return record(entry, arguments);
    case Stage::ready:
      start_compiling(entry);
      break;
    case Stage::compiled: {
      const auto compiled = entry.compiled;
      const bool is_sample =
          settings.sample_every > 0 && ++entry.since_sample % settings.sample_every == 0;
      lock.unlock();
      return is_sample ? run_and_check(entry, arguments, samples)
                       : run_compiled(entry, *compiled, arguments);
    }
    case Stage::compiling:
    case Stage::program:
      break;
  }
  lock.unlock();
  return run_program(entry, arguments);
}

FlatValues AdaptiveBase::State::run_program(Entry& entry, const FlatValues& arguments) {
  const RunLock::Run run(runs);
  const RunTimer timer;
  FlatValues results = entry.program.run(arguments.tensors);
  const std::lock_guard lock(mutex);
  entry.kind->costs.add(RunKind::program, timer.seconds());
  return results;
}

bool AdaptiveBase::State::may_record() const {
  double lost = 0, total = 0;
  for (const auto& [key, kind] : kinds) {
    lost += kind->costs.lost();
    total += kind->costs.total();
  }
  return settings.overhead == AdaptiveSettings::kNoLimit ||
         lost <= settings.free_seconds + settings.overhead * total;
}

FlatValues AdaptiveBase::State::first_call(Entry& entry, const FlatValues& arguments) {
  bool is_checked = true, is_example = true;
  std::shared_ptr<FamilyPrograms> programs;
  {
    std::unique_lock lock(mutex);
    AdaptiveKind& kind = *entry.kind;
    if (kind.family) entry.sizes = sizes_within(*kind.family, arguments.tensors);
    const bool is_one_of_first = entry.sizes && kind.checks < settings.checked_sizes;
    if ((is_one_of_first || !entry.sizes) && !may_record()) {
      entry.stage = Stage::fresh;
      entry.sizes.reset();
      lock.unlock();
      return run_program(entry, arguments);
    }
    if (entry.sizes) {
      entry.line.of_family = true;
      if (is_one_of_first) ++kind.checks;
      const bool is_sample =
          settings.sample_every > 0 && ++kind.new_sizes % settings.sample_every == 0;
      is_checked = is_one_of_first || is_sample;
      // The derivative is compiled with what has one.
      if (!has_gradient(entry)) programs = kind.programs;
      entry.line.checked = is_checked;
    }
    is_example = !entry.sizes && kind.examples.size() < settings.most_examples;
    if (entry.sizes && !is_checked) entry.stage = Stage::ready;
  }
  if (entry.sizes && is_checked) return run_and_check(entry, arguments, recorded);
  if (entry.sizes && programs)
    if (const auto compiled = at_once(entry, *programs))
      return run_compiled(entry, *compiled, arguments);
  return is_example ? record(entry, arguments) : run_program(entry, arguments);
}

// Sizes are data of what is compiled: the first call at a size may run it.
std::shared_ptr<const CompiledCapture> AdaptiveBase::State::at_once(Entry& entry,
                                                                    FamilyPrograms& programs) {
  std::shared_ptr<const CompiledCapture> compiled;
  try {
    compiled = programs.at_once(*entry.sizes);
  } catch (const UserError&) {  // of the sizes: the background will say so
  }
  if (!compiled) return nullptr;
  const std::lock_guard lock(mutex);
  if (entry.stage != Stage::ready && entry.stage != Stage::compiling) return nullptr;
  entry.results = compiled->result_structure();
  entry.compiled = compiled;
  entry.stage = Stage::compiled;
  make_room();
  return compiled;
}

FlatValues AdaptiveBase::State::run_recorded(Entry& entry, const FlatValues& arguments,
                                             size_t& count,
                                             const std::function<void(RecordedRun&)>& take) {
  const RunLock::Recording recording(runs);
  if (!recording.is_alone()) return entry.program.run(arguments.tensors);
  const RunTimer timer;
  RecordedRun run = recorded_run(entry.program, arguments, settings.trace);
  const std::lock_guard lock(mutex);
  entry.kind->costs.add(RunKind::recorded, timer.seconds());
  ++count;
  take(run);
  return std::move(run.results);
}

FlatValues AdaptiveBase::State::record(Entry& entry, const FlatValues& arguments) {
  return run_recorded(entry, arguments, recorded,
                      [&](RecordedRun& run) { keep_recording(entry, run); });
}

void AdaptiveBase::State::keep_recording(Entry& entry, RecordedRun& run) {
  if (entry.stage != Stage::seen) return;  // another thread was faster
  if (!run.capture) return give_up(entry, run.why);
  if (!run.beyond.empty()) {  // the first runs of a program may set up what it keeps
    if (++entry.looks == kMostLooks) give_up(entry, run.beyond);
    return;
  }
  if (const std::string why = reason_not_to_compile(*run.capture); !why.empty())
    return give_up(entry, why);
  entry.capture = std::move(run.capture);
  entry.last_results = std::move(run.last);
  entry.stage = Stage::recorded;
  AdaptiveKind& kind = *entry.kind;
  if (kind.examples.size() >= settings.most_examples || kind.is_refuted) return;
  kind.examples.push_back(*entry.capture);
  if (kind.examples.size() >= composit::kLeastExamples) add([this, &kind] { unify(kind); });
}

FlatValues AdaptiveBase::State::look(Entry& entry, const FlatValues& arguments) {
  const RunLock::Recording recording(runs);
  std::optional<CaptureBase> capture;
  LastResults last;
  {
    const std::lock_guard lock(mutex);
    if (entry.stage == Stage::recorded) capture = entry.capture;
    last = entry.last_results;
  }
  if (!capture || !recording.is_alone()) return entry.program.run(arguments.tensors);
  const RunTimer timer;
  FlatValues results;
  try {
    results = look_again(*capture, last, entry.program, arguments);
  } catch (const UserError& error) {
    if (!std::string_view(error.what()).starts_with("[capture]")) throw;
    {
      const std::lock_guard lock(mutex);
      give_up(entry, error.what());
    }
    return entry.program.run(arguments.tensors);
  }
  const std::string beyond =
      results.of_look && entry.program.beyond ? entry.program.beyond() : std::string();
  const std::lock_guard lock(mutex);
  entry.kind->costs.add(RunKind::recorded, timer.seconds());
  ++recorded;
  if (entry.stage != Stage::recorded) return results;
  if (!beyond.empty())
    give_up(entry, beyond);
  else if (!capture->refusal().empty())
    give_up(entry, capture->refusal());
  else if (is_confirmed(*capture))
    start_compiling(entry);
  else if (++entry.looks == kMostLooks)
    give_up(entry, "no two of its runs were alike");
  return results;
}

FlatValues AdaptiveBase::State::run_compiled(Entry& entry, const CompiledCapture& compiled,
                                             const FlatValues& arguments) {
  constexpr size_t kMostRefusals = 16;
  const RunLock::Run run(runs);
  const RunTimer timer;
  try {
    FlatValues results{.tensors = compiled.run(arguments.tensors), .structure = entry.results};
    const std::lock_guard lock(mutex);
    entry.kind->costs.add(RunKind::compiled, timer.seconds());
    ++compiled_calls;
    ++entry.line.compiled;
    return results;
  } catch (const UserError& error) {  // nothing was written
    const std::lock_guard lock(mutex);
    ++refused;
    if (++entry.refusals >= kMostRefusals && 2 * entry.refusals > entry.line.compiled)
      give_up(entry, error.what());
  }
  return entry.program.run(arguments.tensors);
}

FlatValues AdaptiveBase::State::run_and_check(Entry& entry, const FlatValues& arguments,
                                              size_t& count) {
  return run_recorded(entry, arguments, count, [&](RecordedRun& run) {
    if (!run.capture || !run.beyond.empty())
      give_up(entry, run.capture ? run.beyond : run.why);
    else
      add([this, &entry, there = *run.capture] { check(entry, there); });
  });
}

// ---- entries ------------------------------------------------------------------------------------

Entry& AdaptiveBase::State::entry_for(const Hash& key, const Hash& kind_key,
                                      AdaptiveProgram program, const FlatValues& arguments) {
  std::unique_ptr<Entry>& entry = entries[key];
  if (entry) return *entry;
  entry = std::make_unique<Entry>();
  std::unique_ptr<AdaptiveKind>& kind = kinds[kind_key];
  if (!kind) kind = std::make_unique<AdaptiveKind>();
  entry->kind = kind.get();
  entry->program = std::move(program);
  entry->line.arguments = text_of(arguments);
  for (const at::Tensor& tensor : arguments.tensors)
    entry->trained.push_back(tensor.defined() && tensor.requires_grad());
  in_order.push_back(entry.get());
  return *entry;
}

void AdaptiveBase::State::add(std::function<void()> piece) { background.add(std::move(piece)); }

void AdaptiveBase::State::start_compiling(Entry& entry) {
  entry.stage = Stage::compiling;
  add([this, &entry] { compile(entry); });
}

void AdaptiveBase::State::give_up(Entry& entry, const std::string& why) {
  entry.stage = Stage::program;
  entry.line.state = "the program runs: " + why;
  entry.compiled.reset();
  entry.capture.reset();
  entry.last_results.reset();
}

void AdaptiveBase::State::make_room() {
  for (;;) {
    Entry* oldest = nullptr;
    size_t count = 0;
    for (auto& [key, entry] : entries) {
      if (entry->stage != Stage::compiled) continue;
      ++count;
      if (oldest == nullptr || entry->last_call < oldest->last_call) oldest = entry.get();
    }
    if (count <= std::max<size_t>(settings.most_programs, 1)) return;
    oldest->compiled.reset();
    oldest->stage = Stage::ready;
  }
}

AdaptiveReport AdaptiveBase::State::report() const {
  constexpr const char* kStates[] = {
      "new", "recorded", "called once", "to be compiled", "compiling", "compiled", ""};
  const std::lock_guard lock(mutex);
  AdaptiveReport report{.calls = calls,
                        .compiled = compiled_calls,
                        .recorded = recorded,
                        .refused = refused,
                        .samples = samples,
                        .fitted = 0,
                        .families = {},
                        .combinations = {}};
  for (const Entry* entry : in_order) {
    AdaptiveCombination line = entry->line;
    if (entry->stage != Stage::program) line.state = kStates[static_cast<size_t>(entry->stage)];
    if (line.of_family && !line.checked) report.fitted += line.compiled;
    report.combinations.push_back(std::move(line));
  }
  for (const auto& [key, kind] : kinds) {
    std::string text = kind->family ? "a family" : "no family";
    if (kind->family)
      for (const composit::Family& one : kind->family->cases().cases) {
        std::string sizes;
        for (const composit::FreeSize& size : one.sizes)
          sizes += (sizes.empty() ? " of " : ", ") + size.name + " " + std::to_string(size.low) +
                   ".." + std::to_string(size.high);
        text += sizes;
      }
    if (!kind->why.empty()) text += ": " + kind->why;
    if (kind->family || !kind->why.empty()) report.families.push_back(std::move(text));
  }
  return report;
}

// ---- AdaptiveBase -------------------------------------------------------------------------------

AdaptiveBase::AdaptiveBase(AdaptiveSettings settings)
    : state_(std::make_shared<State>(std::move(settings))) {}

FlatValues AdaptiveBase::call(const ProgramFor& program, const FlatValues& arguments,
                              const std::string& signature) const {
  FlatValues results = state_->call(program, arguments, signature);
  if (!state_->settings.in_background) state_->background.wait();
  return results;
}

AdaptiveReport AdaptiveBase::report() const { return state_->report(); }
void AdaptiveBase::wait() const { state_->background.wait(); }

std::string str(const AdaptiveReport& report) {
  const auto n = [](size_t count) { return std::to_string(count); };
  std::string text = n(report.calls) + " calls: " + n(report.compiled) + " compiled, " +
                     n(report.calls - report.compiled) + " of the program (" + n(report.recorded) +
                     " recorded, " + n(report.refused) + " refused by a guard, " +
                     n(report.samples) + " samples); " + n(report.fitted) +
                     " answers at sizes that were fitted and not checked\n";
  for (const std::string& family : report.families) text += family + "\n";
  for (const AdaptiveCombination& one : report.combinations)
    text += "  " + one.arguments + ": " + n(one.compiled) + " of " + n(one.calls) + " compiled" +
            (one.of_family ? one.checked ? ", family" : ", family, not checked" : "") + "; " +
            one.state + "\n";
  return text;
}

}  // namespace flashlight
