#include "tracer/input_memory.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "tracer/input_check.h"
#include "tracer/memory_view.h"

namespace flashlight::tracer {

using composit::Attribute;
using composit::LazyTensor;
using composit::UserError;

InputMemory::InputMemory(const composit::Graph& graph) : writes_(!graph.mutations().empty()) {
  const auto& inputs = graph.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    names_.push_back(composit::input_name(*inputs[i].node));
    group_.push_back(i);
    written_.push_back(std::any_of(graph.mutations().begin(), graph.mutations().end(),
                                   [&](const auto& m) { return m.target == inputs[i]; }));
    const Attribute* shares = inputs[i].node->find_attribute("shares");
    if (shares == nullptr) continue;
    const auto is_named = [&](const LazyTensor& other) {
      return composit::input_name(*other.node) == shares->as<std::string>();
    };
    const auto found = std::find_if(inputs.begin(), inputs.end(), is_named);
    if (found == inputs.end()) continue;
    group_.back() = static_cast<size_t>(found - inputs.begin());
    shared_.push_back({i, group_.back(), inputs[i].node->attribute("shift").as_int()});
  }
}

bool InputMemory::is_shared(size_t input) const {
  return std::any_of(shared_.begin(), shared_.end(), [&](const Shared& shared) {
    return shared.input == input || shared.with == input;
  });
}

void InputMemory::expect_as_captured(const std::string& who,
                                     const std::vector<at::Tensor>& inputs) const {
  expect_shared(who, inputs);
  if (writes_) expect_apart(who, inputs);
}

void InputMemory::expect_shared(const std::string& who,
                                const std::vector<at::Tensor>& inputs) const {
  for (const auto& [input, with, shift] : shared_) {
    if (!inputs[input].defined() || !inputs[with].defined()) continue;
    if (address_of(inputs[input]) - address_of(inputs[with]) == shift) continue;
    throw UserError(c10::str(who, "inputs '", names_[with], "' and '", names_[input],
                             "' lay in the same memory when they were captured, ", shift,
                             " bytes apart, and do not now", kCaptureAgain));
  }
}

// A written input and any other one must not overlap where they did not when they were captured.
void InputMemory::expect_apart(const std::string& who,
                               const std::vector<at::Tensor>& inputs) const {
  struct Range {
    int64_t begin, end;
    size_t input;
  };
  std::vector<Range> ranges;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].has_storage() || inputs[i].numel() == 0) continue;
    const int64_t begin = address_of(inputs[i]);
    ranges.push_back({begin, begin + span_of(inputs[i]), i});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t i = 0; i < ranges.size(); ++i)
    for (size_t j = i + 1; j < ranges.size() && ranges[j].begin < ranges[i].end; ++j) {
      const size_t a = ranges[i].input, b = ranges[j].input;
      if (group_[a] == group_[b] || (!written_[a] && !written_[b])) continue;
      throw UserError(c10::str(
          who, "inputs '", names_[std::min(a, b)], "' and '", names_[std::max(a, b)],
          "' overlap in memory, one of them is written, and they did not when they were captured",
          kCaptureAgain));
    }
}

}  // namespace flashlight::tracer
