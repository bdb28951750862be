// Views of a tensor: their values, and the tensor's value after a write through a view.
//
//   LazyTensor row = shown(x, {"aten::select.int", {0, 2}});                    // x[2]
//   LazyTensor x1 = with_view_written(x, {"aten::select.int", {0, 2}}, row);  // another x[2]
#pragma once

#include "frontends/torchscript/state.h"

namespace flashlight::torchscript {

// The item at an index that is computed: a step whose arguments are the axis and the index, one
// int64 of 0 or more.
inline constexpr const char* kComputedItem = "torchscript::item";

composit::LazyTensor shown(const composit::LazyTensor& parent, const ViewStep& step);
// `parent` with `view` in the place of what the step shows of it. UserError for a step that cannot
// be undone (`expand`).
composit::LazyTensor with_view_written(const composit::LazyTensor& parent, const ViewStep& step,
                                       const composit::LazyTensor& view);

}  // namespace flashlight::torchscript
