// Branches and loops. A region takes what the node takes: of `If` the operands after the condition,
// of `Loop` the number of the trip, a condition, what is carried (`carried`), and what stays as it
// is.
#include <memory>
#include <string>

#include "composit/interchange/onnx/rows.h"
#include "composit/ir/graph.h"
#include "composit/ir/transform.h"

namespace composit::onnx {
namespace {

using Types = std::vector<Type>;

LazyTensors both(LazyTensors a, const LazyTensors& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

LazyTensors some_of(const LazyTensors& values, size_t begin, size_t count) {
  const auto first = values.begin() + static_cast<int64_t>(begin);
  return {first, first + static_cast<int64_t>(count)};
}

LazyTensors blocks_like(const LazyTensors& values) {
  LazyTensors blocks;
  for (const LazyTensor& value : values)
    blocks.push_back(input(std::to_string(blocks.size()), tensor_type(value.dtype(), value.sizes()),
                           InputKind::block));
  return blocks;
}

LazyTensor index_number(int64_t value) { return number(static_cast<double>(value), DType::int64); }
LazyTensor yes() { return number(1, DType::bool_); }

LazyTensors cond(const Call& call, const Types& results) {
  const LazyTensors operands =
      both({reshaped(tensor_of(call, "predicate"), {})}, call["operands"].tensors());
  return calls("If", operands,
               {attribute("then_branch", call["then_body"].data()),
                attribute("else_branch", call["else_body"].data())},
               results);
}

// `trips`: as many at most, absent where only the condition ends the loop. `body`: of all that it
// takes; gives whether it goes on, what is carried, and elements of stacks.
LazyTensors loop(const LazyTensor& trips, const LazyTensor& goes_on, const LazyTensors& carried,
                 const LazyTensors& outside, const Types& results, const TensorFunction& body) {
  const LazyTensors operands = both(both({trips, goes_on}, carried), outside);
  const LazyTensors blocks = blocks_like(both(both({index_number(0), yes()}, carried), outside));
  const auto region =
      std::make_shared<const Graph>(Graph({.inputs = blocks, .outputs = body(blocks)}));
  return calls("Loop", operands,
               {attribute("carried", static_cast<int64_t>(carried.size())),
                attribute("body", Region(region))},
               results);
}

// The element `i` along the first axis.
LazyTensor slot(const LazyTensor& sequence, const LazyTensor& i) {
  const Dims sizes(sequence.sizes().begin() + 1, sequence.sizes().end());
  return call("Gather", {sequence, i}, {attribute("axis", 0)},
              tensor_type(sequence.dtype(), sizes));
}

LazyTensor reversed(const LazyTensor& x) {
  constexpr int64_t kFirst = -(int64_t{1} << 62);  // before the first element
  return call("Slice", {x, integers({-1}), integers({kFirst}), integers({0}), integers({-1})}, {},
              tensor_type(x.dtype(), x.sizes()));
}

LazyTensors run_scan(const LazyTensors& carried, const LazyTensors& sequences,
                     const LazyTensors& outside, int64_t length, const Region& body, bool reverse,
                     const Types& results) {
  const size_t first = 2 + carried.size();
  LazyTensors made =
      loop(index_number(length), yes(), carried, both(sequences, outside), results,
           [&](const LazyTensors& in) {
             const LazyTensor i = reverse ? binary("Sub", index_number(length - 1), in[0]) : in[0];
             LazyTensors arguments = some_of(in, 2, carried.size());
             for (const LazyTensor& sequence : some_of(in, first, sequences.size()))
               arguments.push_back(slot(sequence, i));
             arguments = both(arguments, some_of(in, first + sequences.size(), outside.size()));
             return both({in[1]}, inlined(*body, arguments));
           });
  for (size_t k = carried.size(); reverse && k < made.size(); ++k) made[k] = reversed(made[k]);
  return made;
}

// A number of trips that is a value would give stacks of another length.
LazyTensors scan(const Call& call, const Types& results) {
  const int64_t length = int_of(call, "length");
  if (tensor_of(call, "trips") || length == 0 || results.empty()) return {};
  return run_scan(call["carried"].tensors(), call["sequences"].tensors(), call["outside"].tensors(),
                  length, call["body"].data().as<Region>(), bool_of(call, "reverse"), results);
}

LazyTensors map(const Call& call, const Types& results) {
  const LazyTensors& sequences = call["sequences"].tensors();
  if (sequences.empty() || results.empty() || sequences[0].size(0) == 0) return {};
  return run_scan({}, sequences, call["outside"].tensors(), sequences[0].size(0),
                  call["body"].data().as<Region>(), false, results);
}

// Carries the number of its trips as well. That it ends before its limit is a guard.
LazyTensors while_loop(const Call& call, const Types& results) {
  const LazyTensors &carried = call["carried"].tensors(), &outside = call["outside"].tensors();
  const Region &condition = call["condition"].data().as<Region>(),
               &body = call["body"].data().as<Region>();
  if (results.size() != carried.size() + 1) return {};  // stacks of as many elements as trips
  const auto goes_on = [&](const LazyTensors& values) {
    return reshaped(inlined(*condition, both(values, outside))[0], {});
  };
  const bool limited = !call["limit"].is_none();
  const LazyTensors state = both({index_number(0)}, carried);
  Types types = {tensor_type(DType::int64, {})};
  types.insert(types.end(), results.begin(), results.end() - 1);
  const LazyTensors end =
      loop(limited ? index_number(int_of(call, "limit")) : LazyTensor(), goes_on(carried), state,
           outside, types, [&](const LazyTensors& in) {
             const LazyTensors own = some_of(in, 2 + state.size(), outside.size());
             const LazyTensors next = inlined(*body, both(some_of(in, 3, carried.size()), own));
             const LazyTensor more = reshaped(inlined(*condition, both(next, own))[0], {});
             return both({more, binary("Add", in[2], index_number(1))}, next);
           });
  LazyTensors made = some_of(end, 1, carried.size());
  made.push_back(end[0]);
  if (!limited) return made;
  const LazyTensor holds = unary("Not", goes_on(some_of(end, 1, carried.size())));
  for (LazyTensor& result : made)
    result = checked(result, holds,
                     "a loop makes at most " + std::to_string(int_of(call, "limit")) + " trips");
  return made;
}

}  // namespace

void add_control_flow_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"composit::cond", cond},
                           {"composit::map", map},
                           {"composit::scan", scan},
                           {"composit::while_loop", while_loop}});
}

}  // namespace composit::onnx
