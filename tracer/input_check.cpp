#include "tracer/input_check.h"

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
  if (tensor.is_conj()) text += ", lazily conjugated (resolve_conj() is not)";
  if (tensor.is_neg()) text += ", lazily negated (resolve_neg() is not)";
  return text + " on " + tensor.device().str();
}

std::string describe(const composit::Type& type) {
  if (!is_defined(type)) return "an undefined tensor";
  std::string text = c10::str(composit::name(type.dtype), " ", c10::IntArrayRef(type.sizes));
  if (type.layout == composit::Layout::strided)
    text += " with strides " + c10::str(c10::IntArrayRef(type.strides));
  if (type.conj) text += ", lazily conjugated";
  if (type.neg) text += ", lazily negated";
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
    plan_.memory.expect_as_captured("[replay] ", inputs);
    check_storages(inputs);
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

  void check_storages(const std::vector<at::Tensor>& inputs) const {
    for (const UsedStorage& use : plan_.storages)
      if (!has_bytes_around(inputs[use.input], use.begin, use.count))
        throw UserError(
            lies_elsewhere("[replay] input '" + name_of(use.input) + "'", use.begin, use.count));
  }

  const Plan::Impl& plan_;
};

}  // namespace

void expect_inputs(const Plan::Impl& plan, const std::vector<at::Tensor>& inputs) {
  InputCheck(plan).run(inputs);
}

}  // namespace flashlight::tracer
