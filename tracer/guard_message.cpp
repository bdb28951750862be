#include "tracer/guard_message.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "composit/ir/error.h"
#include "tracer/replay.h"

namespace flashlight::tracer {
namespace {

using composit::Node;

constexpr const char* kOrCaptureAgain =
    ", or capture again for these inputs: trace(model, inputs…)";

// The node that made the only tensor that `step` reads; nullptr if it reads several tensors, or a
// constant. The step itself is often in a region, where it reads an argument without a name.
const Node* source_of(const Plan::Impl& plan, const Step& step) {
  std::vector<Slot> slots;
  for (const StepArgument& argument : step.arguments)
    for (Slot slot : argument.slots) slots.push_back(slot);
  if (slots.size() != 1 || slots[0] == kNoSlot) return nullptr;
  if (const size_t maker = plan.made_by[slots[0]].step; maker < plan.steps.size())
    return plan.steps[maker].node.get();
  const auto input = std::find(plan.inputs.begin(), plan.inputs.end(), slots[0]);
  if (input == plan.inputs.end()) return nullptr;
  return plan.graph.inputs()[static_cast<size_t>(input - plan.inputs.begin())].node.get();
}

std::string origin(const Node* source) {
  if (source == nullptr) return "";
  return composit::is_input(*source) ? ", of the input '" + input_name(*source) + "'"
                                     : ", of " + place_of(*source);
}

bool is_norm(const Node* source) {
  if (source == nullptr) return false;
  const std::string_view name = source->op().base_name();
  return name == "norm" || name == "linalg_vector_norm";
}

}  // namespace

bool same_number(const c10::IValue& value, const c10::Scalar& expected) {
  if (value.isBool()) return expected.isBoolean() && value.toBool() == expected.toBool();
  if (value.isInt()) return expected.isIntegral(false) && value.toInt() == expected.toLong();
  if (value.isDouble())
    return expected.isFloatingPoint() && std::bit_cast<uint64_t>(value.toDouble()) ==
                                             std::bit_cast<uint64_t>(expected.toDouble());
  return value.isComplexDouble() && expected.isComplex() &&
         value.toComplexDouble() == expected.toComplexDouble();
}

std::string number_differs(const Plan::Impl& plan, const Step& step, const std::string& expected,
                           const std::string& received) {
  const Node* source = source_of(plan, step);
  return "[replay] guard: " + place_of(*step.node) + " gave " + expected +
         " when it was captured and gives " + received + " now" + origin(source) +
         "; a number that the program reads is part of the capture: keep it in a tensor (where, "
         "clamp, minimum, index_select; a factor of one element)" +
         (is_norm(source) ? ", as docs/errors.md shows for clip_grad_norm_ of C++, which returns a "
                            "number"
                          : "") +
         kOrCaptureAgain;
}

void expect_finite(const Step& step, const ChangingNumber& number, double value) {
  if (std::isfinite(value)) return;
  throw composit::UserError("[replay] guard: '" + number.key + "' of " + place_of(*step.node) +
                            " is " + print(number.formula) +
                            ", which is not finite for what is read now: the program divides by "
                            "zero there, or goes on without a number");
}

std::string sizes_differ(const Node& node, size_t index, const std::string& expected,
                         const std::string& received) {
  return "[replay] guard: output " + std::to_string(index) + " of " + place_of(node) + " was " +
         expected + " when it was captured and is " + received +
         " now; sizes are part of the capture: keep all elements and a mask (where, masked_fill, a "
         "product with the mask)" +
         kOrCaptureAgain;
}

}  // namespace flashlight::tracer
