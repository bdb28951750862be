#include "flashlight/mosaic/plan.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

#include "composit/ir/error.h"
#include "composit/op/affine.h"
#include "flashlight/loops/fuse.h"
#include "flashlight/loops/lower.h"
#include "flashlight/loops/signed_zero.h"
#include "flashlight/loops/statement.h"
#include "flashlight/loops/verify.h"
#include "flashlight/mosaic/buffers.h"
#include "flashlight/mosaic/copy_windows.h"
#include "flashlight/mosaic/depthwise.h"
#include "flashlight/mosaic/describe.h"
#include "flashlight/mosaic/fold.h"
#include "flashlight/mosaic/frozen.h"
#include "flashlight/mosaic/kernel_routine.h"
#include "flashlight/mosaic/reductions.h"
#include "flashlight/mosaic/split_axes.h"
#include "flashlight/mosaic/split_phases.h"
#include "flashlight/mosaic/tilize.h"
#include "flashlight/text/literal.h"

namespace flashlight::mosaic {
namespace {

using loops::Role;
using loops::Routine;
using loops::Step;

// Whether both sides of a product lie in memory so that their places are sums of what each axis
// gives; what only takes axes apart can be made so.
bool is_plain(const loops::Statement& statement) {
  const auto product = sides_of(statement);
  if (!product) return false;
  for (const composit::Expr* side : {&product->left, &product->right}) {
    if (side->kind() != composit::ExprKind::load) return false;
    composit::IndexAnalysis analysis(statement.axes);
    for (const composit::Expr& index : side->arguments())
      if (!analysis.affine(index)) return false;
  }
  return true;
}

// A product keeps its shape: what would have to be computed for each element of a side is memory.
std::string refusal(const loops::Statement& before, const loops::Statement& after) {
  const auto is_plain_in_parts = [](const loops::Statement& one) {
    const std::vector<loops::Statement> phases = phases_of(one);
    return std::any_of(phases.begin(), phases.end(), [](const loops::Statement& phase) {
      return is_plain(with_split_axes(phase));
    });
  };
  if (!is_plain_in_parts(before) || is_plain_in_parts(after)) return "";
  return "is a side of a product, which tiles read from memory";
}

class Planner {
 public:
  explicit Planner(const PlanOptions& options) : options_(options) {}

  // The loops of the graph, fused where the cost model or the user's choices say so.
  loops::Program fused(const composit::Graph& graph) {
    using loops::checked;
    loops::Program program =
        checked("lower",
                loops::lower(
                    graph, {.name = options_.name, .results = options_.results, .outline = false}));
    find_choices(program.functions.back());
    const auto choice = [this](ValueId value) {
      const auto one = plan_.choices.find(value);
      return one == plan_.choices.end() ? std::nullopt : one->second.fuse;
    };
    program = checked("fuse", fuse(std::move(program), {.refusal = refusal, .choice = choice}));
    check_fused(program.functions.back());
    return checked("drop_zero_terms", drop_zero_terms(std::move(program)));
  }

  // The program in terms of memory, with sums that tiles and threads can take.
  loops::Program in_memory(loops::Program program, const std::set<std::string>& changing,
                           const std::function<bool(ValueId)>& is_frozen) {
    using loops::checked;
    program = checked("split_phases", split_phases(std::move(program)));
    program = checked("split_axes", split_axes(std::move(program)));
    plan_.frozen = frozen_values(program.functions.back(), changing, options_.freeze);
    CopiedWindows windows = copy_windows(std::move(program), is_frozen);
    program = checked("copy_windows", std::move(windows.program));
    for (const ValueId copy : windows.copies) set_order_of(copy, program.functions.back());
    Tilized tilized = tilize(std::move(program), is_frozen, plan_.choices);
    plan_.layouts = std::move(tilized.layouts);
    plan_.relayouts = tilized.chosen;
    plan_.row_major_relayouts = tilized.row_major;
    program = checked("tilize", std::move(tilized.program));
    return checked("split_reductions", split_reductions(std::move(program)));
  }

