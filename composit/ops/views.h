// Views that can be undone: how a write through `x.select(0, 1)` becomes a new value of `x`.
//
//   inverse_of({"aten::unbind.int", {3, 4}, 2, argument});   // aten::select_scatter(x, view, 0, 2)
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "composit/op/nest.h"

namespace composit {

// Result `output` of an operator that shows a tensor of sizes `parent`, its first argument.
// `argument(i)`: the number or the numbers that argument i after the tensor is.
struct ViewCall {
  std::string_view op;
  std::span<const int64_t> parent;
  size_t output;
  std::function<Ints(size_t)> argument;
};

// The operator that gives the tensor its new value, from the view's new value and, where the view
// shows only a part, from the tensor's old one, which comes first.
struct ViewInverse {
  std::string_view op;          // empty: the view's new value itself
  bool takes_parent = false;    // the tensor's old value
  bool same_arguments = false;  // what follows the tensors is what follows it in the view's call
  std::vector<std::variant<int64_t, Ints>> arguments = {};  // or this
};

// Nothing where there is none, as for `expand`.
std::optional<ViewInverse> inverse_of(const ViewCall& view);

}  // namespace composit
