// Branches and loops. A region takes what the node takes; of a loop, the first operands are carried
// (`carried`), the others stay what they are.
#include <algorithm>

#include "composit/interchange/stablehlo/loops.h"
#include "composit/interchange/stablehlo/rows.h"
#include "composit/ir/error.h"
#include "composit/ir/transform.h"

namespace composit::stablehlo {
namespace {

using Types = std::vector<Type>;

LazyTensors cond(const Call& call, const Types& results) {
  LazyTensors operands = {reshaped(tensor_of(call, "predicate"), {})};
  operands = joined(operands, call["operands"].tensors());
  return calls(
      "if", operands,
      {attribute("then", call["then_body"].data()), attribute("else", call["else_body"].data())},
      results);
}

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

  const LazyTensors end = while_loop(
      state, rest, [](const LazyTensors& in) { return compare("LT", in[0], in.back()); },
      [&](const LazyTensors& in) {
        const LazyTensor &trip = in[0], &all = in.back();
        const LazyTensor i =
            reverse ? binary("subtract", binary("subtract", all, trip), counter(1)) : trip;
        LazyTensors arguments = range_of(in, 1, count);
        for (const LazyTensor& sequence : range_of(in, state.size(), sequences.size()))
          arguments.push_back(slot(sequence, i));
        arguments =
            joined(arguments, range_of(in, state.size() + sequences.size(), outside.size()));
        const LazyTensors given = inlined(*body, arguments);
        LazyTensors next = joined({binary("add", trip, counter(1))}, range_of(given, 0, count));
        for (size_t k = 0; k < stacked; ++k)
          next.push_back(with_slot(in[1 + count + k], given[count + k], i));
        return next;
      });
  return range_of(end, 1, count + stacked);
}

// A number of trips beyond the length is an error there, and here a condition of the program.
LazyTensors scan(const Call& call, const Types& results) {
  const int64_t length = int_of(call, "length");
  const LazyTensor& trips = tensor_of(call, "trips");
  LazyTensors made = run_scan(call["carried"].tensors(), call["sequences"].tensors(),
                              call["outside"].tensors(), trips ? trips : counter(length),
                              call["body"].data().as<Region>(), bool_of(call, "reverse"), results);
  if (!trips) return made;
  for (LazyTensor& result : made)
    result = checked(result, in_range(trips, length + 1),
                     "a loop makes at most " + std::to_string(length) + " trips");
  return made;
}

LazyTensors map(const Call& call, const Types& results) {
  const LazyTensors& sequences = call["sequences"].tensors();
  if (sequences.empty() || results.empty()) return {};
  return run_scan({}, sequences, call["outside"].tensors(), counter(sequences[0].size(0)),
                  call["body"].data().as<Region>(), false, results);
}

LazyTensors repeat(const Call& call, const Types& results) {
  const LazyTensors &carried = call["carried"].tensors(), &outside = call["outside"].tensors();
  const Region &condition = call["condition"].data().as<Region>(),
               &body = call["body"].data().as<Region>();
  const size_t count = carried.size(), stacked = results.size() - 1 - count;
  LazyTensors state = joined({counter(0)}, carried);
  state = joined(state, zeros_of(results, count, count + stacked));
  const bool limited = !call["limit"].is_none();
  const auto arguments = [&](const LazyTensors& in) {
    return joined(range_of(in, 1, count), range_of(in, state.size(), outside.size()));
  };
  const LazyTensors end = while_loop(
      state, outside,
      [&](const LazyTensors& in) {
        const LazyTensor more = reshaped(inlined(*condition, arguments(in))[0], {});
        if (!limited) return more;
        return binary("and", more, compare("LT", in[0], counter(int_of(call, "limit"))));
      },
      [&](const LazyTensors& in) {
        const LazyTensors given = inlined(*body, arguments(in));
        LazyTensors next = joined({binary("add", in[0], counter(1))}, range_of(given, 0, count));
        for (size_t k = 0; k < stacked; ++k)
          next.push_back(with_slot(in[1 + count + k], given[count + k], in[0]));
        return next;
      });
  LazyTensors made = range_of(end, 1, count + stacked);
  made.push_back(end[0]);
  if (limited) {
    const LazyTensors last = joined(range_of(end, 1, count), outside);
    const LazyTensor more = reshaped(inlined(*condition, last)[0], {});
    for (LazyTensor& result : made)
      result = checked(result, unary("not", more),
                       "a loop makes at most " + std::to_string(int_of(call, "limit")) + " trips");
  }
  return made;
}

}  // namespace

void add_control_flow_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"composit::cond", cond},
                           {"composit::map", map},
                           {"composit::scan", scan},
                           {"composit::while_loop", repeat}});
}

}  // namespace composit::stablehlo