  Plan run(const composit::Graph& graph) {
    plan_.name = options_.name;
    plan_.ports = loops::ports_of(graph, text::namespace_name(options_.name));
    const std::set<std::string> changing = changing_inputs(graph);
    const auto is_frozen = [this](ValueId value) {
      return value < plan_.frozen.size() && plan_.frozen[value];
    };
    loops::Program program = in_memory(fused(graph), changing, is_frozen);
    plan_.routine = std::move(program.functions.back());
    program.functions.pop_back();
    plan_.functions = with_arguments(std::move(program.functions));
    plan_.frozen = frozen_values(plan_.routine, changing, options_.freeze);
    make_kernels(is_frozen);
    if (options_.update_inputs) find_updates(graph);
    plan_buffers(plan_);
    check_applied();
    return std::move(plan_);
  }

 private:
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

  // New values of inputs: results behind the graph's outputs.
  void find_updates(const composit::Graph& graph) {
    const Routine& routine = plan_.routine;
    size_t next = routine.results.size() - graph.mutations().size();
    for (const composit::Mutation& mutation : graph.mutations()) {
      const auto target = std::find(graph.inputs().begin(), graph.inputs().end(), mutation.target);
      const auto input = static_cast<size_t>(target - graph.inputs().begin());
      plan_.updates[routine.results[next++]] = routine.inputs[input];
    }
  }

  // ---- choices ----------------------------------------------------------------------------------

  void set_order_of(ValueId value, const Routine& routine) {
    const Layout layout = row_major(routine.values[value].type);
    plan_.choices[value].layout = layout.tiling.schema();
  }
  void find_choices(const Routine& routine) {
    const std::vector<std::string> names = value_names(routine);
    for (const auto& [name, choice] : options_.choices) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end())
        throw composit::UserError("[mosaic] no value is called '" + name + "'; there are " +
                                  nearest(name, names));
      const ValueId value(static_cast<size_t>(found - names.begin()));
      const bool lays_out_only = choice == Choice{.layout = choice.layout, .apart = choice.apart};
      if (routine.values[value].role != Role::temporary && !lays_out_only)
        throw composit::UserError("[mosaic] '" + name +
                                  "' is no temporary: it is the caller's, or a constant");
      plan_.choices[value] = choice;
    }
  }
  const Choice& choice_of(ValueId value) const {
    static const Choice none;
    const auto found = plan_.choices.find(value);
    return found == plan_.choices.end() ? none : found->second;
  }
  [[noreturn]] void refuse(ValueId value, const std::string& why) const {
    throw composit::UserError("[mosaic] '" + value_names(plan_.routine)[value] + "' " + why);
  }
  // Whether a choice of the kernel that writes what `step` writes says so.
  template <class Wanted>
  bool is_chosen(StepId step, const Wanted& wanted) const {
    const ValueIds written = loops::writes(plan_.routine.steps[step]);
    return std::any_of(written.begin(), written.end(),
                       [&](ValueId value) { return wanted(choice_of(value)); });
  }

  // What is to be fused is, and all else that somebody chose for is there.
  void check_fused(const Routine& routine) const {
    std::set<ValueId> written;
    for (const Step& step : routine.steps)
      for (const ValueId value : loops::writes(step)) written.insert(value);
    for (const auto& [value, choice] : plan_.choices) {
      if (routine.values[value].role != Role::temporary) continue;
      const std::string name = "[mosaic] '" + value_names(routine)[value] + "' ";
      if (choice.fuse == true && written.contains(value)) {
        const auto reason = routine.kept.find(value);
        throw composit::UserError(name + "cannot be fused: it " +
                                  (reason == routine.kept.end() ? "is memory" : reason->second));
      }
      if (choice.fuse != true && !written.contains(value))
        throw composit::UserError(
            name + (choice.fuse == false
                        ? "cannot be kept: it is no operation's result of its own"
                        : "is computed where it is read: choose to keep it as well"));
    }
  }

