#include "tracer/guard_message.h"

#include "tracer/replay.h"

namespace flashlight::tracer {
namespace {

using composit::LazyTensor;
using composit::Node;

constexpr const char* kOrCaptureAgain = ", or capture again for these inputs: trace(model, inputs…)";

// The number itself often comes from a line of LibTorch; what it was made of is nearer to the
// user's.
std::string origin_of(const Node& node) {
  if (node.operands().size() != 1 || !node.operands()[0]) return "";
  const Node& source = *node.operands()[0].node;
  return composit::is_input(source) ? ", of the input '" + input_name(source) + "'"
                                    : ", of " + place_of(source);
}

bool is_norm(const Node& node) {
  if (node.operands().size() != 1 || !node.operands()[0]) return false;
  const std::string_view source = node.operands()[0].node->op().base_name();
  return source == "norm" || source == "linalg_vector_norm";
}

}  // namespace

std::string number_differs(const Node& node, const std::string& expected,
                           const std::string& received) {
  return "[replay] guard: " + place_of(node) + " gave " + expected +
         " when it was captured and gives " + received + " now" + origin_of(node) +
         "; a number that the program reads is part of the capture: keep it in a tensor (where, "
         "clamp, minimum, index_select; a factor of one element)" +
         (is_norm(node) ? ", as docs/errors.md shows for clip_grad_norm_ of C++, which returns a "
                          "number"
                        : "") +
         kOrCaptureAgain;
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
