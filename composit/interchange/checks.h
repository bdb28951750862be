// What rows ask of values, as guards of a lowered graph.
//
// A row marks a result by a node `interchange::checked(result, holds)`, whose attribute `what` says
// what is asked. Here the marks are taken out: questions of one text become one guard.
#pragma once

#include <string>
#include <string_view>

#include "composit/interchange/lower.h"

namespace composit::interchange {

// x, for which `holds`, a bool, has to be true.
LazyTensor checked(const LazyTensor& x, const LazyTensor& holds, const std::string& what);
// True for the node of such a mark.
bool is_check(const Node& node);

// What rows ask whose results are as long as values say.
inline constexpr char kAsMany[] = "as many elements are chosen as were";

// `both`: the target's conjunction, "onnx::And". What is known to hold is not asked. Within
// branches and loops nobody can ask: UserError there, unless `drops`, which leaves questions out.
void guard_checks(Lowered& lowered, std::string_view both, bool drops = false);

}  // namespace composit::interchange
