// The form of a plan without its sizes: which operations are fused, what is computed beforehand, in
// which order values lie in memory.
//
//   const PlanForm form = form_of({at_16_tokens, at_24_tokens}, {}, {"tokens"});
//   const Plan plan = plan_of(bind_sizes(form, {{"tokens", 20}}));
//
// A form is a program in terms of memory (layout.h) and what was decided on the way to it. One that
// was made at two sizes or more has names for these (loops/sizes.h), and `bind_sizes` puts numbers
// in. `plan_of` decides what depends on them: which algorithm computes a product, what threads
// divide, where values lie.
//
// Binding decides nothing again. A plan that is made anew for the other sizes may fuse or lay out
// differently; it computes the same. A value is sometimes kept in memory because it would be
// computed several times; how often depends on sizes, so a bound plan says "several".
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/op/ports.h"
#include "flashlight/loops/program.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/mosaic/choices.h"
#include "flashlight/mosaic/ids.h"
#include "flashlight/mosaic/layout.h"
#include "flashlight/mosaic/plan.h"

namespace flashlight::mosaic {

struct PlanForm {
  PlanOptions options;
  composit::Ports ports;
  std::set<std::string> changing;  // inputs that a call writes
  loops::Program program;          // in terms of memory, with named sizes where there are several
  std::map<ValueId, Layout> layouts;
  ValueIds across, row_major_across;  // tilize.h
  std::map<ValueId, Choice> choices;
  std::map<ValueId, ValueId> updates;  // of Plan, all that are to be
  std::set<ValueId> sized;             // of several graphs: values that sizes decide
};

// At the sizes of the graph. Errors are those of plan_of(graph, options).
PlanForm form_of(const composit::Graph& graph, const PlanOptions& options = {});

// The form that two or more graphs share, which are the same program at different sizes. `sizes`:
// names of those that a call gives, as UnifyOptions has them. UserError that says where the plans
// differ in form, or which number cannot be derived from the sizes, or in several ways
// (loops/unify.h).
PlanForm form_of(const std::vector<composit::Graph>& graphs, const PlanOptions& options = {},
                 const std::vector<std::string>& sizes = {});

// The same of forms that are each of one graph.
PlanForm form_of(const std::vector<PlanForm>& forms, const std::vector<std::string>& sizes = {});

// UserError that names the size and its number where one is missing, unknown, or was not shown, and
// where it gives no integer for what follows from it (loops/sizes.h).
PlanForm bind_sizes(PlanForm form, const loops::SizeNumbers& sizes);

// UserError where a size is open, and where a choice cannot be.
Plan plan_of(PlanForm form);

}  // namespace flashlight::mosaic
