#include "frontends/torchscript/views.h"

#include "composit/ir/error.h"
#include "composit/ops/functions.h"
#include "composit/ops/views.h"

namespace flashlight::torchscript {
namespace {

using composit::ArgumentValue;
using composit::LazyTensor;
using Ints = std::vector<int64_t>;

std::vector<ArgumentValue> joined(std::vector<ArgumentValue> front, const ViewStep& step) {
  front.insert(front.end(), step.arguments.begin(), step.arguments.end());
  return front;
}

LazyTensor index_of(const ViewStep& step) {
  return composit::reshape(step.arguments[1].tensor(), {1});
}

}  // namespace

LazyTensor shown(const LazyTensor& parent, const ViewStep& step) {
  if (step.op != kComputedItem)
    return composit::apply(step.op, joined({parent}, step)).at(step.output);
  const int64_t axis = step.arguments[0].data().as_int();
  return composit::squeeze(
      composit::apply_one("aten::index_select", {parent, axis, index_of(step)}), {axis});
}

LazyTensor with_view_written(const LazyTensor& parent, const ViewStep& step,
                             const LazyTensor& view) {
  if (step.op == kComputedItem)
    return composit::apply_one("aten::index_copy",
                               {parent, step.arguments[0], index_of(step),
                                composit::unsqueeze(view, step.arguments[0].data().as_int())});
  const auto numbers = [&](size_t i) {
    const composit::Attribute& argument = step.arguments.at(i).data();
    return argument.kind() == composit::AttributeKind::dim ? Ints{argument.as_int()}
                                                           : composit::to_ints(argument);
  };
  const Ints sizes = parent.sizes();
  if (const auto inverse = composit::inverse_of({step.op, sizes, step.output, numbers})) {
    if (inverse->op.empty()) return view;
    std::vector<ArgumentValue> arguments;
    if (inverse->takes_parent) arguments.emplace_back(parent);
    arguments.emplace_back(view);
    if (inverse->same_arguments) arguments = joined(std::move(arguments), step);
    for (const auto& argument : inverse->arguments)
      std::visit([&](const auto& value) { arguments.emplace_back(value); }, argument);
    return composit::apply_one(inverse->op, arguments);
  }
  throw composit::UserError("writing through a view that " + step.op +
                            " gives is not supported; write to a tensor of its own, as clone() "
                            "makes");
}

}  // namespace flashlight::torchscript
