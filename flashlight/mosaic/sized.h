// Code of one program for all of its sizes: a new size is planned, but not compiled, where its
// steps have texts that sizes before it have (step_texts.h).
//
//   const auto bert = sized_code({at_16, at_100, at_250}, {.name = "bert"}, threads, {});
//   const Compiled at_77 = bert->at(graph_at_77);      // no compiler runs
//
// Most plans of a program are made of the same steps. Some have steps of their own: where another
// algorithm pays from some size on, a loop has one round, or threads divide columns because there
// are few rows. Those are compiled when they are first needed; those of the shown graphs, at once.
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