  // A choice about a kernel is about one of the right form.
  void check_applied() const {
    for (const auto& [value, choice] : plan_.choices) {
      const auto is_written_by = [&, value = value](Kernel::Form form) {
        return std::any_of(plan_.run.begin(), plan_.run.end(), [&](const Kernel& kernel) {
          return kernel.form == form && writes(kernel, value);
        });
      };
      if (choice.winograd && !is_written_by(Kernel::Form::product))
        refuse(value, "is no result of a convolution");
      if (choice.strassen && !is_written_by(Kernel::Form::product))
        refuse(value, "is no result of a product");
      if ((choice.new_loops || choice.one_thread) && !is_written_by(Kernel::Form::loops))
        refuse(value, "is not written by a kernel of loops");
      if (choice.offset && plan_.homes[value] != Home::arena) refuse(value, "is not in the arena");
    }
  }
  bool writes(const Kernel& kernel, ValueId value) const {
    return std::any_of(kernel.steps.begin(), kernel.steps.end(), [&](StepId step) {
      return loops::contains(loops::writes(plan_.routine.steps[step]), value);
    });
  }

  // ---- kernels ----------------------------------------------------------------------------------

  void make_kernels(const std::function<bool(ValueId)>& is_frozen) {
    const Table<StepId, Step>& steps = plan_.routine.steps;
    Table<StepId, std::optional<Product>> products(steps.size());
    for (const StepId i : steps.ids()) {
      const auto* nest = std::get_if<loops::Nest>(&plan_.routine.steps[i]);
      if (nest != nullptr) products[i] = product_of(plan_.routine, nest->statement, is_frozen);
    }
    std::map<StepId, Attention> attentions;  // by their last step
    std::set<StepId> taken;
    for (Attention& one : find_attention(plan_.routine, is_frozen)) {
      if (std::any_of(one.steps.begin(), one.steps.end() - 1, [&](StepId step) {
            return is_chosen(step, [](const Choice& of) { return of.fuse == false; });
          }))
        continue;
      taken.insert(one.steps.begin(), one.steps.end());
      attentions.emplace(one.steps.back(), std::move(one));
    }
    StepIds open;
    for (const StepId i : products.ids()) {
      if (attentions.contains(i)) {
        add_loops(plan_.run, std::exchange(open, {}), "attention follows");
        Attention& one = attentions.at(i);
        plan_.run.push_back(
            {.form = Kernel::Form::attention, .steps = one.steps, .attention = std::move(one)});
      } else if (taken.contains(i)) {
        continue;
      } else if (is_prepared(plan_.routine.steps[i])) {
        add_loops(plan_.prepare, {i});
      } else if (products[i]) {
        add_loops(plan_.run, std::exchange(open, {}), "a product follows");
        add_product(i, std::move(*products[i]), is_frozen);
      } else {
        const std::string reason = open.empty() ? "" : reason_to_end(open, i);
        if (!reason.empty()) add_loops(plan_.run, std::exchange(open, {}), reason);
        open.push_back(i);
      }
    }
    add_loops(plan_.run, std::move(open));
    for (const auto& [value, layout] : plan_.layouts)
      if (has_border(layout)) borders_.insert(value);
    add_borders(plan_.prepare);
    add_borders(plan_.run);
  }

  bool is_nest(StepId step) const {
    return std::holds_alternative<loops::Nest>(plan_.routine.steps[step]);
  }
  int64_t trips_of(const StepIds& steps) const {
    const auto nowhere = [](ValueId) { return false; };
    return shared_trips(kernel_routine(plan_.routine, steps, nowhere).routine);
  }
  // Why `next` is not in the loops of `open`; empty: it is.
  std::string reason_to_end(StepIds open, StepId next) const {
    if (is_chosen(next, [](const Choice& one) { return one.new_loops; }))
      return "what follows is to have loops of its own";
    if (!is_nest(next)) return "what follows is a call";
    if (!is_nest(open.back())) return "is a call";
    open.push_back(next);
    return trips_of(open) > 0 ? ""
                              : loops::short_name(loops::origin_of(plan_.routine.steps[next])) +
                                    " has other outer loops, or needs all of this";
  }
  void add_loops(std::vector<Kernel>& kernels, StepIds steps, const std::string& ends = "") const {
    if (steps.empty()) return;
    const bool alone = std::any_of(steps.begin(), steps.end(), [&](StepId step) {
      return is_chosen(step, [](const Choice& one) { return one.one_thread; });
    });
    const int64_t trips = alone ? 0 : trips_of(steps);
    kernels.push_back(
        {.form = Kernel::Form::loops, .steps = std::move(steps), .trips = trips, .ends = ends});
  }

