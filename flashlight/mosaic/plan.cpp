#include "flashlight/mosaic/plan.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "composit/ir/error.h"
#include "composit/ir/side_by_side.h"
#include "flashlight/mosaic/buffers.h"
#include "flashlight/mosaic/describe.h"
#include "flashlight/mosaic/early_checks.h"
#include "flashlight/mosaic/equal_steps.h"
#include "flashlight/mosaic/frozen.h"
#include "flashlight/mosaic/kernels/attention.h"
#include "flashlight/mosaic/kernels/border.h"
#include "flashlight/mosaic/kernels/loops.h"
#include "flashlight/mosaic/kernels/products.h"
#include "flashlight/mosaic/plan_form.h"
#include "flashlight/mosaic/rounded_values.h"

namespace flashlight::mosaic {
namespace {

using loops::Role;
using loops::Routine;
using loops::Step;

class Planner {
 public:
  explicit Planner(const PlanOptions& options) : options_(options) {}

  // The form has decided most; the rest follows from the options.
  Plan run(PlanForm& form) {
    take(form);
    loops::Program program = std::move(form.program);
    plan_.routine = std::move(program.functions.back());
    program.functions.pop_back();
    plan_.functions = with_arguments(std::move(program.functions));
    for (const Routine& function : plan_.functions)
      plan_.schedules.push_back(
          loops::scheduled_routine(function, plan_.functions, plan_.schedules));
    plan_.frozen = frozen_values(plan_.routine, form.changing, options_.freeze, form.sized);
    plan_.relayouts = relayouts(form.across);
    plan_.row_major_relayouts = relayouts(form.row_major_across);
    make_kernels(
        [this](ValueId value) { return value < plan_.frozen.size() && plan_.frozen[value]; });
    plan_buffers(plan_);
    check_applied();
    return std::move(plan_);
  }

 private:
  void take(PlanForm& form) {
    plan_.name = options_.name;
    plan_.ports = std::move(form.ports);
    plan_.layouts = std::move(form.layouts);
    plan_.choices = std::move(form.choices);
    plan_.updates = std::move(form.updates);
  }
  // Bytes of what these values are, without what lies around them in memory.
  Relayouts relayouts(const ValueIds& across) const {
    Relayouts sum;
    for (const ValueId value : across) {
      const composit::Type& type = plan_.routine.values[value].type;
      const auto layout = plan_.layouts.find(value);
      ++sum.count;
      sum.bytes += layout == plan_.layouts.end()
                       ? type.nbytes()
                       : layout->second.tiling.element_count() *
                             static_cast<int64_t>(composit::item_size(type.dtype));
    }
    return sum;
  }
  bool is_prepared(const Step& step) const {
    const ValueIds written = loops::writes(step);
    return !written.empty() && std::all_of(written.begin(), written.end(),
                                           [&](ValueId value) { return plan_.frozen[value]; });
  }
  static Table<loops::FunctionId, Routine> with_arguments(
      Table<loops::FunctionId, Routine> functions) {
    for (Routine& function : functions)
      for (const ValueId input : function.inputs) function.values[input].role = Role::argument;
    return functions;
  }

  // ---- choices ----------------------------------------------------------------------------------

  // True if `wanted` holds for the choice of a value that `step` writes.
  template <class Wanted>
  bool is_chosen(StepId step, const Wanted& wanted) const {
    const ValueIds written = loops::writes(plan_.routine.steps[step]);
    return std::any_of(written.begin(), written.end(),
                       [&](ValueId value) { return wanted(choice_of(plan_, value)); });
  }

  // A choice about a kernel is about one of the right form.
  void check_applied() const {
    for (const auto& [value, choice] : plan_.choices) {
      const auto is_written_by = [&, value = value](const auto& is_right) {
        return std::any_of(plan_.run.begin(), plan_.run.end(), [&](const Kernel& kernel) {
          return is_right(kernel) && writes(kernel, value);
        });
      };
      const auto is_product = [](const Kernel& kernel) { return product_data(kernel) != nullptr; };
      const auto is_loops = [](const Kernel& kernel) { return kernel.form == &kLoops; };
      if (choice.winograd && !is_written_by(is_product))
        refuse_choice(plan_, value, "is no result of a convolution");
      if (choice.strassen && !is_written_by(is_product))
        refuse_choice(plan_, value, "is no result of a product");
      if (choice.product && !is_written_by([&](const Kernel& kernel) {
            return is_product(kernel) || attention_data(kernel) != nullptr;
          }))
        refuse_choice(plan_, value, "is no result of a product");
      if ((choice.new_loops || choice.one_thread) && !is_written_by(is_loops))
        refuse_choice(plan_, value, "is not written by a kernel of loops");
      if (choice.split_columns) check_split(value, *choice.split_columns);
      if (choice.offset && plan_.homes[value] != Home::arena)
        refuse_choice(plan_, value, "is not in the arena");
    }
  }
  void check_split(ValueId value, bool by_columns) const {
    const Split::Of wanted = by_columns ? Split::Of::columns : Split::Of::rows;
    for (const Kernel& kernel : plan_.run) {
      if (!writes(kernel, value) || kernel.split.of == wanted) continue;
      if (kernel.form != &kLoops)
        refuse_choice(
            plan_, value,
            "cannot be split by rows or columns: it is no result of a product or of loops");
      refuse_choice(plan_, value,
                    by_columns ? "cannot be split by columns: loops are split by rows, the rounds "
                                 "of their outermost loop"
                               : "cannot be split by rows: its kernel is one thread's, for no loop "
                                 "has rounds of their own, or because of another choice");
    }
  }
  bool writes(const Kernel& kernel, ValueId value) const {
    return std::any_of(kernel.steps.begin(), kernel.steps.end(), [&](StepId step) {
      return loops::contains(loops::writes(plan_.routine.steps[step]), value);
    });
  }

