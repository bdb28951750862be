#include "tracer/control_flow.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include "composit/ir/error.h"
#include "tracer/convert.h"
#include "tracer/geometry.h"

namespace flashlight::tracer {

using composit::Node;
using composit::Symbol;
using composit::UserError;

namespace {

const Symbol kCond("composit::cond"), kWhile("composit::while_loop"), kScan("composit::scan"),
    kMap("composit::map");

using Tensors = std::vector<at::Tensor>;

// The operands of argument `index`.
Tensors argument_of(const Node& node, size_t index, const Tensors& operands) {
  const composit::Argument& argument = node.arguments().at(index);
  const auto begin = operands.begin() + argument.begin;
  return {begin, begin + argument.size};
}

void append(Tensors& tensors, const Tensors& more) {
  tensors.insert(tensors.end(), more.begin(), more.end());
}

// What a loop gives from each trip, stacked.
class Stacks {
 public:
  Stacks(const Node& node, size_t first, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const composit::Type& type = node.outputs().at(first + i);
      stacks_.push_back(at::zeros(type.sizes, to_c10(type.dtype)));
    }
  }
  void set(int64_t slot, const Tensors& values, size_t first) {
    for (size_t i = 0; i < stacks_.size(); ++i)
      stacks_[i].select(0, slot).copy_(values.at(first + i));
  }
  const Tensors& all() const { return stacks_; }

 private:
  Tensors stacks_;
};

}  // namespace

bool ControlFlow::is(const Node& node) {
  const Symbol op = node.op();
  return op == kCond || op == kWhile || op == kScan || op == kMap;
}

ControlFlow::ControlFlow(const Node& node, const PlanOptions& options) {
  PlanOptions inner = options;
  inner.numbers.clear();
  inner.region = true;
  composit::for_each_region(
      node, [&](const composit::Region& region) { regions_.emplace_back(*region, inner); });
}

std::vector<at::Tensor> ControlFlow::run(const Node& node, const Tensors& operands) const {
  if (node.op() == kCond) return cond(operands);
  return node.op() == kWhile ? loop(node, operands) : scan(node, operands);
}

Tensors ControlFlow::cond(const Tensors& operands) const {
  const bool answer = operands.at(0).item<bool>();
  return regions_.at(answer ? 0 : 1).run({operands.begin() + 1, operands.end()});
}

Tensors ControlFlow::loop(const Node& node, const Tensors& operands) const {
  Tensors carried = argument_of(node, 0, operands);
  const Tensors outside = argument_of(node, 1, operands);
  const size_t count = carried.size();
  const composit::Attribute& limit = node.attribute("limit");
  const int64_t* most = limit.get_if<int64_t>();
  Stacks stacks(node, count, node.outputs().size() - count - 1);
  int64_t trips = 0;
  for (;; ++trips) {
    append(carried, outside);
    if (!regions_.at(0).run(carried).at(0).item<bool>()) break;
    if (most != nullptr && trips >= *most)
      throw UserError("[replay] " + place_of(node) + " goes on after " + std::to_string(*most) +
                      " trips, its limit");
    const Tensors step = regions_.at(1).run(carried);
    stacks.set(trips, step, count);
    carried.assign(step.begin(), step.begin() + static_cast<std::ptrdiff_t>(count));
  }
  carried.resize(count);
  append(carried, stacks.all());
  carried.push_back(at::scalar_tensor(trips, c10::kLong));
  return carried;
}

// A map is a scan that carries nothing.
Tensors ControlFlow::scan(const Node& node, const Tensors& operands) const {
  const bool is_map = node.op() == kMap;
  const size_t sequences_at = is_map ? 0 : 1;
  Tensors carried = is_map ? Tensors() : argument_of(node, 0, operands);
  const Tensors sequences = argument_of(node, sequences_at, operands);
  const Tensors outside = argument_of(node, sequences_at + 1, operands);
  const int64_t length = node.attribute("length").as_int();
  const bool reverse = !is_map && node.attribute("reverse").as<bool>();
  int64_t trips = length;
  if (!is_map && node.arguments().at(3).size == 1)
    trips = argument_of(node, 3, operands).at(0).item<int64_t>();
  if (trips < 0 || trips > length)
    throw UserError("[replay] " + place_of(node) + ": expected from 0 to " +
                    std::to_string(length) + " trips, received " + std::to_string(trips));
  const size_t count = carried.size();
  Stacks stacks(node, count, node.outputs().size() - count);
  for (int64_t trip = 0; trip < trips; ++trip) {
    const int64_t slot = reverse ? trips - 1 - trip : trip;
    for (const at::Tensor& sequence : sequences) carried.push_back(sequence.select(0, slot));
    append(carried, outside);
    const Tensors step = regions_.at(0).run(carried);
    stacks.set(slot, step, count);
    carried.assign(step.begin(), step.begin() + static_cast<std::ptrdiff_t>(count));
  }
  append(carried, stacks.all());
  return carried;
}

}  // namespace flashlight::tracer
