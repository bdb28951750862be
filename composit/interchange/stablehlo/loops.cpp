#include "composit/interchange/stablehlo/loops.h"

#include <memory>
#include <string>

#include "composit/ir/graph.h"

namespace composit::stablehlo {
namespace {

LazyTensors blocks_of(const LazyTensors& values) {
  LazyTensors blocks;
  for (const LazyTensor& value : values)
    blocks.push_back(input(std::to_string(blocks.size()), tensor_type(value.dtype(), value.sizes()),
                           InputKind::block));
  return blocks;
}

Region made(const LazyTensors& inputs, LazyTensors outputs) {
  return std::make_shared<const Graph>(Graph({.inputs = inputs, .outputs = std::move(outputs)}));
}

}  // namespace

LazyTensors joined(LazyTensors a, const LazyTensors& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

LazyTensors range_of(const LazyTensors& values, size_t begin, size_t count) {
  const auto first = values.begin() + static_cast<int64_t>(begin);
  return {first, first + static_cast<int64_t>(count)};
}

LazyTensor counter(int64_t value) { return number(static_cast<double>(value), DType::int64); }

LazyTensors while_loop(const LazyTensors& carried, const LazyTensors& outside,
                       const std::function<LazyTensor(const LazyTensors& values)>& condition,
                       const TensorFunction& body) {
  const LazyTensors in = blocks_of(joined(carried, outside));
  std::vector<Type> types;
  for (const LazyTensor& value : carried)
    types.push_back(tensor_type(value.dtype(), value.sizes()));
  return calls(
      "while", joined(carried, outside),
      {attribute("carried", static_cast<int64_t>(carried.size())),
       attribute("condition", made(in, {condition(in)})), attribute("body", made(in, body(in)))},
      types);
}

LazyTensors counted_loop(int64_t count, const LazyTensors& carried, const LazyTensors& outside,
                         const TensorFunction& body) {
  const LazyTensors end = while_loop(
      joined({counter(0)}, carried), outside,
      [&](const LazyTensors& in) { return compare("LT", in[0], counter(count)); },
      [&](const LazyTensors& in) { return joined({binary("add", in[0], counter(1))}, body(in)); });
  return range_of(end, 1, carried.size());
}

}  // namespace composit::stablehlo
