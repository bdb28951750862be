// Checks what a call of a capture expects of the program: it is alive, its modules are unchanged,
// and the modes are those of the trace.
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <map>

#include "composit/ir/error.h"
#include "flashlight/looks.h"

namespace flashlight {

using composit::UserError;

namespace {

std::vector<bool> require_gradients(const std::vector<NamedTensor>& inputs) {
  std::vector<bool> flags;
  for (const NamedTensor& input : inputs)
    flags.push_back(input.tensor.defined() && input.tensor.requires_grad());
  return flags;
}

std::map<std::string, at::Tensor> names_of(const TracedProgram& program) {
  std::map<std::string, at::Tensor> names;
  if (!program.named) return names;
  for (NamedTensor& named : program.named())
    if (named.tensor.defined()) names.emplace(named.name, std::move(named.tensor));
  return names;
}

}  // namespace

// A borrowed module is gone when only captures refer to its parameters.
bool Looks::program_lives() const {
  if (!program_.borrowed) return true;
  const std::vector<NamedTensor>& inputs = current()->inputs;
  const std::vector<size_t> counted = settled_ ? std::vector<size_t>() : count_own_references();
  const std::vector<size_t>& ours = settled_ ? own_references_ : counted;
  const NamedTensor *held = nullptr, *lost = nullptr;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (named_[i]) (inputs[i].tensor.use_count() > ours[i] ? held : lost) = &inputs[i];
  if (held != nullptr && lost != nullptr)
    throw UserError("[capture] nobody else holds '" + lost->name +
                    "' any more: its module is gone, or has another tensor in its place; capture "
                    "again");
  return held != nullptr;
}

// The number of references that captures hold to each input.
std::vector<size_t> Looks::count_own_references() const {
  std::vector<size_t> counts;
  for (const NamedTensor& input : current()->inputs) {
    size_t& ours = counts.emplace_back(0);
    if (!input.tensor.defined()) continue;
    for (const StatePtr& version : versions_) ours += version->references(input.tensor);
    if (last_ != nullptr)
      for (const tracer::RecordedInput& recorded : last_->inputs)
        ours += recorded.tensor.is_same(input.tensor) ? 1 : 0;
  }
  return counts;
}

void Looks::note_flags() {
  const std::lock_guard lock(flags_mutex_);
  trained_ = require_gradients(current()->inputs);
  if (program_.modules) modules_ = program_.modules();
  named_.clear();
  const std::map<std::string, at::Tensor> names = names_of(program_);
  for (const NamedTensor& input : current()->inputs) {
    const auto found = names.find(input.name);
    named_.push_back(found != names.end() && found->second.is_same(input.tensor));
  }
}

// The name of a tensor that its module has replaced.
std::string Looks::replaced() const {
  const std::map<std::string, at::Tensor> now = names_of(program_);
  for (const NamedTensor& input : current()->inputs)
    if (const auto found = now.find(input.name);
        found != now.end() && !found->second.is_same(input.tensor))
      return "'" + input.name + "'";
  return "a module, parameter or buffer";
}

// Refuses calls after train(), eval(), requires_grad_() or a replaced module: the program would do
// something else.
void Looks::expect_flags() const {
  const std::lock_guard lock(flags_mutex_);
  if (program_.modules) {
    const ModuleView now = program_.modules();
    if (now.parts != modules_.parts)
      throw UserError("[capture] " + replaced() +
                      " of its modules is another one than when it was captured; capture again");
    if (now.training != modules_.training)
      throw UserError(
          "[capture] expected its modules in the modes they were captured in (training or "
          "evaluation), received others; capture again");
  }
  const std::vector<bool> now = require_gradients(current()->inputs);
  for (size_t i = 0; i < now.size(); ++i)
    if (now[i] != trained_[i])
      throw UserError("[capture] expected that '" + current()->inputs[i].name + "' " +
                      (trained_[i] ? "requires a gradient" : "requires no gradient") +
                      ", as when it was captured, and it was changed since; capture again");
}

// Refuses autocast or another default dtype: the program would compute in other dtypes.
void Looks::expect_dtype_modes() const {
  Modes now = Modes::now();
  now.grad = modes_.grad;
  now.inference = modes_.inference;
  if (now != modes_ && !program_.seen_once) refuse_modes(now);
}

// Whether a borrowed module is still there is not known here: others may hold its tensors, too.
void Looks::expect_unchanged() const {
  Modes now = Modes::now();
  now.grad = modes_.grad;
  now.inference = modes_.inference;
  if (now != modes_) refuse_modes(now);
  if (!program_.borrowed) expect_flags();
}

void Looks::expect_modes() const {
  const Modes now = Modes::now();
  if (now != modes_) refuse_modes(now);
}

void Looks::refuse_modes(const Modes& now) const {
  const char* which = now.grad != modes_.grad                     ? "grad mode"
                      : now.inference != modes_.inference         ? "inference mode"
                      : now.default_dtype != modes_.default_dtype ? "default dtype"
                                                                  : "autocast";
  throw UserError("[capture] expected the " + std::string(which) +
                  " of the trace, received another: the program may do something else there; call "
                  "the capture under the modes it was traced under, or capture again");
}

// ---- modes --------------------------------------------------------------------------------------

Looks::Modes Looks::Modes::now() {
  const bool autocast = at::autocast::is_autocast_enabled(at::kCPU);
  return {c10::GradMode::is_enabled(), c10::InferenceMode::is_enabled(), autocast,
          autocast ? at::autocast::get_autocast_dtype(at::kCPU) : c10::ScalarType::Undefined,
          c10::get_default_dtype_as_scalartype()};
}

}  // namespace flashlight
