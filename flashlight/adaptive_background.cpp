// What an adaptive program does in the background: families, comparisons, compiling.
#include <algorithm>

#include "composit/ir/error.h"
#include "flashlight/adaptive_state.h"
#include "flashlight/family_maker.h"
#include "flashlight/number_differences.h"

namespace flashlight {

using composit::UserError;
using Entry = AdaptiveEntry;
using Stage = Entry::Stage;

namespace {

bool has_value_sizes(const FamilyBase& family) {
  const std::vector<composit::Family>& cases = family.cases().cases;
  return std::any_of(cases.begin(), cases.end(),
                     [](const composit::Family& one) { return !one.value_sizes.empty(); });
}

// Compiled, the body of a scan has no kernels for products: code of one number of steps is faster.
std::string reason_to_compile_each(const FamilyBase& family) {
  if (const auto numbers = numbers_of(family.cases()); !numbers.empty())
    return "'" + numbers.begin()->first + "' differs from call to call";
  if (const auto& names = family.state_names(); !names.empty())
    return "the program makes '" + names.front() + "' anew in each call";
  const std::vector<composit::ScanShape>& loops = family.cases().scans;
  return loops.empty() ? "" : print(loops.front()) + "; each number of them is compiled for itself";
}

}  // namespace

// What is wrong with the programs, a call that needs them will say.
void AdaptiveBase::State::prepare(const AdaptiveKind& kind,
                                  const std::shared_ptr<FamilyPrograms>& programs) {
  if (!is_of(kind, programs)) return;
  try {
    programs->prepare();
  } catch (const UserError&) {
    return;
  }
  if (settings.ahead && settings.in_background)
    prepare_ahead(kind, std::make_shared<Ahead>(Ahead{programs, programs->sizes_ahead()}));
}

// False where the family has grown since.
bool AdaptiveBase::State::is_of(const AdaptiveKind& kind,
                                const std::shared_ptr<FamilyPrograms>& programs) const {
  const std::lock_guard lock(mutex);
  return kind.programs == programs;
}

// One at a time: what calls wait for goes first.
void AdaptiveBase::State::prepare_ahead(const AdaptiveKind& kind,
                                        const std::shared_ptr<Ahead>& ahead) {
  if (ahead->sizes.empty() || !is_of(kind, ahead->programs)) return;
  const composit::SizeValues next = std::move(ahead->sizes.back());
  ahead->sizes.pop_back();
  try {
    if (ahead->programs->prepare_sizes({next}, /*may_compile=*/false) > 0)
      ahead->any = true;
    else if (!ahead->any)
      return;                        // each size is compiled for itself
  } catch (const std::exception&) {  // a call will say so
    return;
  }
  background.add_idle([this, &kind, ahead] { prepare_ahead(kind, ahead); });
}

void AdaptiveBase::State::unify(AdaptiveKind& kind) {
  std::vector<CaptureBase> examples;
  {
    const std::lock_guard lock(mutex);
    if (kind.is_refuted) return;
    if (kind.family && kind.members == kind.examples.size()) return;  // an earlier piece took all
    examples = kind.examples;
  }
  std::optional<FamilyBase> family;
  std::shared_ptr<FamilyPrograms> programs;
  std::string why;
  try {
    family = FamilyBase(examples, {.replay_examples = false});
    why = reason_to_compile_each(*family);
    if (!why.empty())
      family.reset();
    else if (!has_value_sizes(*family))
      programs =
          std::make_shared<FamilyPrograms>(*family, settings.compile, settings.most_programs);
  } catch (const std::exception& error) {
    why = error.what();
  }
  const std::lock_guard lock(mutex);
  if (family) {
    kind.family = std::move(family);
    kind.programs = programs;
    if (programs) add([this, &kind, programs] { prepare(kind, programs); });
    kind.members = examples.size();
  } else if (kind.family) {
    kind.examples.resize(kind.members, kind.examples[0]);  // the others are no part of it
  }
  kind.why = std::move(why);
}

// Compares a run of the program with what is compiled, or will be.
void AdaptiveBase::State::check(Entry& entry, const CaptureBase& there) {
  std::string difference;
  std::optional<FamilyBase> family;
  std::optional<CaptureBase> capture;
  {
    const std::lock_guard lock(mutex);
    if (entry.stage == Stage::program) return;
    if (entry.sizes) family = entry.kind->family;
    capture = entry.capture;
  }
  try {
    if (family) {
      difference = family->difference_from(there);
    } else if (capture) {
      const auto differences = composit::compare(capture->graph(), there.graph());
      if (!differences.empty() && !begins_with_guard(differences))
        difference = str(differences.front());
    }
  } catch (const std::exception& error) {
    difference = error.what();
  }
  const std::lock_guard lock(mutex);
  if (difference.empty()) {
    entry.line.checked = true;
    if (entry.stage == Stage::seen) entry.stage = Stage::ready;
    return;
  }
  give_up(entry, "the program differs: " + difference);
  if (!family) return;
  // What else the family gave is no longer trusted.
  AdaptiveKind& kind = *entry.kind;
  kind.is_refuted = true;
  kind.family.reset();
  kind.programs.reset();
  kind.why = "it gave another graph than the program: " + difference;
  for (auto& [key, other] : entries)
    if (other->kind == &kind && other->sizes && other.get() != &entry)
      give_up(*other, "the family " + kind.why);
}

void AdaptiveBase::State::compile(Entry& entry) {
  std::optional<CaptureBase> capture;
  std::optional<FamilyBase> family;
  std::shared_ptr<FamilyPrograms> programs;
  std::optional<composit::SizeValues> sizes;
  {
    const std::lock_guard lock(mutex);
    if (entry.stage != Stage::compiling) return;
    capture = entry.capture;
    family = entry.kind->family;
    programs = entry.kind->programs;
    sizes = entry.sizes;
  }
  std::shared_ptr<const CompiledCapture> compiled;
  std::string why;
  try {
    if (!capture) capture = family->at(*sizes);
    compiled = sizes && programs
                   ? programs->at(*sizes)
                   : std::make_shared<const CompiledCapture>(*capture, settings.compile);
    if (FamilyMaker::inside(*capture).grad) {
      // The derivative, too: the first backward of a call does not wait for a compiler.
      std::vector<bool> wanted;
      size_t next = 0;
      for (const NamedTensor& input : FamilyMaker::inside(*capture).inputs) {
        const bool is_argument = input.kind == composit::InputKind::user_input;
        const bool trained = is_argument ? entry.trained.at(next++)
                                         : input.tensor.defined() && input.tensor.requires_grad();
        wanted.push_back(trained);
      }
      if (std::count(wanted.begin(), wanted.end(), true) > 0) compiled->compiled().vjp(wanted);
    }
  } catch (const std::exception& error) {
    why = error.what();
  }
  const std::lock_guard lock(mutex);
  if (entry.stage != Stage::compiling) return;
  if (!why.empty()) {
    give_up(entry, why);
    return;
  }
  entry.results = capture->result_structure();
  entry.capture = std::move(capture);
  entry.compiled = std::move(compiled);
  entry.stage = Stage::compiled;
  make_room();
}

}  // namespace flashlight
