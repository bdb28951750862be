#include "composit/interchange/values.h"

#include "composit/ir/graph.h"
#include "composit/ops/native.h"

namespace composit::interchange {
namespace {

thread_local bool all_operators = false;

}  // namespace

bool is_left_out(const Dims& from, const Dims& to) { return from == to && !all_operators; }

AllOperators::AllOperators() : before_(all_operators) { all_operators = true; }
AllOperators::~AllOperators() { all_operators = before_; }

LazyTensor integers(const std::vector<int64_t>& values) {
  return constant(
      array_of(tensor_type(DType::int64, {static_cast<int64_t>(values.size())}), values));
}

LazyTensor filled(double value, DType dtype, const Dims& sizes) {
  const Type type = tensor_type(dtype, sizes);
  return constant(array_of(type, std::vector<double>(static_cast<size_t>(type.numel()), value)));
}

LazyTensor number(double value, DType dtype) { return filled(value, dtype, {}); }

NamedAttribute attribute(std::string_view name, Attribute value) {
  return {Symbol(name), std::move(value)};
}

LazyTensors results_of(std::string_view op, const LazyTensors& operands, Attributes attributes,
                       std::vector<Type> results) {
  NodeSpec spec(op);
  for (const LazyTensor& operand : operands) spec.tensor(operand);
  spec.attributes = std::move(attributes);
  const size_t count = results.size();
  spec.outputs = std::move(results);
  const NodePtr node = std::move(spec).make_node();
  LazyTensors made;
  for (uint32_t i = 0; i < count; ++i) made.push_back({node, i});
  return made;
}

Dims broadcast(const Dims& a, const Dims& b) {
  Dims sizes = a.size() < b.size() ? b : a;
  const Dims& other = a.size() < b.size() ? a : b;
  const size_t shift = sizes.size() - other.size();
  for (size_t i = 0; i < other.size(); ++i)
    if (sizes[shift + i] == 1) sizes[shift + i] = other[i];
  return sizes;
}

}  // namespace composit::interchange
