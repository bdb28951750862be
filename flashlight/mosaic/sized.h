// Code of one program for all of its sizes: a new size is planned, but not compiled, where it needs
// no other text than a size before it (sized_source.h).
//
//   const auto bert = sized_code({at_16, at_100, at_250}, {.name = "bert"}, threads, {});
//   const Compiled at_77 = bert->at(graph_at_77);      // no compiler runs
//
// Most plans of a program share a text. Others have one of their own: where an algorithm pays from
// some size on, a loop has one round, or threads divide columns because there are few rows. Texts
// are compiled when they are first needed; those of the shown graphs, at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "composit/op/backend.h"
#include "flashlight/mosaic/plan.h"

namespace flashlight::mosaic {

// UserError as of plan_of, and what the compiler reports.
std::shared_ptr<composit::SizedCode> sized_code(const std::vector<composit::Graph>& shown,
                                                const PlanOptions& options, int threads,
                                                const std::vector<std::string>& flags);

}  // namespace flashlight::mosaic
