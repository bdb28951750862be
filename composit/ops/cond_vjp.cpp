// The derivative of a branch: a branch of the derivatives.
#include <utility>

#include "composit/ops/control_flow_vjp.h"
#include "composit/ops/dependences.h"
#include "composit/ops/functions.h"
#include "composit/ops/scatters.h"
#include "composit/ops/tracing.h"

namespace composit {
namespace {

// Operands that a result with a cotangent depends on, in either branch.
Flags reached_operands(const Vjp& v, const Graph& then_body, const Graph& else_body) {
  Flags reached(then_body.inputs().size());
  for (const Graph* body : {&then_body, &else_body}) {
    const std::vector<Flags> depends = dependences(*body);
    for (size_t i = 0; i < depends.size(); ++i)
      if (v.cotangents[i].defined()) unite(reached, depends[i]);
  }
  return reached;
}

// The gradients of the operands that are flagged, from blocks for all operands and for each
// cotangent that is there.
LazyTensors back_through_branch(const Vjp& v, const Graph& body, const Flags& flagged,
                                const LazyTensors& blocks) {
  const auto middle = blocks.begin() + static_cast<int64_t>(flagged.size());
  LazyTensors flows, inputs;
  auto flow = middle;
  for (const LazyTensor& cotangent : v.cotangents)
    flows.push_back(cotangent.defined() ? *flow++ : LazyTensor());
  for (size_t i = 0; i < flagged.size(); ++i)
    if (flagged[i]) inputs.push_back(blocks[i]);
  LazyTensors gradients = v.back(call_region(body, {blocks.begin(), middle}), inputs, flows);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!gradients[i].defined()) gradients[i] = zeros_like(inputs[i]);
  return gradients;
}

// How the gradients of operands leave the branches: each whole, or as what either branch puts into
// zeros, beside zeros for what the other one does. So a loop around them sees that it is little.
class BranchFlows {
 public:
  explicit BranchFlows(std::vector<Traced>& branches) {
    for (size_t i = 0; i < branches[0].outputs().size(); ++i) add(branches, i);
    for (size_t k = 0; k < branches.size(); ++k) branches[k].give(outputs_[k]);
  }
  // Of the results of the node, which come in the same order.
  LazyTensor gathered(size_t flow, LazyTensors::const_iterator& result) const {
    const auto& [type, places] = flows_[flow];
    if (places.empty()) return *result++;
    std::vector<Updates> all;
    for (const Places& fixed : places) all.push_back(take_updates(type, fixed, result));
    return put_together(type, all);
  }

 private:
  void add(const std::vector<Traced>& branches, size_t i) {
    const LazyTensor& first = branches[0].outputs()[i];
    std::vector<Places> places;
    std::vector<LazyTensors> outputs(branches.size());
    for (size_t k = 0; k < branches.size(); ++k) {
      const auto scatters = scatters_of(branches[k].outputs()[i]);
      if (!scatters) return add_whole(branches, i);
      for (const Scatter& scatter : *scatters) {
        places.push_back(fixed_places(scatter));
        for (const LazyTensor& update : updates_of(scatter))
          for (size_t other = 0; other < branches.size(); ++other)
            outputs[other].push_back(other == k ? update : zeros_like(update));
      }
    }
    if (places.empty()) return add_whole(branches, i);
    for (size_t k = 0; k < branches.size(); ++k)
      outputs_[k].insert(outputs_[k].end(), outputs[k].begin(), outputs[k].end());
    flows_.push_back({first.type(), std::move(places)});
  }
  void add_whole(const std::vector<Traced>& branches, size_t i) {
    for (size_t k = 0; k < branches.size(); ++k) outputs_[k].push_back(branches[k].outputs()[i]);
    flows_.push_back({branches[0].outputs()[i].type(), {}});
  }

  struct Flow {
    Type type;
    std::vector<Places> places;  // of each scatter; none: it is whole
  };
  std::vector<Flow> flows_;
  std::vector<LazyTensors> outputs_ = std::vector<LazyTensors>(2);  // per branch
};

}  // namespace

Gradients cond_vjp(const Vjp& v, const LazyTensor& predicate, const LazyTensors& operands,
                   const Graph& then_body, const Graph& else_body) {
  Flags flagged = reached_operands(v, then_body, else_body);
  for (size_t i = 0; i < flagged.size(); ++i) flagged[i] = flagged[i] && v.wanted[1 + i];
  LazyTensors all = operands;
  for (const LazyTensor& cotangent : v.cotangents)
    if (cotangent.defined()) all.push_back(cotangent);
  std::vector<Type> types;
  for (const LazyTensor& tensor : all) types.push_back(tensor.type());
  const auto branch = [&](const Graph& body) {
    return Traced(types, [&](const LazyTensors& blocks) {
      return back_through_branch(v, body, flagged, blocks);
    });
  };
  std::vector<Traced> branches = {branch(then_body), branch(else_body)};
  const BranchFlows flows(branches);
  Flags either = branches[0].used();
  unite(either, branches[1].used());
  std::vector<size_t> order;
  LazyTensors used;
  for (size_t i = 0; i < all.size(); ++i)
    if (either[i]) {
      order.push_back(i);
      used.push_back(all[i]);
    }
  const Closed closed = close(branches, order);
  used.insert(used.end(), closed.outside.begin(), closed.outside.end());
  const LazyTensors results =
      apply("composit::cond",
            {predicate, used, Attribute(closed.regions[0]), Attribute(closed.regions[1])});
  Gradients gradients(1 + operands.size());
  auto result = results.begin();
  for (size_t i = 0, flow = 0; i < operands.size(); ++i)
    if (flagged[i]) gradients[1 + i] = flows.gathered(flow++, result);
  return gradients;
}

}  // namespace composit
