// What rows ask of values, as guards of a lowered graph.
//
// A row marks a result by a node `checked(result, holds)` of the target's domain, whose attribute
// `what` says what is asked. Here the marks are taken out: questions of one text become one guard.
#pragma once

#include <string>
#include <string_view>

#include "composit/interchange/lower.h"

namespace composit::interchange {

// x, for which `holds`, a bool, has to be true.
LazyTensor checked(std::string_view domain, const LazyTensor& x, const LazyTensor& holds,
                   const std::string& what);

// `both`: the target's conjunction, an operator of its domain by this name. What is known to hold
// is not asked. Within branches and loops nobody can ask: UserError there, unless `drops`, which
// leaves questions out.
void guard_checks(Lowered& lowered, std::string_view domain, std::string_view both,
                  bool drops = false);

}  // namespace composit::interchange