  void add_product(StepId step, Product product, const std::function<bool(ValueId)>& is_frozen) {
    const bool frozen = is_frozen(product.right);
    const std::optional<ValueId> factor =
        frozen && product.batch.empty() ? fold_factor(product, is_frozen) : std::nullopt;
    const int winograd = chosen_winograd(product, frozen)
                             .value_or(frozen && options_.winograd ? winograd_of(product) : 0);
    const bool plain = winograd > 0 && has_large_weights(product, winograd);
    const int packed_for = plain ? 0 : winograd;
    const std::string key = packing_key(product) + (factor ? "*" + std::to_string(*factor) : "") +
                            "w" + std::to_string(packed_for);
    auto packed = packed_.find(key);
    if (packed == packed_.end() || !frozen) {
      const ValueId value = add_panels(product, packed_for);
      packed = packed_.insert_or_assign(key, value).first;
      (frozen ? plan_.prepare : plan_.run)
          .push_back({.form = Kernel::Form::pack,
                      .steps = {},
                      .product = product,
                      .packed = value,
                      .winograd = packed_for,
                      .factor = factor});
      plan_.frozen[value] = frozen;
    }
    const bool strassen = chosen_strassen(product);
    plan_.run.push_back({.form = Kernel::Form::product,
                         .steps = {step},
                         .product = std::move(product),
                         .packed = packed->second,
                         .winograd = winograd,
                         .plain_weights = plain,
                         .strassen = strassen});
  }
  bool chosen_strassen(const Product& product) const {
    const ValueId result = value_of(product.statement.stores[0]);
    const std::optional<bool> chosen = choice_of(result).strassen;
    if (chosen.value_or(false) && !can_halve(product))
      refuse(result,
             "cannot be computed by Strassen's algorithm: it is no product of matrices with an "
             "even number of terms side by side");
    return chosen.value_or(options_.strassen && pays_to_halve(product));
  }
  std::optional<int> chosen_winograd(const Product& product, bool frozen) const {
    const ValueId result = value_of(product.statement.stores[0]);
    const std::optional<int> chosen = choice_of(result).winograd;
    const int tile = chosen.value_or(0);
    if (tile != 0 && tile != 2 && tile != 4)
      refuse(result,
             fmt::format("by Winograd's algorithm: expected tiles of 2 or 4, received {}", tile));
    if (tile != 0 && (!frozen || !is_3x3(product)))
      refuse(result,
             "cannot be computed by Winograd's algorithm: it is no convolution by known windows of "
             "3x3 with stride 1");
    return chosen;
  }
  // Moves what its columns are multiplied with into the packed side: the value that holds that.
  std::optional<ValueId> fold_factor(Product& product,
                                     const std::function<bool(ValueId)>& is_frozen) {
    const auto folded = fold(product, [&](ValueId value) {
      return is_frozen(value) && plan_.routine.values[value].type.rank() == 1;
    });
    if (!folded) return std::nullopt;
    const ValueId factor = add_column_value(product, folded->factor, "factor"),
                  offset = add_column_value(product, folded->offset, "offset");
    composit::Store& store = product.statement.stores[0];
    const composit::DType dtype = folded->scaled.dtype();
    const composit::Expr sum =
        composit::Expr::accumulator(0, dtype) +
        composit::Expr::load(offset, dtype, {composit::Expr::axis(*product.columns)});
    store.value = composit::replace(store.value, [&](const composit::Expr& part) {
      return part.same(folded->scaled) ? sum : composit::Expr();
    });
    return factor;
  }
  // A prepared value with a number per column.
  ValueId add_column_value(const Product& product, const composit::Expr& x,
                           const std::string& name) {
    Routine& routine = plan_.routine;
    loops::Nest nest = {{}, {name, "", ""}};
    nest.statement.axes = {{"", product.statement.axes[*product.columns].extent}};
    const composit::Expr value = composit::replace(x, [&](const composit::Expr& part) {
      return part.kind() == composit::ExprKind::axis ? composit::Expr::axis(0) : composit::Expr();
    });
    const ValueId added = routine.values.add(
        {composit::tensor_type(x.dtype(), {product.column_count()}), Role::temporary, name, {}});
    nest.statement.stores.push_back({added, {composit::Expr::axis(0)}, value});
    plan_.frozen.push_back(true);
    add_loops(plan_.prepare, {routine.steps.add(std::move(nest))});
    return added;
  }

