#include "flashlight/mosaic/sized_parts.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "composit/ir/error.h"
#include "composit/ir/scope.h"
#include "flashlight/mosaic/mosaic_code.h"
#include "flashlight/mosaic/prepare.h"
#include "flashlight/mosaic/step_runner.h"
#include "flashlight/package/weights.h"
#include "flashlight/runtime/steps.hpp"
#include "flashlight/text/literal.h"

namespace flashlight::mosaic {

using composit::Array;

namespace {

constexpr int64_t kLine = 64;  // bytes

// "product_gelu" of "product_gelu_128x3072x768", whose sizes are data.
std::string name_without_sizes(std::string name) {
  const auto is_of_size = [](char c) {
    return c == 'x' || std::isdigit(static_cast<unsigned char>(c)) != 0;
  };
  for (size_t last; (last = name.rfind('_')) != std::string::npos && last + 1 < name.size();) {
    const auto part = name.begin() + static_cast<std::ptrdiff_t>(last + 1);
    if (*part == 'x' || !std::all_of(part, name.end(), is_of_size)) break;
    name.erase(last);
  }
  return name;
}

}  // namespace

SizedParts::SizedParts(const composit::SavedCapture& capture, int threads)
    : weights_(package::weights_of(capture)),
      inputs_(capture.graph.inputs()),
      threads_(threads),
      members_({"plans", "prepared"}) {
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (composit::input_kind(*inputs_[i].node) == composit::InputKind::user_input)
      source_.arguments.push_back(i);
}

std::vector<int64_t> SizedParts::add(const SizedPlan& at) {
  const CallPlan calls(at.plan);
  prepare(at, calls);
  keep_updates(calls);
  headers_.insert(at.program.source.headers.begin(), at.program.source.headers.end());
  source_.draws = source_.draws || at.program.source.draws;

  std::vector<int64_t> words = {static_cast<int64_t>(calls.arena_bytes), 0};
  for (const auto& [result, update] : calls.updates) {
    if (!update.is_over_it) continue;
    ++words[1];
    for (const size_t word : {result, argument_of(update.input), update.bytes})
      words.push_back(static_cast<int64_t>(word));
  }
  const std::vector<OpenStep>& steps = at.program.run;
  words.push_back(static_cast<int64_t>(steps.size()));
  for (size_t i = 0; i < steps.size(); ++i)
    for (const size_t word :
         {entry(at, i), size_t{steps[i].is_kernel} | size_t{steps[i].is_waited_for} << 1,
          steps[i].places.size(), at.steps.run[i].numbers.size()})
      words.push_back(static_cast<int64_t>(word));
  for (const OpenStep& step : steps)
    for (const Place& one : step.places) words.push_back(place(at, one));
  for (const ReadyStep& step : at.steps.run)
    words.insert(words.end(), step.numbers.begin(), step.numbers.end());
  return words;
}

package::Source SizedParts::source() const {
  package::Source source = source_;
  source.headers = {headers_.begin(), headers_.end()};
  return source;
}

composit::Type SizedParts::type_of_weight(size_t number) const {
  const Array& constant = source_.constants[number];
  return constant.defined() ? constant.type() : inputs_[source_.weights[number]].type();
}

Array SizedParts::prepared_memory() const {
  if (prepared_bytes_ == 0) return {};
  const std::shared_ptr<std::byte> memory = allocate_together({prepared_bytes_})[0];
  for (const auto& [key, one] : prepared_)
    std::memcpy(memory.get() + one.offset, one.memory.get(), static_cast<size_t>(one.bytes));
  return {composit::tensor_type(composit::DType::uint8, {prepared_bytes_}), memory, memory.get()};
}

void SizedParts::prepare(const SizedPlan& at, const CallPlan& calls) {
  const std::shared_ptr<const Runner> runner = step_runner(at.program, at.steps, threads_);
  const auto prepared = std::make_shared<const Prepared>(
      mosaic::prepare({at.plan.ports, calls.frozen, at.program.source, *runner}, weights_, known_));
  bool has_news = false;
  for (size_t i = 0; i < at.program.prepared.size(); ++i) {
    const PreparedValue& value = at.program.prepared[i];
    if (!value.stays) continue;
    const bool is_new =
        prepared_
            .try_emplace(value.key, Kept{prepared_bytes_, value.bytes, prepared->memory[i].first})
            .second;
    if (is_new) prepared_bytes_ += (value.bytes + kLine - 1) / kLine * kLine;
    has_news = has_news || is_new;
  }
  if (has_news) known_.push_back(prepared);
}

// A caller does not know the plan: only what may be written over an input at all sizes may be.
void SizedParts::keep_updates(const CallPlan& calls) {
  std::map<size_t, size_t> updates;
  for (const auto& [result, update] : calls.updates)
    if (!updates_ || updates_->contains(result)) updates[result] = argument_of(update.input);
  updates_ = std::move(updates);
}

size_t SizedParts::argument_of(size_t input) const {
  const std::vector<size_t>& all = source_.arguments;
  return static_cast<size_t>(std::find(all.begin(), all.end(), input) - all.begin());
}

size_t SizedParts::weight(const SizedPlan& at, size_t index) {
  const Source& source = at.program.source;
  const Array& constant = source.constants[index];
  const std::string key = constant.defined() ? "constant " + constant.content_hash().str()
                                             : fmt::format("input {}", source.weights[index]);
  const auto [found, is_new] = weight_numbers_.try_emplace(key, source_.weights.size());
  if (!is_new) return found->second;
  const std::string name =
      constant.defined() ? "constant" : composit::input_name(*inputs_[source.weights[index]].node);
  source_.members.push_back(composit::unused_name(text::identifier(name), members_));
  source_.constants.push_back(constant);
  source_.weights.push_back(constant.defined() ? inputs_.size() : source.weights[index]);
  return found->second;
}

size_t SizedParts::entry(const SizedPlan& at, size_t step) {
  const std::shared_ptr<const StepText>& text = at.steps.run[step].text;
  const auto [found, is_new] = entry_numbers_.try_emplace(text.get(), entries_.size());
  if (is_new)
    entries_.push_back(
        {composit::unused_name(name_without_sizes(at.program.run[step].name), entry_names_), text});
  return found->second;
}

int64_t SizedParts::place(const SizedPlan& at, const Place& place) {
  int64_t there = 0;
  if (place.in == Place::In::argument)
    there = static_cast<int64_t>(argument_of(at.program.source.arguments[place.index]));
  else if (place.in == Place::In::result)
    there = static_cast<int64_t>(place.index);
  else if (place.in == Place::In::weight)
    there = static_cast<int64_t>(weight(at, place.index));
  else if (place.in == Place::In::prepared)
    there = prepared_.at(at.program.prepared[place.index].key).offset;
  else if (place.in == Place::In::arena)
    there = place.offset;
  return there << fl::kStepMemoryBits | static_cast<int64_t>(place.in);
}

}  // namespace flashlight::mosaic
