#include "frontends/torchscript/views.h"

#include "composit/ir/error.h"
#include "composit/ops/functions.h"

namespace flashlight::torchscript {
namespace {

using composit::ArgumentValue;
using composit::Tensor;
using Ints = std::vector<int64_t>;

Ints ints(const ViewStep& step, size_t argument) {
  return composit::to_ints(step.arguments.at(argument).data());
}

std::vector<ArgumentValue> joined(std::vector<ArgumentValue> front, const ViewStep& step) {
  front.insert(front.end(), step.arguments.begin(), step.arguments.end());
  return front;
}

Ints inverse(const Ints& axes, int64_t rank) {
  Ints result(axes.size());
  for (size_t i = 0; i < axes.size(); ++i)
    result[static_cast<size_t>((axes[i] + rank) % rank)] = static_cast<int64_t>(i);
  return result;
}

Tensor index_of(const ViewStep& step) { return composit::reshape(step.arguments[1].tensor(), {1}); }

// Where part `output` of those that `split` makes along an axis begins.
int64_t begin_of(const Tensor& parent, const ViewStep& step) {
  const auto parts = composit::apply(step.op, joined({parent}, step));
  const int64_t axis = step.arguments.back().data().as_int();
  int64_t begin = 0;
  for (size_t i = 0; i < step.output; ++i) begin += parts[i].size(axis);
  return begin;
}

}  // namespace

Tensor shown(const Tensor& parent, const ViewStep& step) {
  if (step.op != kComputedItem)
    return composit::apply(step.op, joined({parent}, step)).at(step.output);
  const int64_t axis = step.arguments[0].data().as_int();
  return composit::squeeze(
      composit::apply_one("aten::index_select", {parent, axis, index_of(step)}), {axis});
}

Tensor with_view_written(const Tensor& parent, const ViewStep& step, const Tensor& view) {
  const std::string& op = step.op;
  const auto is = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (op == name) return true;
    return false;
  };
  if (is({"aten::select.int"}))
    return composit::apply_one("aten::select_scatter", joined({parent, view}, step));
  if (op == kComputedItem)
    return composit::apply_one("aten::index_copy",
                               {parent, step.arguments[0], index_of(step),
                                composit::unsqueeze(view, step.arguments[0].data().as_int())});
  if (is({"aten::slice.Tensor"}))
    return composit::apply_one("aten::slice_scatter", joined({parent, view}, step));
  if (is({"aten::diagonal"}))
    return composit::apply_one("aten::diagonal_scatter", joined({parent, view}, step));
  if (is({"aten::narrow"})) {
    const int64_t begin = step.arguments[1].data().as_int();
    const int64_t end = begin + step.arguments[2].data().as_int();
    return composit::apply_one("aten::slice_scatter",
                               {parent, view, step.arguments[0], begin, end, 1});
  }
  if (is({"aten::unbind.int"}))
    return composit::apply_one("aten::select_scatter", {parent, view, step.arguments[0],
                                                        static_cast<int64_t>(step.output)});
  if (is({"aten::split.Tensor", "aten::split.sizes", "aten::chunk"})) {
    const ArgumentValue& axis = step.arguments.back();
    const int64_t begin = begin_of(parent, step);
    return composit::apply_one("aten::slice_scatter", {parent, view, axis, begin,
                                                       begin + view.size(axis.data().as_int()), 1});
  }
  if (is({"aten::transpose.int", "aten::swapaxes", "aten::swapdims", "aten::t", "aten::numpy_T",
          "aten::mT"}) &&
      (step.arguments.size() == 2 || parent.rank() == 2))
    return composit::apply_one(op, joined({view}, step));
  if (is({"aten::permute"})) return composit::permute(view, inverse(ints(step, 0), parent.rank()));
  if (is({"aten::view", "aten::reshape", "aten::view_as", "aten::unsqueeze", "aten::squeeze",
          "aten::squeeze.dim", "aten::squeeze.dims", "aten::flatten.using_ints",
          "aten::unflatten.int"}))
    return composit::reshape(view, parent.sizes());
  if (is({"aten::alias", "aten::detach"})) return view;
  throw composit::UserError("writing through a view that " + op +
                            " gives is not supported; write to a tensor of its own, as clone() "
                            "makes");
}

}  // namespace flashlight::torchscript