  // Two products whose panels are the same have the same key.
  static std::string packing_key(const Product& product) {
    std::string key = std::to_string(product.right);
    const auto add = [&](AxisId axis) {
      key += "," + std::to_string(product.extent(axis)) + ":" +
             std::to_string(product.right_at.coefficients[axis]);
    };
    for (const AxisId axis : product.batch) add(axis);
    key += "/";
    if (product.columns) add(*product.columns);
    key += "/";
    for (const AxisId axis : product.terms) add(axis);
    return key + "/" + std::to_string(product.right_at.constant);
  }
  // Pixels of a Winograd tile, by what was measured: F(4x4) pays where there are many of them,
  // F(2x2) as long as there are more than a few, for it reads more weights.
  static int winograd_of(const Product& product) {
    if (!is_3x3(product) || product.extent(product.terms[2]) < 32 || product.column_count() < 32)
      return 0;
    const AxisIds& rows = product.rows;  // images, lines, pixels
    const int64_t side =
        std::min(product.extent(rows[rows.size() - 2]), product.extent(rows.back()));
    return side >= 28 ? 4 : side >= 7 ? 2 : 0;
  }
  bool has_large_weights(const Product& product, int winograd) const {
    const composit::DType dtype = plan_.routine.values[product.right].type.dtype;
    const int64_t elements = packed_terms(product, winograd) * product.column_count();
    return elements * static_cast<int64_t>(composit::item_size(dtype)) > options_.winograd_bytes;
  }
  ValueId add_panels(const Product& product, int winograd) {
    Routine& routine = plan_.routine;
    const int64_t columns = (product.column_count() + kMostColumns - 1) / kMostColumns;
    const composit::Dims sizes = {product.size(product.batch), columns,
                                  packed_terms(product, winograd), kMostColumns};
    const composit::DType dtype = routine.values[product.right].type.dtype;
    plan_.frozen.push_back(false);
    return routine.values.add({composit::tensor_type(dtype, sizes),
                               Role::temporary,
                               routine.values[product.right].name + ".panels",
                               {}});
  }

  // Zeros go around a value with the first kernel that writes it.
  void add_borders(std::vector<Kernel>& kernels) {
    std::vector<Kernel> all;
    for (Kernel& kernel : kernels) {
      for (const StepId step : kernel.steps)
        for (const ValueId value : loops::writes(plan_.routine.steps[step]))
          if (borders_.erase(value) > 0)
            all.push_back({.form = Kernel::Form::border, .steps = {}, .value = value});
      all.push_back(std::move(kernel));
    }
    kernels = std::move(all);
  }

  const PlanOptions& options_;
  Plan plan_;
  std::map<std::string, ValueId> packed_;
  std::set<ValueId> borders_;
};

}  // namespace

Plan plan_of(const composit::Graph& graph, const PlanOptions& options) {
  return Planner(options).run(graph);
}

}  // namespace flashlight::mosaic