  // ---- kernels ----------------------------------------------------------------------------------

  // Both of its products are of bfloat16, if products of float32 are to be. Without a unit for
  // matrices, rounding takes the time that multiplying saves, and it has to be a choice.
  void round_attention(Attention& attention) const {
    const std::optional<composit::DType> choice = choice_of(plan_, attention.result).product;
    const bool can_be = attention.scores.accumulator == composit::DType::float32 &&
                        attention.scores.has_one_dtype() &&
                        attention.scores.extent(attention.scores.terms[0]) % 2 == 0;
    if (choice == composit::DType::bfloat16 && !can_be)
      refuse_choice(
          plan_, attention.result,
          "cannot be attention by products of bfloat16: it is none of float32 with an even "
          "number of elements in a key");
    const bool pays = choice || options_.has_matrix_unit;
    if (!can_be || !pays || choice.value_or(options_.products) != composit::DType::bfloat16) return;
    for (Product* product : {&attention.scores, &attention.results})
      product->operand = product->weight = composit::DType::bfloat16;
  }

  void make_kernels(const std::function<bool(ValueId)>& is_frozen) {
    Table<StepId, std::optional<Product>> products = all_products(is_frozen);
    std::map<StepId, Attention> attentions;  // by their last step
    std::set<StepId> taken;
    for (Attention& one : find_attention(plan_.routine, is_frozen)) {
      if (std::any_of(one.steps.begin(), one.steps.end() - 1, [&](StepId step) {
            return is_chosen(step, [](const Choice& of) { return of.fuse == false; });
          }))
        continue;
      round_attention(one);
      taken.insert(one.steps.begin(), one.steps.end());
      attentions.emplace(one.steps.back(), std::move(one));
    }
    Products forms(plan_, options_, is_frozen);
    std::optional<Kernel> open;
    for (const StepId i : products.ids()) {
      if (attentions.contains(i)) {
        close(open, "attention follows");
        plan_.run.push_back(attention_kernel(std::move(attentions.at(i))));
      } else if (taken.contains(i)) {
        continue;
      } else if (is_prepared(plan_.routine.steps[i])) {
        plan_.prepare.push_back(loops_kernel(plan_.routine, {i}, is_alone(i)));
      } else if (products[i]) {
        close(open, "a product follows");
        forms.add(i, std::move(*products[i]));
      } else if (auto call = divided_call(plan_.routine, i); call && !is_alone(i)) {
        close(open, "a call follows");
        plan_.run.push_back(std::move(*call));
      } else {
        add_to(open, i);
      }
    }
    close(open, "");
    store_rounded(plan_, options_.values);
    drop_unread_preparation();
    for (const auto& [value, layout] : plan_.layouts)
      if (has_border(layout)) borders_.insert(value);
    add_borders(plan_.prepare);
    add_borders(plan_.run);
  }

  // Loops of the preparation whose results nobody reads: numbers of weights that are packed as
  // integers.
  void drop_unread_preparation() {
    std::set<ValueId> read;
    const auto add = [&](const Kernel& kernel) {
      const ValueIds touched = kernel.form->touched(plan_, kernel);
      read.insert(touched.begin(), touched.end());
    };
    for (const Kernel& kernel : plan_.run) add(kernel);
    std::vector<Kernel> kept;
    for (size_t i = plan_.prepare.size(); i-- > 0;) {
      Kernel& kernel = plan_.prepare[i];
      if (kernel.form == &kLoops && !writes_any_of(kernel, read)) continue;
      add(kernel);
      kept.push_back(std::move(kernel));
    }
    plan_.prepare.assign(std::make_move_iterator(kept.rbegin()),
                         std::make_move_iterator(kept.rend()));
  }
  bool writes_any_of(const Kernel& kernel, const std::set<ValueId>& values) const {
    for (const StepId step : kernel.steps)
      for (const ValueId value : loops::writes(plan_.routine.steps[step]))
        if (values.contains(value) || plan_.routine.values[value].role != Role::temporary)
          return true;
    return false;
  }

