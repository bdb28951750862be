#include "flashlight/mosaic/mosaic_code.h"

#include <algorithm>
#include <cstring>

#include "composit/ir/error.h"

namespace flashlight::mosaic {

using composit::Array;
using composit::Buffers;
using composit::InputBuffers;

namespace {

bool same_elements(const std::vector<Array>& a, const std::vector<Array>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Array& x, const Array& y) {
    if (!x.defined() || !y.defined()) return x.defined() == y.defined();
    return (x.data() == y.data() && x.type() == y.type()) || x.content_hash() == y.content_hash();
  });
}

}  // namespace

MosaicCode::MosaicCode(std::shared_ptr<const Kernels> kernels,
                       std::shared_ptr<const Prepared> prepared)
    : GeneratedCode(kernels->plan.ports, kernels->source),
      kernels_(std::move(kernels)),
      prepared_(std::move(prepared)) {
  const std::string& name = kernels_->source->run_name;
  if (kernels_->numbers)
    sized_run_ = kernels_->library.symbol<SizedRun>(name);
  else
    run_ = kernels_->library.symbol<Run>(name);
}

bool MosaicCode::is_frozen(size_t input) const {
  return loops::contains(kernels_->source->weights, input) &&
         plan().frozen[plan().routine.inputs[input]];
}

bool MosaicCode::may_update(size_t result) const {
  return plan().updates.contains(plan().routine.results[result]);
}

std::shared_ptr<const composit::Code> MosaicCode::prepare(const std::vector<Array>& weights) const {
  const int64_t* numbers = kernels_->numbers ? kernels_->numbers->data() : nullptr;
  const Preparing of = {
      plan(), *kernels_->source, kernels_->constants, kernels_->library, kernels_->threads,
      numbers};
  return std::make_shared<const MosaicCode>(
      kernels_, std::make_shared<const Prepared>(mosaic::prepare(of, weights)));
}

std::shared_ptr<const composit::Code> MosaicCode::prepare_like(const composit::Code& other) const {
  const auto* like = dynamic_cast<const MosaicCode*>(&other);
  if (like == nullptr || like->prepared_ == nullptr) return nullptr;
  const Kernels& theirs = *like->kernels_;
  const bool is_same = kernels_->numbers && theirs.numbers &&
                       kernels_->preparation == theirs.preparation &&
                       kernels_->plan.prepared_bytes == theirs.plan.prepared_bytes &&
                       kernels_->source->is_read_by_run == theirs.source->is_read_by_run &&
                       same_elements(kernels_->constants, theirs.constants);
  return is_same ? std::make_shared<const MosaicCode>(kernels_, like->prepared_) : nullptr;
}

void MosaicCode::run(InputBuffers inputs, Buffers results, fl::Generator* generator) const {
  run_timed(inputs, results, generator, nullptr);
}

Profile MosaicCode::profile(InputBuffers inputs, Buffers results, fl::Generator* generator) const {
  Profile profile = kernels_->timed;
  std::vector<int64_t> times(profile.size() + 1);
  run_timed(inputs, results, generator, times.data());
  for (size_t i = 0; i < profile.size(); ++i) {
    profile[i].start = times[i];
    profile[i].end = times[i + 1];
  }
  return profile;
}

const char* MosaicCode::enter(const package::Pointers& at, void* arena, int64_t* times) const {
  const void* const prepared = prepared_->memory.get();
  if (run_ != nullptr)
    return run_(at.arguments.data(), at.weights.data(), at.results.data(), prepared, arena,
                at.generator, times, kernels_->threads);
  return sized_run_(at.arguments.data(), at.weights.data(), at.results.data(), prepared, arena,
                    at.generator, times, kernels_->threads, kernels_->numbers->data());
}

void MosaicCode::run_timed(InputBuffers inputs, Buffers results, fl::Generator* generator,
                           int64_t* times) const {
  COMPOSIT_ASSERT(prepared_, "code is prepared before it is run");
  call(inputs, results, generator, [&](const package::Pointers& at) {
    copy_updated(inputs, results);
    const package::ArenaPool::Loan arena =
        kernels_->arenas->take(static_cast<size_t>(plan().arena_bytes));
    return enter(at, arena.get(), times);
  });
}

// A result that is written over an input in memory of its own is written over a copy of the input.
void MosaicCode::copy_updated(InputBuffers inputs, Buffers results) const {
  const loops::Routine& routine = plan().routine;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!may_update(i) || !plan().in_place.contains(routine.results[i])) continue;
    const ValueId value = plan().updates.at(routine.results[i]);
    const auto input = std::find(routine.inputs.begin(), routine.inputs.end(), value);
    const void* from =
        plan().ports.given(static_cast<size_t>(input - routine.inputs.begin()), inputs);
    if (from != results[i].data)
      std::memcpy(results[i].data, from, static_cast<size_t>(routine.values[value].type.nbytes()));
  }
}

const void* MosaicCode::weight(size_t place, InputBuffers inputs) const {
  const Array& known = prepared_->weights[place];
  if (known.defined()) return known.data();
  const Source& source = *kernels_->source;
  return source.is_read_by_run[place] ? ports().given(source.weights[place], inputs) : nullptr;
}

}  // namespace flashlight::mosaic
