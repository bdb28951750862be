#include "composit/ops/control_flow.h"

#include "composit/ir/print.h"
#include "composit/ops/functions.h"
#include "composit/ops/operations.h"
#include "composit/ops/tracing.h"

namespace composit {
namespace {

LazyTensors joined(LazyTensors front, const LazyTensors& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

std::vector<Type> slots_of(const LazyTensors& sequences) {
  std::vector<Type> slots = tensor_types(sequences);
  for (Type& slot : slots) {
    if (slot.sizes.empty())
      throw UserError("expected sequences, with a first axis of slots, received " + print(slot));
    slot = tensor_type(slot.dtype, {slot.sizes.begin() + 1, slot.sizes.end()});
  }
  return slots;
}

// Says of an error in what a user gave to which function they gave it.
template <class Work>
auto within_function(const char* name, Work work) {
  return in_operation(operation_named(name).schema, work);
}

}  // namespace

LazyTensors cond(const LazyTensor& predicate, const TensorFunction& then_branch,
                 const TensorFunction& else_branch, const LazyTensors& operands) {
  const char* name = "composit::cond";
  return within_function(name, [&] {
    const auto types = tensor_types(operands);
    const Closed closed = close({Traced(types, then_branch), Traced(types, else_branch)});
    return apply(name, {predicate, joined(operands, closed.outside), Attribute(closed.regions[0]),
                        Attribute(closed.regions[1])});
  });
}

LazyTensors while_loop(const std::function<LazyTensor(const LazyTensors&)>& condition,
                       const TensorFunction& body, const LazyTensors& init,
                       const WhileOptions& options) {
  const char* name = "composit::while_loop";
  return within_function(name, [&] {
    const auto types = tensor_types(init);
    const TensorFunction truth = [&](const LazyTensors& carried) {
      return LazyTensors{condition(carried)};
    };
    const Closed closed = close({Traced(types, truth), Traced(types, body)});
    const ArgumentValue limit = options.limit ? ArgumentValue(*options.limit) : ArgumentValue();
    LazyTensors results = apply(name, {init, closed.outside, Attribute(closed.regions[0]),
                                       Attribute(closed.regions[1]), limit});
    results.resize(init.size());
    return results;
  });
}

ScanStep scan(const ScanBody& body, const LazyTensors& init, const LazyTensors& sequences,
              const ScanOptions& options) {
  const char* name = "composit::scan";
  return within_function(name, [&]() -> ScanStep {
    const auto slots = slots_of(sequences);
    if (sequences.empty() && !options.length)
      throw UserError("expected sequences or a length, received none");
    const int64_t length = options.length ? *options.length : sequences[0].size(0);
    auto types = tensor_types(init);
    const auto middle = static_cast<int64_t>(init.size());
    types.insert(types.end(), slots.begin(), slots.end());
    const Traced trip(types, [&](const LazyTensors& blocks) {
      const ScanStep step =
          body({blocks.begin(), blocks.begin() + middle}, {blocks.begin() + middle, blocks.end()});
      if (step.carried.size() != init.size())
        throw UserError("expected " + std::to_string(init.size()) +
                        " carried values of the body, received " +
                        std::to_string(step.carried.size()));
      return joined(step.carried, step.outputs);
    });
    const Closed closed = close({trip});
    const LazyTensors results =
        apply(name, {init, sequences, closed.outside, LazyTensor(), Attribute(closed.regions[0]),
                     length, options.reverse});
    if (length == 0) {
      LazyTensors none;
      for (auto one = results.begin() + middle; one != results.end(); ++one)
        none.push_back(zeros(one->sizes(), one->dtype()));
      return {init, none};
    }
    return {{results.begin(), results.begin() + middle}, {results.begin() + middle, results.end()}};
  });
}

LazyTensors map(const TensorFunction& f, const LazyTensors& sequences) {
  const char* name = "composit::map";
  return within_function(name, [&] {
    const auto slots = slots_of(sequences);
    if (sequences.empty()) throw UserError("expected sequences, received none");
    const Closed closed = close({Traced(slots, f)});
    return apply(name,
                 {sequences, closed.outside, Attribute(closed.regions[0]), sequences[0].size(0)});
  });
}

}  // namespace composit
