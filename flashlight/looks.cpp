#include "flashlight/looks.h"

#include <algorithm>

#include "composit/io/log.h"
#include "composit/ir/error.h"
#include "flashlight/look_run.h"

namespace flashlight {
namespace {

using composit::UserError;
using tracer::Recording;

constexpr size_t kMost = 4;  // most looks that find other graphs, or equal inputs

std::atomic<size_t> taken{0};

constexpr const char* kAdvice =
    "; what differs is nothing an operator shows (a number or memory of the host, another thread): "
    "pass it as an argument, keep it in a tensor that operators write, or use strict mode "
    "(TraceOptions::strict) to get the line that reads memory";

// True if operators and operands are the same, and only attributes or constants differ.
bool are_values(const std::vector<composit::Difference>& differences) {
  return std::all_of(differences.begin(), differences.end(), [](const auto& difference) {
    return difference.before && difference.after &&
           (difference.kind == composit::DifferenceKind::attribute ||
            difference.kind == composit::DifferenceKind::execution);
  });
}

// Adds to an error of the program that a look ran it; only LibTorch's and our errors take a note.
[[noreturn]] void rethrow_of_look() {
  static const char* note =
      "in a second look: the call ran the program once more to confirm its capture";
  try {
    throw;
  } catch (c10::Error& error) {
    error.add_context(note);
    throw;
  } catch (const UserError& error) {
    throw UserError(std::string(error.what()) + " (" + note + ")");
  } catch (const std::exception& error) {
    composit::log_debug(std::string(error.what()) + " (" + note + ")");
    throw;
  }
}

}  // namespace

size_t looks_taken() { return taken; }

Looks::Looks(TracedProgram program, StatePtr first, std::unique_ptr<Recording> recording)
    : program_(std::move(program)), modes_(Modes::now()), last_(std::move(recording)) {
  versions_.push_back(std::move(first));
  current_ = &versions_.back();
  const CaptureBase::State& state = *current();
  streak_.push_back(state.replayed.graph);
  for (const at::Tensor& argument : state.shown_arguments())
    contents_.push_back(digest_of_memory(argument));
  varied_.resize(contents_.size());
  note_flags();
  if (program_.seen_once) settle();
}

Looks::~Looks() = default;

std::string Looks::refusal() const {
  const std::lock_guard lock(refusal_mutex_);
  return refusal_;
}

FlatValues Looks::call(const Tensors& arguments) {
  const auto replay = [&] {
    const StatePtr& state = current();
    return FlatValues{state->replay(arguments), state->results};
  };
  if (settled_.load(std::memory_order_acquire)) {
    expect_dtype_modes();
    if (!program_.seen_once && program_lives()) {
      if (current()->trust != Trust::seen_once) current()->expect_state_is_held();
      expect_flags();
    }
    return replay();
  }
  if (runner_.load() == std::this_thread::get_id()) return program_.run(arguments);
  const std::lock_guard lock(mutex_);
  if (settled_) return replay();
  if (const std::string why = refusal(); !why.empty()) throw UserError(why);
  if (!program_lives()) {
    settle();
    return replay();
  }
  expect_modes();
  expect_flags();
  current()->plan().expect(current()->bind_replay(arguments));
  return look(arguments);
}

// ---- the run ------------------------------------------------------------------------------------

FlatValues Looks::look(const Tensors& arguments) {
  const CaptureBase::State& state = *current();
  const std::vector<NamedTensor> named = program_.named ? program_.named() : state.inputs;
  LookRun run{GeneratorStates(state.generators)};
  for (size_t i = 0; i < arguments.size(); ++i)
    run.memory.add(arguments[i], "argument " + std::to_string(i));
  // Watches parts of large parameters only: code that writes them by a pointer writes all of them.
  constexpr int64_t kOfParameter = 64 << 10;
  for (const NamedTensor& tensor : named)
    run.memory.add(tensor.tensor, "'" + tensor.name + "'",
                   tensor.kind == composit::InputKind::parameter ? kOfParameter : kWholeMemory);
  for (const NamedTensor& input : state.inputs)
    if (input.name.find('.') == std::string::npos)
      run.memory.add(input.tensor, "'" + input.name + "'");
  for (const auto& constant : last_->constants)
    if (!constant.number) run.memory.add(constant.tensor, "a tensor from outside");
  TraceOptions options = state.options;
  options.keep_originals = true;
  options.follow_numbers = follows_numbers_;
  ++taken;
  runner_ = std::this_thread::get_id();
  try {
    run.program = run_recorded(program_.run, {arguments, state.arguments}, named, options,
                               [&run](tracer::RecordId id, c10::ArrayRef<at::Tensor> values) {
                                 run.samples.add(id, values);
                               });
  } catch (...) {
    runner_ = std::thread::id();
    rethrow_of_look();
  }
  runner_ = std::thread::id();
  ++looks_;
  run.after = GeneratorStates(state.generators);
  run.program.results.tensors = own_results(run.program.results.tensors, *run.program.recording);
  FlatValues results = judge(run, arguments);
  note_flags();
  return results;
}

FlatValues Looks::judge(LookRun& run, const Tensors& arguments) {
  const std::string unseen = run.memory.written_unseen(*run.program.recording);
  if (!unseen.empty()) {
    refuse("the program changed the memory of " + unseen + ", and no operator wrote it" + kAdvice);
    return keep(run);
  }
  follow_state(run);
  follow_numbers(run);
  run.state = publish_run(run);
  const composit::Graph& graph = run.state->replayed.graph;
  const auto differences =
      without_places(composit::compare(streak_.back(), graph), graph, run.state->changing);
  if (!refusal().empty()) return keep(run);
  if (differences.empty() && counted_.empty()) return same_graph(run, arguments);
  if (const auto places = number_differences(streak_.back(), graph, differences))
    return other_numbers(run, *places, differences, arguments);
  if (begins_with_guard(differences)) {
    follows_numbers_ = true;
    last_ = std::move(run.program.recording);
    return keep(run);
  }
  if (are_values(differences)) {
    refuse(str(differences.front()) + kAdvice);
    return keep(run);
  }
  return other_graph(run, differences);
}

// Returns the program's results for a call that cannot be replayed.
FlatValues Looks::keep(LookRun& run) {
  run.program.results.of_look = true;
  return std::move(run.program.results);
}

// A value that the last run left and this run reads is state of both, if both runs have the same
// form.
void Looks::follow_state(LookRun& run) {
  Recording& now = *run.program.recording;
  if (!same_form(*last_, now)) {
    links_.clear();
    return;
  }
  const std::vector<StateLink> found = find_links(*last_, now);
  if (found.empty() && links_.empty()) return;
  const auto sources = tracer::publish(now, /*gradients=*/true).sources;
  for (const StateLink& link : found) {
    const bool read = std::binary_search(sources.begin(), sources.end(), link.source);
    if (!read || std::find(links_.begin(), links_.end(), link) != links_.end()) continue;
    if (grows(*last_, link)) {
      refuse("state that " + maker_of(now, link.next) +
             " makes has another size in each call, and a capture holds for one; allocate it once, "
             "as large as it gets, and write into it");
      return;
    }
    links_.push_back(link);
  }
  if (links_.empty()) return;
  apply_links(*last_, links_);
  apply_links(now, links_);
  streak_.back() = tracer::publish(*last_, /*gradients=*/true).graph;
}

// Reads that nothing is made of but numbers of operators are no guards in both runs. The graphs
// that were compared before had them.
void Looks::follow_numbers(LookRun& run) {
  Recording& now = *run.program.recording;
  const bool followed = !followed_.empty();
  followed_.clear();
  if (same_form(*last_, now)) followed_ = find_followed(*last_, now);
  if (followed_.empty() && !followed) return;
  follow(*last_, followed_);
  tracer::Published published = tracer::publish(*last_, /*gradients=*/true);
  for (size_t before = 0; before != followed_.size();) {
    before = followed_.size();
    followed_ = without_inner_reads(std::move(followed_), published);
    if (before == followed_.size()) break;
    follow(*last_, followed_);
    published = tracer::publish(*last_, /*gradients=*/true);
  }
  follow(now, followed_);
  if (!followed) {
    streak_.clear();
    counted_.clear();
    streak_.emplace_back();
  }
  streak_.back() = std::move(published.graph);
}

Looks::StatePtr Looks::publish_run(LookRun& run) {
  const CaptureBase::State& before = *current();
  Recording& recording = *run.program.recording;
  auto state = std::make_shared<CaptureBase::State>();
  for (const tracer::RecordedInput& input : recording.inputs)
    if (input.kind == composit::InputKind::user_input)
      state->example_arguments.push_back(input.original.defined() ? input.original : input.tensor);
  state->example_arguments = copies_of(state->example_arguments);
  run.records = state->take(recording, followed_);
  for (const StateLink& link : links_) {
    const tracer::Record& record = recording.records[link.source];
    const at::Tensor left = tensor_left(recording, link.next);
    for (auto* inputs : {&state->inputs, &state->replayed.inputs})
      for (NamedTensor& input : *inputs)
        if (left.defined() && input.name == recording.inputs[record.index].name)
          input.tensor = left;
  }
  state->links = links_;
  state->arguments = before.arguments;
  state->results = run.program.results.structure;
  state->example_results = run.program.results.tensors;
  state->example_generator = before.example_generator;
  state->program = before.program;
  state->named = before.named;
  state->options = before.options;
  state->notes = living_values(recording, run.program.results.tensors);
  return state;
}

void Looks::adopt(LookRun& run) {
  const std::lock_guard lock(refusal_mutex_);
  versions_.push_back(run.state);
  current_.store(&versions_.back(), std::memory_order_release);
  last_ = std::move(run.program.recording);
}

// ---- verdicts -----------------------------------------------------------------------------------

FlatValues Looks::same_graph(LookRun& run, const Tensors& arguments) {
  if (run.program.results.structure != current()->results) {
    refuse("the program returned " + str(run.program.results.structure) + ", before " +
           str(current()->results) + ", and no operator gave what differs" + kAdvice);
    return keep(run);
  }
  if (const std::string name = another_tensor(run); !name.empty()) {
    refuse("the program read another tensor in the place of '" + name +
           "', and no run has put it there; give its module in TraceSettings::named, or pass it");
    return keep(run);
  }
  if (unexplained_ && ++equal_after_change_ < 2) {
    if (looks_ >= kMost) return other_graph(run, {});
    adopt(run);
    return keep(run);
  }
  return compare_replay(run, arguments, 0);
}

FlatValues Looks::compare_replay(LookRun& run, const Tensors& arguments, int64_t call) {
  Verification verification = verify(run, arguments, call);
  if (!verification.difference.empty()) {
    refuse(verification.difference + kAdvice);
    return keep(run);
  }
  const bool varied = note_content(run) || !run.state->changing.empty();
  FlatValues results{std::move(verification.results), run.program.results.structure, true};
  streak_ = {run.state->replayed.graph};
  adopt(run);
  if (varied)
    confirm(Trust::confirmed);
  else if (++equal_looks_ >= kMost)
    confirm(Trust::equal_inputs);
  return results;
}

FlatValues Looks::other_numbers(LookRun& run, const std::vector<NumberPlace>& places,
                                const std::vector<composit::Difference>& differences,
                                const Tensors& arguments) {
  // Consecutive runs that prove a form. A lone count needs more: it may wrap around soon.
  constexpr size_t kShown = 3, kShownCounts = 5;
  for (const NumberPlace& place : places)
    if (std::find(counted_.begin(), counted_.end(), place) == counted_.end())
      counted_.push_back(place);
  streak_.push_back(run.state->replayed.graph);
  if (streak_.size() < kShown) {
    adopt(run);
    return keep(run);
  }
  CountedNumbers numbers = count_calls(streak_, counted_, current()->options.host_line != nullptr);
  if (numbers.unexplained) {
    if (begins_with_guard(differences)) {
      follows_numbers_ = true;
      streak_ = {run.state->replayed.graph};
      counted_.clear();
      adopt(run);
    } else {
      refuse(number_refusal(*numbers.unexplained));
    }
    return keep(run);
  }
  if (numbers.only_counts && streak_.size() < kShownCounts) {
    adopt(run);
    return keep(run);
  }
  run.state->changing.insert(run.state->changing.end(), numbers.places.begin(),
                             numbers.places.end());
  const auto call = static_cast<int64_t>(streak_.size()) - 1;
  run.state->next_call = call + 1;
  return compare_replay(run, arguments, call);
}

std::string Looks::number_refusal(const NumberPlace& place) const {
  std::string values;
  for (const composit::Graph& graph : streak_) {
    const auto number = number_at(graph, place);
    values += (values.empty() ? "" : ", ") + (number ? c10::str(*number) : std::string("none"));
  }
  const std::string which = place.key == "value" ? "a number" : "'" + place.key + "'";
  return place.place + ": " + which + " changes from call to call (" + values +
         "), and is no form of a count of calls; pass it as a tensor, so that it is an argument";
}

FlatValues Looks::other_graph(LookRun& run, const std::vector<composit::Difference>& differences) {
  if (!differences.empty()) structural_.push_back(str(differences.front()));
  // If this run reads state that the last one made, that explains why it takes another path.
  unexplained_ = find_links(*last_, *run.program.recording).empty();
  equal_after_change_ = 0;
  streak_ = {run.state->replayed.graph};
  counted_.clear();
  adopt(run);
  if (looks_ >= kMost) {
    std::string text = "the program took another way in each run; first differences:";
    for (const std::string& one : structural_) text += "\n  " + one;
    refuse(text + "\npass what decides the way as a tensor, or trace the ways apart");
  }
  return keep(run);
}

// The name of an input that has no name in the program and that is another tensor than in the last
// run.
std::string Looks::another_tensor(const LookRun& run) const {
  const auto is_linked = [&](const std::string& name) {
    return std::any_of(links_.begin(), links_.end(), [&](const StateLink& link) {
      const Recording& recording = *run.program.recording;
      return recording.inputs[recording.records[link.source].index].name == name;
    });
  };
  for (const NamedTensor& input : run.state->inputs) {
    if (!is_unnamed(input.name) || is_linked(input.name)) continue;
    for (const NamedTensor& before : current()->inputs)
      if (before.name == input.name && !before.tensor.is_same(input.tensor)) return input.name;
  }
  return {};
}

// True if an argument, or state that the program writes, had another content than before.
bool Looks::note_content(const LookRun& run) {
  const auto& examples = run.state->shown_arguments();
  bool varied = examples.empty();
  for (size_t i = 0; i < examples.size() && i < varied_.size(); ++i) {
    if (digest_of_memory(examples[i]) != contents_[i]) varied_[i] = true;
    varied = varied || varied_[i];
  }
  return varied || !run.state->graph.mutations().empty();
}

void Looks::confirm(Trust trust) {
  CaptureBase::State& state = *current();
  state.trust = trust;
  const std::vector<std::string> names = tensor_names(state.arguments, "input");
  for (size_t i = 0; i < varied_.size() && trust == Trust::confirmed; ++i)
    if (!varied_[i])
      state.notes.push_back("argument '" + names.at(i) +
                            "' had the same content in all runs that were compared; what is read "
                            "from it alone was seen with that content only");
  settle();
}

// Ends the looks. References to older versions stay valid, but recordings are not needed any more.
void Looks::settle() {
  last_.reset();
  streak_.clear();
  current()->note_held_state(versions_);
  own_references_ = count_own_references();
  settled_.store(true, std::memory_order_release);
}

void Looks::refuse(const std::string& why) {
  const std::lock_guard lock(refusal_mutex_);
  refusal_ = "[capture] look " + std::to_string(looks_) + " found a difference: " + why;
}

}  // namespace flashlight