  // A product is recognised once for all steps that are equal to it.
  Table<StepId, std::optional<Product>> all_products(
      const std::function<bool(ValueId)>& is_frozen) const {
    const Table<StepId, Step>& steps = plan_.routine.steps;
    Table<StepId, std::optional<Product>> products(steps.size());
    Table<StepId, StepKey> keys(steps.size());
    composit::side_by_side(steps.size(), [&](size_t i) {
      if (const auto* nest = std::get_if<loops::Nest>(&steps[StepId(i)]))
        keys[StepId(i)] = step_key(plan_.routine, *nest, is_frozen);
    });
    std::unordered_map<composit::Hash, StepId> first;
    StepIds different, others;
    for (const StepId i : steps.ids()) {
      if (!is_nest(i)) continue;
      (first.try_emplace(keys[i].hash, i).second ? different : others).push_back(i);
    }
    composit::side_by_side(different.size(), [&](size_t i) {
      const StepId step = different[i];
      products[step] = product_of(plan_.routine, std::get<loops::Nest>(steps[step]), is_frozen);
    });
    composit::side_by_side(others.size(), [&](size_t i) {
      const StepId step = others[i], like = first.at(keys[step].hash);
      if (products[like])
        products[step] = with_values(*products[like], keys[like].values, keys[step].values);
    });
    return products;
  }

  bool is_nest(StepId step) const {
    return std::holds_alternative<loops::Nest>(plan_.routine.steps[step]);
  }
  bool is_alone(StepId step) const {
    return is_chosen(step, [](const Choice& one) { return one.one_thread; });
  }
  // Puts a step into the open kernel of loops, or closes that one and opens another.
  void add_to(std::optional<Kernel>& open, StepId next) {
    if (open) {
      std::string reason = reason_to_end(*open, next);
      StepIds steps = open->steps;
      steps.push_back(next);
      std::optional<Kernel> both;
      if (reason.empty()) both = loops_kernel(plan_.routine, steps, /*alone=*/false);
      if (both && both->split.parts > 0) {
        open = std::move(both);
        return;
      }
      if (reason.empty())
        reason = loops::short_name(loops::origin_of(plan_.routine.steps[next])) +
                 " has other outer loops, or needs all of this";
      close(open, reason);
    }
    open = loops_kernel(plan_.routine, {next}, /*alone=*/false);
  }
  // The reason why `next` cannot share the loops of `open`; empty if it can.
  std::string reason_to_end(const Kernel& open, StepId next) const {
    if (is_chosen(next, [](const Choice& one) { return one.new_loops; }))
      return "what follows is to have loops of its own";
    if (!is_nest(next)) return "what follows is a call";
    const bool checks = is_early_check(plan_.routine.steps[open.steps.back()]);
    if (checks != is_early_check(plan_.routine.steps[next]))
      return checks ? "all of the index has to be checked" : "what follows checks an index";
    return is_nest(open.steps.back()) ? "" : "is a call";
  }
  void close(std::optional<Kernel>& open, const std::string& ends) {
    if (!open) return;
    if (std::any_of(open->steps.begin(), open->steps.end(),
                    [&](StepId step) { return is_alone(step); }))
      open = loops_kernel(plan_.routine, open->steps, /*alone=*/true);
    open->ends = ends;
    plan_.run.push_back(std::move(*open));
    open.reset();
  }

  // Zeros go around a value with the first kernel that writes it.
  void add_borders(std::vector<Kernel>& kernels) {
    std::vector<Kernel> all;
    for (Kernel& kernel : kernels) {
      for (const StepId step : kernel.steps)
        for (const ValueId value : loops::writes(plan_.routine.steps[step]))
          if (borders_.erase(value) > 0) all.push_back(border_kernel(value));
      all.push_back(std::move(kernel));
    }
    kernels = std::move(all);
  }

  const PlanOptions& options_;
  Plan plan_;
  std::set<ValueId> borders_;
};

}  // namespace

const Choice& choice_of(const Plan& plan, ValueId value) {
  static const Choice none;
  const auto found = plan.choices.find(value);
  return found == plan.choices.end() ? none : found->second;
}

void refuse_choice(const Plan& plan, ValueId value, const std::string& why) {
  throw composit::UserError("[mosaic] '" + value_names(plan.routine)[value] + "' " + why);
}

Plan plan_of(const composit::Graph& graph, const PlanOptions& options) {
  return plan_of(form_of(graph, options));
}

Plan plan_of(PlanForm form) {
  loops::expect_bound("mosaic", form.program);
  return Planner(form.options).run(form);
}

}  // namespace flashlight::mosaic
