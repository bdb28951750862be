#include "composit/interchange/onnx_read/control_flow.h"

#include <algorithm>
#include <iterator>

#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/native.h"

namespace composit::onnx_read {
namespace {

constexpr int64_t kFewTrips = 64;  // of a loop that is written out

class ControlFlow {
 public:
  ControlFlow(Known& known, const Inlined& inlined) : known_(known), inlined_(inlined) {}

  static const GraphProto& graph_of(const OperatorCall& call, std::string_view name) {
    for (const AttributeProto& attribute : call.node().attributes)
      if (attribute.name == name && attribute.g != nullptr) return *attribute.g;
    throw UserError("it has no graph '" + std::string(name) + "'");
  }

  static void expect_bool(const LazyTensor& condition) {
    if (condition.dtype() != DType::bool_ || condition.numel() != 1)
      throw UserError("expected one bool as the condition");
  }

  // The value of a condition, where it is known; absent ones hold.
  std::optional<bool> known_bool(const LazyTensor& condition) {
    if (!condition) return true;
    expect_bool(condition);
    const auto value = known_.find(condition);
    return value ? std::optional(elements<int64_t>(*value).at(0) != 0) : std::nullopt;
  }

  // One of its graphs where the condition is known, both of them where it is not.
  LazyTensors branch(const OperatorCall& call) {
    const GraphProto &yes = graph_of(call, "then_branch"), &no = graph_of(call, "else_branch");
    const LazyTensor& condition = call.operand(0);
    if (const auto known = known_bool(condition)) return inlined_(*known ? yes : no, {});
    return cond(
        reshape(condition, {}), [&](const LazyTensors&) { return inlined_(yes, {}); },
        [&](const LazyTensors&) { return inlined_(no, {}); });
  }

  // Trips that are known are written one after the other, if they are few.
  LazyTensors loop(const OperatorCall& call) {
    const GraphProto& body = graph_of(call, "body");
    LazyTensors carried(call.operands().begin() + std::min<ptrdiff_t>(2, ssize(call.operands())),
                        call.operands().end());
    if (body.outputs.size() < carried.size() + 1 || body.inputs.size() != carried.size() + 2)
      call.refuse("its body has other inputs and outputs than it is called with");
    std::optional<int64_t> trips;
    if (call.optional(0)) trips = call.known_int(0);
    const std::optional<bool> starts = known_bool(call.optional(1));
    if (starts == false) trips = 0;
    if (starts && trips && *trips <= kFewTrips)
      if (auto results = unrolled(body, carried, *trips)) return *results;
    return rolled(call, body, carried, trips);
  }

  static LazyTensor trip_number(int64_t number) {
    return constant(array_of(tensor_type(DType::int64, {}), std::vector<int64_t>{number}));
  }

  // Nothing where a condition inside depends on inputs.
  std::optional<LazyTensors> unrolled(const GraphProto& body, LazyTensors carried, int64_t trips) {
    const size_t count = carried.size();
    std::vector<LazyTensors> slots(body.outputs.size() - count - 1);
    const LazyTensor yes =
        constant(array_of(tensor_type(DType::bool_, {}), std::vector<int64_t>{1}));
    for (int64_t trip = 0; trip < trips; ++trip) {
      LazyTensors arguments = {trip_number(trip), yes};
      arguments.insert(arguments.end(), carried.begin(), carried.end());
      LazyTensors results = inlined_(body, arguments);
      const std::optional<bool> goes_on = known_bool(results[0]);
      if (!goes_on) return std::nullopt;
      for (size_t i = 0; i < slots.size(); ++i)
        slots[i].push_back(unsqueeze(results[count + 1 + i], 0));
      carried.assign(results.begin() + 1, results.begin() + 1 + static_cast<ptrdiff_t>(count));
      if (!*goes_on) break;
    }
    for (const LazyTensors& parts : slots) {
      if (parts.empty()) throw UserError("a loop without trips gives outputs of each");
      carried.push_back(cat(parts, 0));
    }
    return carried;
  }

