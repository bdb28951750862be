// Branches and loops. A region takes what the node takes; of a loop, the first operands are carried
// (`carried`), the others stay what they are.
#include <algorithm>

#include "composit/interchange/stablehlo/rows.h"
#include "composit/ir/error.h"
#include "composit/ir/transform.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;

LazyTensors blocks_of(const LazyTensors& values) {
  LazyTensors blocks;
  for (const LazyTensor& value : values)
    blocks.push_back(input(std::to_string(blocks.size()), tensor_type(value.dtype(), value.sizes()),
                           InputKind::block));
  return blocks;
}

Region made(LazyTensors inputs, LazyTensors outputs) {
  return std::make_shared<const Graph>(
      Graph({.inputs = std::move(inputs), .outputs = std::move(outputs)}));
}

Types types_of(const LazyTensors& values) {
  Types types;
  for (const LazyTensor& value : values) types.push_back(tensor_type(value.dtype(), value.sizes()));
  return types;
}

LazyTensors joined(LazyTensors a, const LazyTensors& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

LazyTensors range_of(const LazyTensors& values, size_t begin, size_t count) {
  const auto first = values.begin() + static_cast<int64_t>(begin);
  return {first, first + static_cast<int64_t>(count)};
}

LazyTensors loop(const LazyTensors& carried, const LazyTensors& outside, Region condition,
                 Region body) {
  return calls("while", joined(carried, outside),
               {attribute("carried", static_cast<int64_t>(carried.size())),
                attribute("condition", std::move(condition)), attribute("body", std::move(body))},
               types_of(carried));
}

LazyTensors cond(const Call& call, const Types& results) {
  LazyTensors operands = {reshaped(tensor_of(call, "predicate"), {})};
  operands = joined(operands, call["operands"].tensors());
  return calls(
      "if", operands,
      {attribute("then", call["then_body"].data()), attribute("else", call["else_body"].data())},
      results);
}

LazyTensor counter(int64_t value) { return number(static_cast<double>(value), DType::int64); }

// The element `i` along the first axis.
LazyTensor slot(const LazyTensor& sequence, const LazyTensor& i) {
  LazyTensors operands = {sequence, i};
  for (int64_t axis = 1; axis < sequence.rank(); ++axis) operands.push_back(counter(0));
  Dims sizes = sequence.sizes();
  sizes[0] = 1;
  const LazyTensor found =
      call("dynamic_slice", operands, {list("sizes", sizes)}, tensor_type(sequence.dtype(), sizes));
  return reshaped(found, {sizes.begin() + 1, sizes.end()});
}

LazyTensor with_slot(const LazyTensor& stack, const LazyTensor& value, const LazyTensor& i) {
  Dims sizes = value.sizes();
  sizes.insert(sizes.begin(), 1);
  LazyTensors operands = {stack, reshaped(value, sizes), i};
  for (int64_t axis = 1; axis < stack.rank(); ++axis) operands.push_back(counter(0));
  return call("dynamic_update_slice", operands, {}, tensor_type(stack.dtype(), stack.sizes()));
}

LazyTensors zeros_of(const Types& results, size_t first, size_t end) {
  LazyTensors stacks;
  for (size_t i = first; i < end; ++i)
    stacks.push_back(filled(0, results[i].dtype, results[i].sizes));
  return stacks;
}

// Carried through the loop: the number of the trip, what the body carries, the stacks.
LazyTensors run_scan(const LazyTensors& carried, const LazyTensors& sequences,
                     const LazyTensors& outside, const LazyTensor& trips, const Region& body,
                     bool reverse, const Types& results) {
  const size_t count = carried.size(), stacked = results.size() - count;
  LazyTensors state = joined({counter(0)}, carried);
  state = joined(state, zeros_of(results, count, results.size()));
  const LazyTensors rest = joined(joined(sequences, outside), {trips});

  const LazyTensors in = blocks_of(joined(state, rest));
  const LazyTensor &trip = in[0], &end = in.back();
  const Region condition = made(in, {compare("LT", trip, end)});
  const LazyTensor i =
      reverse ? binary("subtract", binary("subtract", end, trip), counter(1)) : trip;
  LazyTensors arguments = range_of(in, 1, count);
  for (const LazyTensor& sequence : range_of(in, state.size(), sequences.size()))
    arguments.push_back(slot(sequence, i));
  arguments = joined(arguments, range_of(in, state.size() + sequences.size(), outside.size()));
  const LazyTensors given = inlined(*body, arguments);
  LazyTensors next = joined({binary("add", trip, counter(1))}, range_of(given, 0, count));
  for (size_t k = 0; k < stacked; ++k)
    next.push_back(with_slot(in[1 + count + k], given[count + k], i));
  const LazyTensors end_state = loop(state, rest, condition, made(in, next));
  return range_of(end_state, 1, count + stacked);
}

// A number of trips beyond the length is an error there, and here a condition of the program.
LazyTensors scan(const Call& call, const Types& results) {
  const int64_t length = int_of(call, "length");
  const LazyTensor& trips = tensor_of(call, "trips");
  LazyTensors made = run_scan(call["carried"].tensors(), call["sequences"].tensors(),
                              call["outside"].tensors(), trips ? trips : counter(length),
                              call["body"].data().as<Region>(), bool_of(call, "reverse"), results);
  if (trips && !made.empty())
    made[0] = checked(made[0], in_range(trips, length + 1),
                      "a loop makes at most " + std::to_string(length) + " trips");
  return made;
}

LazyTensors map(const Call& call, const Types& results) {
  const LazyTensors& sequences = call["sequences"].tensors();
  if (sequences.empty() || results.empty()) return {};
  return run_scan({}, sequences, call["outside"].tensors(), counter(sequences[0].size(0)),
                  call["body"].data().as<Region>(), false, results);
}

LazyTensors while_loop(const Call& call, const Types& results) {
  const LazyTensors &carried = call["carried"].tensors(), &outside = call["outside"].tensors();
  const Region &condition = call["condition"].data().as<Region>(),
               &body = call["body"].data().as<Region>();
  const size_t count = carried.size(), stacked = results.size() - 1 - count;
  LazyTensors state = joined({counter(0)}, carried);
  state = joined(state, zeros_of(results, count, count + stacked));
  const LazyTensors in = blocks_of(joined(state, outside));
  const LazyTensors arguments =
      joined(range_of(in, 1, count), range_of(in, state.size(), outside.size()));
  LazyTensor goes_on = reshaped(inlined(*condition, arguments)[0], {});
  const bool limited = !call["limit"].is_none();
  if (limited)
    goes_on = binary("and", goes_on, compare("LT", in[0], counter(int_of(call, "limit"))));
  const LazyTensors given = inlined(*body, arguments);
  LazyTensors next = joined({binary("add", in[0], counter(1))}, range_of(given, 0, count));
  for (size_t k = 0; k < stacked; ++k)
    next.push_back(with_slot(in[1 + count + k], given[count + k], in[0]));
  LazyTensors end = loop(state, outside, made(in, {goes_on}), made(in, next));
  LazyTensor trips = end[0];
  if (limited) {
    const LazyTensors last = joined(range_of(end, 1, count), outside);
    const LazyTensor more = reshaped(inlined(*condition, last)[0], {});
    trips = checked(trips, unary("not", more),
                    "a loop makes at most " + std::to_string(int_of(call, "limit")) + " trips");
  }
  LazyTensors made = range_of(end, 1, count + stacked);
  made.push_back(trips);
  return made;
}

}  // namespace

void add_control_flow_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"composit::cond", cond},
                           {"composit::map", map},
                           {"composit::scan", scan},
                           {"composit::while_loop", while_loop}});
}

}  // namespace composit::stablehlo
