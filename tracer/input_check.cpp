#include "tracer/input_check.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "tracer/convert.h"
#include "tracer/geometry.h"
#include "tracer/memory_view.h"

namespace flashlight::tracer {

using composit::UserError;

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  std::string text =
      c10::str(composit::name(to_composit(tensor.scalar_type())), " ", tensor.sizes());
  if (tensor.layout() == c10::Layout::Strided)
    text += " with strides " + c10::str(tensor.strides());
  return text + " on " + tensor.device().str();
}

std::string describe(const composit::Type& type) {
  if (!is_defined(type)) return "an undefined tensor";
  std::string text = c10::str(composit::name(type.dtype), " ", c10::IntArrayRef(type.sizes));
  if (type.layout == composit::Layout::strided)
    text += " with strides " + c10::str(c10::IntArrayRef(type.strides));
  return text + " on " + composit::name(type.device);
}

bool same_sizes(const at::Tensor& tensor, const composit::Type& type) {
  const auto sizes = tensor.sizes();
  if (sizes.size() != type.rank()) return false;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != type.sizes[i]) return false;
  return true;
}

std::string lies_elsewhere(const std::string& who, int64_t begin, int64_t count) {
  return c10::str(who, ": when it was captured, its storage had ", begin,
                  " bytes before its first element and ", count - begin,
                  " from there on, of which the program uses some; it lies in less memory now",
                  kCaptureAgain);
}

namespace {

bool is_of_type(const at::Tensor& tensor, const composit::Type& type) {
  return tensor.defined() && to_composit(tensor.scalar_type()) == type.dtype &&
         same_sizes(tensor, type) && tensor.device().type() == to_c10(type.device).type() &&
         tensor.is_conj() == type.conj && tensor.is_neg() == type.neg &&
         (type.layout != composit::Layout::strided || tensor.strides() == type.strides);
}

class InputCheck {
 public:
  explicit InputCheck(const Plan::Impl& plan) : plan_(plan) {}

  void run(const std::vector<at::Tensor>& inputs) const {
    const auto& expected = plan_.graph.inputs();
    if (inputs.size() != expected.size())
      throw UserError(
          c10::str("[replay] expected ", expected.size(), " inputs, received ", inputs.size()));
    if (plan_.region) return run_region(inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!is_of_type(inputs[i], expected[i].type()))
        throw UserError(c10::str("[replay] input '", input_name(*expected[i].node), "': expected ",
                                 describe(expected[i].type()), ", received ", describe(inputs[i]),
                                 kCaptureAgain));
    check_shared_memory(inputs);
    check_storages(inputs);
    if (!plan_.mutations.empty()) check_separate_memory(inputs);
  }

 private:
  // Arguments of a region lie in memory in any way.
  void run_region(const std::vector<at::Tensor>& inputs) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const composit::Type& type = plan_.graph.inputs()[i].type();
      const bool fits = inputs[i].defined() && to_composit(inputs[i].scalar_type()) == type.dtype &&
                        (!plan_.pin_types || same_sizes(inputs[i], type));
      if (!fits)
        throw UserError(c10::str("[replay] a branch or loop expects ", describe(type),
                                 ", received ", describe(inputs[i])));
    }
  }

  const std::string& name_of(size_t input) const {
    return input_name(*plan_.graph.inputs()[input].node);
  }

  void check_shared_memory(const std::vector<at::Tensor>& inputs) const {
    for (const auto& [input, with, shift] : plan_.shared) {
      if (address_of(inputs[input]) - address_of(inputs[with]) == shift) continue;
      throw UserError(c10::str("[replay] inputs '", name_of(with), "' and '", name_of(input),
                               "' lay in the same memory when they were captured, ", shift,
                               " bytes apart, and do not now", kCaptureAgain));
    }
  }

  void check_storages(const std::vector<at::Tensor>& inputs) const {
    for (const UsedStorage& use : plan_.storages)
      if (!has_bytes_around(inputs[use.input], use.begin, use.count))
        throw UserError(
            lies_elsewhere("[replay] input '" + name_of(use.input) + "'", use.begin, use.count));
  }

  // A written input and any other one must not overlap where they did not when they were captured.
  void check_separate_memory(const std::vector<at::Tensor>& inputs) const {
    struct Range {
      int64_t begin, end;
      size_t input;
    };
    std::vector<Range> ranges;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].has_storage() || inputs[i].numel() == 0) continue;
      const int64_t begin = address_of(inputs[i]);
      ranges.push_back({begin, begin + span_of(inputs[i]), i});
    }
    std::sort(ranges.begin(), ranges.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
    const auto written = [&](size_t input) {
      return std::any_of(plan_.mutations.begin(), plan_.mutations.end(),
                         [&](const auto& m) { return m.input == input; });
    };
    for (size_t i = 0; i < ranges.size(); ++i)
      for (size_t j = i + 1; j < ranges.size() && ranges[j].begin < ranges[i].end; ++j) {
        const size_t a = ranges[i].input, b = ranges[j].input;
        if (plan_.group[a] == plan_.group[b] || (!written(a) && !written(b))) continue;
        throw UserError(c10::str(
            "[replay] inputs '", name_of(std::min(a, b)), "' and '", name_of(std::max(a, b)),
            "' overlap in memory, one of them is written, and they did not when they were captured",
            kCaptureAgain));
      }
  }

  const Plan::Impl& plan_;
};

}  // namespace

void expect_inputs(const Plan::Impl& plan, const std::vector<at::Tensor>& inputs) {
  InputCheck(plan).run(inputs);
}

}  // namespace flashlight::tracer