  // As composit's loops: one of a known number of trips, else one that looks at its condition.
  LazyTensors rolled(const OperatorCall& call, const GraphProto& body, const LazyTensors& carried,
                     std::optional<int64_t> trips) {
    const size_t count = carried.size();
    if (body.outputs.size() != count + 1)
      call.refuse(
          "it gives outputs of each trip, and how many trips there are is not known, or more "
          "than " +
          std::to_string(kFewTrips));
    LazyTensors init = {trip_number(0), call.optional(1)};
    if (!init[1])
      init[1] = constant(array_of(tensor_type(DType::bool_, {}), std::vector<int64_t>{1}));
    init[1] = reshape(init[1], {});
    init.insert(init.end(), carried.begin(), carried.end());
    LazyTensors results = while_loop(
        [&](const LazyTensors& values) {
          return trips ? logical_and(values[1], values[0] < Number(*trips)) : values[1];
        },
        [&](const LazyTensors& values) {
          LazyTensors next = inlined_(body, values);
          next[0] = reshape(next[0], {});
          next.insert(next.begin(), values[0] + Number(1));
          return next;
        },
        init, {.limit = trips});
    return {results.begin() + 2, results.begin() + 2 + static_cast<ptrdiff_t>(count)};
  }

  LazyTensors scan_row(const OperatorCall& call) {
    if (call.version() < 9) call.refuse("version 8, which had a batch, is not read");
    const GraphProto& body = graph_of(call, "body");
    const auto sequences = static_cast<size_t>(call.integer("num_scan_inputs"));
    if (sequences > call.size() || sequences < 1 || body.inputs.size() != call.size())
      call.refuse("its body has other inputs than it is called with");
    const size_t count = call.size() - sequences;
    if (body.outputs.size() < count) call.refuse("its body gives too few outputs");
    const auto list = [&](std::string_view name, size_t size) {
      const Ints values = call.has(name) ? call.ints(name) : Ints(size, 0);
      if (values.size() != size) call.refuse(std::string(name) + ": expected a number each");
      return values;
    };
    const Ints axes = list("scan_input_axes", sequences);
    const Ints backwards = list("scan_input_directions", sequences);
    LazyTensors init, slots;
    for (size_t i = 0; i < call.size(); ++i) {
      LazyTensor x = call.operand(i);
      if (i < count) {
        init.push_back(x);
        continue;
      }
      x = apply_one("aten::movedim.int", {x, axis_of_rank(axes[i - count], x.rank()), int64_t{0}});
      slots.push_back(backwards[i - count] != 0 ? flip(x, {0}) : x);
    }
    const ScanStep made = scan(
        [&](const LazyTensors& carried, const LazyTensors& items) {
          LazyTensors arguments = carried;
          arguments.insert(arguments.end(), items.begin(), items.end());
          const LazyTensors results = inlined_(body, arguments);
          const auto middle = results.begin() + static_cast<ptrdiff_t>(count);
          return ScanStep{.carried = {results.begin(), middle}, .outputs = {middle, results.end()}};
        },
        init, slots);
    LazyTensors results = made.carried;
    const Ints out_axes = list("scan_output_axes", made.outputs.size());
    const Ints out_backwards = list("scan_output_directions", made.outputs.size());
    for (size_t i = 0; i < made.outputs.size(); ++i) {
      LazyTensor y = made.outputs[i];
      if (out_backwards[i] != 0) y = flip(y, {0});
      const int64_t axis = axis_of_rank(out_axes[i], y.rank());
      results.push_back(axis == 0 ? y : apply_one("aten::movedim.int", {y, int64_t{0}, axis}));
    }
    return results;
  }

 private:
  Known& known_;
  const Inlined& inlined_;
};

}  // namespace

bool is_control_flow(const NodeProto& node) {
  const std::string_view op = node.op_type;
  return node.domain.empty() && (op == "If" || op == "Loop" || op == "Scan");
}

LazyTensors control_flow(const OperatorCall& call, Known& known, const Inlined& inlined) {
  ControlFlow flow(known, inlined);
  if (call.node().op_type == "If") return flow.branch(call);
  return call.node().op_type == "Loop" ? flow.loop(call) : flow.scan_row(call);
}

}  // namespace composit::onnx_read
