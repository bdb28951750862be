#include "tracer/definition.h"

#include <ATen/core/Tensor.h>

#include "composit/eval/evaluate.h"
#include "composit/ops/operations.h"
#include "tracer/convert.h"

namespace flashlight::tracer {

std::vector<at::Tensor> run_definition(const composit::Node& node,
                                       const std::vector<at::Tensor>& operands) {
  const composit::Operation& operation = composit::operation_named(node.op().str());
  const composit::Call call = composit::call_of(node, operation.schema);
  std::vector<composit::Array> values(call.tensors().size());
  for (size_t place = 0; place < values.size(); ++place) {
    if (!call.tensors()[place].defined()) continue;
    const at::Tensor& operand = operands.at(call.operand(place));
    values[place] = to_array(operand.detach().resolve_conj().resolve_neg());
  }
  std::vector<at::Tensor> results;
  for (const composit::Array& result : composit::evaluate(operation, call, values))
    results.push_back(result.defined() ? to_tensor(result) : at::Tensor());
  return results;
}

}  // namespace flashlight::tracer
