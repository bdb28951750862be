// The plans of one program at many sizes, and the code of their steps.
//
//   SizedPlans plans({at_16, at_100, at_250}, {.name = "bert"}, {});
//   const auto at_77 = plans.at(graph_at_77);      // no compiler runs
//   at_77->steps.run[0].enter;
//
// Several threads may ask. sized.h makes code of it for this process, sized_offline.h a folder.
#pragma once

#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "composit/ir/graph.h"
#include "flashlight/mosaic/open_steps.h"
#include "flashlight/mosaic/plan.h"
#include "flashlight/mosaic/plan_form.h"
#include "flashlight/mosaic/step_texts.h"

namespace flashlight::mosaic {

struct SizedPlan {
  Plan plan;
  OpenProgram program;
  ReadySteps steps;
};

class SizedPlans {
 public:
  // Compiles what the shown graphs run. UserError as of plan_of.
  SizedPlans(const std::vector<composit::Graph>& shown, PlanOptions options,
             std::vector<std::string> flags);

  // The plan at the sizes of `graph`; the compiler runs where a step has no code. Nothing where
  // there is a fault. UserError as of plan_of, and for buffers that are too large.
  std::optional<SizedPlan> at(const composit::Graph& graph);
  // The same where no compiler has to run, or does; nothing elsewhere.
  std::optional<SizedPlan> at_once(const composit::Graph& graph);
  // What the compiler refuses, so that sizes are no data: numbers of a type that data does not
  // have. Empty: nothing.
  std::string fault() const;
  // How often a compiler ran.
  size_t compilations() const;

 private:
  // A plan as steps.
  struct Written {
    Plan plan;
    OpenProgram program;
  };
  void make_forms(const std::vector<composit::Graph>& shown);
  Written written_at(const composit::Graph& graph) const;
  std::optional<Plan> bound_plan(const composit::Graph& graph) const;
  void look_near(const composit::Graph& graph, const OpenProgram& program);
  void compile(const std::vector<const OpenProgram*>& programs);
  std::optional<ReadySteps> found(const OpenProgram& program) const;

  const PlanOptions options_;
  std::vector<PlanForm> forms_;  // each for a part of the sizes
  // Of what follows: while the compiler runs nobody reads it.
  mutable std::shared_mutex mutex_;
  StepTexts texts_;
  std::string fault_;
};

}  // namespace flashlight::mosaic
