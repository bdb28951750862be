#include "flashlight/mosaic/mosaic_code.h"

#include <algorithm>
#include <cstring>

#include "composit/ir/error.h"

namespace flashlight::mosaic {

using composit::Array;
using composit::Buffers;
using composit::InputBuffers;

CallPlan::CallPlan(const Plan& plan) : arena_bytes(static_cast<size_t>(plan.arena_bytes)) {
  const loops::Routine& routine = plan.routine;
  for (const ValueId input : routine.inputs) frozen.push_back(plan.frozen[input]);
  for (size_t i = 0; i < routine.results.size(); ++i) {
    const auto update = plan.updates.find(routine.results[i]);
    if (update == plan.updates.end()) continue;
    const auto input = std::find(routine.inputs.begin(), routine.inputs.end(), update->second);
    updates.emplace(
        i, Update{.input = static_cast<size_t>(input - routine.inputs.begin()),
                  .is_over_it = plan.in_place.contains(routine.results[i]),
                  .bytes = static_cast<size_t>(routine.values[update->second].type.nbytes())});
  }
}

MosaicCode::MosaicCode(composit::Ports ports, std::shared_ptr<const Kernels> kernels,
                       std::shared_ptr<const Prepared> prepared)
    : GeneratedCode(std::move(ports), kernels->source),
      kernels_(std::move(kernels)),
      prepared_(std::move(prepared)) {}

const std::string& MosaicCode::source() const {
  if (!kernels_->text) return GeneratedCode::source();
  std::call_once(written_, [&] { text_ = kernels_->text(); });
  return text_;
}

bool MosaicCode::is_frozen(size_t input) const {
  return loops::contains(kernels_->source->weights, input) && kernels_->calls.frozen[input];
}

bool MosaicCode::may_update(size_t result) const {
  return kernels_->calls.updates.contains(result);
}

std::shared_ptr<const composit::Code> MosaicCode::prepare(const std::vector<Array>& weights) const {
  return prepare_beside(weights, {});
}

// What code of this backend has prepared.
PreparedList MosaicCode::prepared_by(const Codes& codes) {
  PreparedList list;
  for (const auto& code : codes)
    if (const auto* one = dynamic_cast<const MosaicCode*>(code.get()); one && one->prepared_)
      list.push_back(one->prepared_);
  return list;
}

std::shared_ptr<const composit::Code> MosaicCode::prepare_beside(const std::vector<Array>& weights,
                                                                 const Codes& others) const {
  return std::make_shared<const MosaicCode>(
      ports(), kernels_,
      std::make_shared<const Prepared>(mosaic::prepare(preparing(), weights, prepared_by(others))));
}

std::shared_ptr<const composit::Code> MosaicCode::prepare_like(const Codes& others) const {
  std::optional<Prepared> prepared = mosaic::prepare_like(preparing(), prepared_by(others));
  if (!prepared) return nullptr;
  return std::make_shared<const MosaicCode>(ports(), kernels_,
                                            std::make_shared<const Prepared>(std::move(*prepared)));
}

void MosaicCode::run(InputBuffers inputs, Buffers results, fl::Generator* generator) const {
  run_timed(inputs, results, generator, nullptr);
}

Profile MosaicCode::profile(InputBuffers inputs, Buffers results, fl::Generator* generator) const {
  Profile profile = kernels_->source->timed;
  std::vector<int64_t> times(profile.size() + 1);
  run_timed(inputs, results, generator, times.data());
  for (size_t i = 0; i < profile.size(); ++i) {
    profile[i].start = times[i];
    profile[i].end = times[i + 1];
  }
  return profile;
}

void MosaicCode::run_timed(InputBuffers inputs, Buffers results, fl::Generator* generator,
                           int64_t* times) const {
  COMPOSIT_ASSERT(prepared_, "code is prepared before it is run");
  call(inputs, results, generator, [&](const package::Pointers& at) {
    copy_updated(inputs, results);
    const package::ArenaPool::Loan arena = kernels_->arenas->take(kernels_->calls.arena_bytes);
    return kernels_->runner->run(at, *prepared_, arena.get(), times);
  });
}

// A result that is written over an input in memory of its own is written over a copy of the input.
void MosaicCode::copy_updated(InputBuffers inputs, Buffers results) const {
  for (const auto& [result, update] : kernels_->calls.updates) {
    if (!update.is_over_it) continue;
    const void* from = ports().given(update.input, inputs);
    if (from != results[result].data) std::memcpy(results[result].data, from, update.bytes);
  }
}

const void* MosaicCode::weight(size_t place, InputBuffers inputs) const {
  const Array& known = prepared_->weights[place];
  if (known.defined()) return known.data();
  const Source& source = *kernels_->source;
  return source.is_read_by_run[place] ? ports().given(source.weights[place], inputs) : nullptr;
}

}  // namespace flashlight::mosaic
