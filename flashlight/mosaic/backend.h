// The backend that is fast: a graph as tiled kernels for this CPU, compiled and called here.
//
//   const Compiled bert = backend().compile(
//       graph, {.name = "bert", .options = {{"threads", 2}}, .may_prepare = true});
//   const Compiled first = bert->prepare(weights), second = bert->prepare(fine_tuned);
//   std::vector<Array> y = first(inputs);
//
// If the caller prepares the code, preparation packs the parameters and buffers that the graph does
// not write. Written ones, and all with the option `freeze` off, are read anew in each call. Calls
// may run at the same time; each uses memory that earlier calls have allocated, where there is
// some. Its options are flashlight::Mosaic (flashlight/backends/mosaic.h).
#pragma once

#include <string>
#include <vector>

#include "composit/op/backend.h"
#include "flashlight/mosaic/plan.h"

namespace flashlight::mosaic {

const composit::Backend& backend();

// What the backend plans by. UserError for an option that it does not have.
PlanOptions plan_options(const composit::CompileOptions& options);

// Plans that somebody may have changed by hand, in one translation unit: starting a compiler costs
// more than a kernel. Their names have to be distinct; `threads` of a call, 0: one per core. All
// code has to be prepared. UserError where values overlap that live at the same time.
std::vector<composit::Compiled> compile(std::vector<Plan> plans, int threads = 0,
                                        const std::vector<std::string>& flags = {});

// The plan of code that this backend made.
const Plan& plan_of(const composit::Code& code);

}  // namespace flashlight::mosaic
