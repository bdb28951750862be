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
    const auto choice = [this](size_t value) {
      const auto one = plan_.choices.find(value);
      return one == plan_.choices.end() ? std::nullopt : one->second.fuse;
    };
    program = checked("fuse", fuse(std::move(program), {.refusal = refusal, .choice = choice}));
    check_fused(program.functions.back());
    return checked("drop_zero_terms", drop_zero_terms(std::move(program)));
  }

  Plan run(const composit::Graph& graph) {
    plan_.name = options_.name;
    plan_.ports = composit::ports_of(graph, text::namespace_name(options_.name));
    loops::Program program = fused(graph);
    plan_.routine = std::move(program.functions.back());
    program.functions.pop_back();
    plan_.functions = with_arguments(std::move(program.functions));
    split_phases(plan_.routine);
    split_axes(plan_.routine);
    find_frozen(graph);
    const auto is_frozen = [this](size_t value) {
      return value < plan_.frozen.size() && plan_.frozen[value];
    };
    for (const size_t copy : copy_windows(plan_.routine, is_frozen)) set_order_of(copy);
    Tilized tilized = tilize(plan_.routine, is_frozen, plan_.choices);
    plan_.layouts = std::move(tilized.layouts);
    plan_.relayouts = tilized.chosen;
    plan_.row_major_relayouts = tilized.row_major;
    split_reductions(plan_.routine);
    find_frozen(graph);  // copies and parts of sums, too
    make_kernels(is_frozen);
    if (options_.update_inputs) find_updates(graph);
    plan_buffers(plan_);
    check_applied();
    return std::move(plan_);
  }

 private:
  // Weights that stay as they are, and what is computed of them alone.
  void find_frozen(const composit::Graph& graph) {
    Routine& routine = plan_.routine;
    plan_.frozen.assign(routine.values.size(), false);
    std::set<std::string> written;
    for (const composit::Mutation& mutation : graph.mutations())
      written.insert(composit::input_name(*mutation.target.node));
    for (size_t i = 0; i < routine.values.size(); ++i) {
      const loops::Value& value = routine.values[i];
      plan_.frozen[i] =
          options_.freeze && value.role == Role::weight && !written.contains(value.name);
    }
    std::vector<std::vector<size_t>> read, made;  // by step
    for (const Step& step : routine.steps) {
      read.push_back(loops::reads(step));
      made.push_back(loops::writes(step));
      // What is made of nothing is made in the loops that need it.
      for (const size_t value : made.back())
        if (routine.values[value].role == Role::temporary)
          plan_.frozen[value] = plan_.frozen[value] || reads_others(read.back(), value);
    }
    // What has one writer that needs something else than frozen values is not frozen.
    const auto is_frozen = [&](size_t value) { return plan_.frozen[value]; };
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < routine.steps.size(); ++i) {
        if (std::holds_alternative<loops::Nest>(routine.steps[i]) &&
            std::all_of(read[i].begin(), read[i].end(), is_frozen) &&
            std::all_of(made[i].begin(), made[i].end(), is_frozen))
          continue;
        for (const size_t value : made[i]) {
          changed |= plan_.frozen[value];
          plan_.frozen[value] = false;
        }
      }
    }
  }
  static bool reads_others(const std::vector<size_t>& read, size_t value) {
    return std::any_of(read.begin(), read.end(), [&](size_t one) { return one != value; });
  }
  bool is_prepared(const Step& step) const {
    const std::vector<size_t> written = loops::writes(step);
    return !written.empty() && std::all_of(written.begin(), written.end(),
                                           [&](size_t value) { return plan_.frozen[value]; });
  }
  static std::vector<Routine> with_arguments(std::vector<Routine> functions) {
    for (Routine& function : functions)
      for (const size_t input : function.inputs) function.values[input].role = Role::argument;
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

  void set_order_of(size_t value) {
    const Layout layout = row_major(plan_.routine.values[value].type);
    plan_.choices[value].layout = layout.tiling.schema();
  }
  void find_choices(const Routine& routine) {
    const std::vector<std::string> names = value_names(routine);
    for (const auto& [name, choice] : options_.choices) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end())
        throw composit::UserError("[mosaic] no value is called '" + name + "'; there are " +
                                  nearest(name, names));
      const auto value = static_cast<size_t>(found - names.begin());
      const bool lays_out_only = choice == Choice{.layout = choice.layout, .apart = choice.apart};
      if (routine.values[value].role != Role::temporary && !lays_out_only)
        throw composit::UserError("[mosaic] '" + name +
                                  "' is no temporary: it is the caller's, or a constant");
      plan_.choices[value] = choice;
    }
  }
  const Choice& choice_of(size_t value) const {
    static const Choice none;
    const auto found = plan_.choices.find(value);
    return found == plan_.choices.end() ? none : found->second;
  }
  [[noreturn]] void refuse(size_t value, const std::string& why) const {
    throw composit::UserError("[mosaic] '" + value_names(plan_.routine)[value] + "' " + why);
  }
  // Whether a choice of the kernel that writes what `step` writes says so.
  template <class Wanted>
  bool is_chosen(size_t step, const Wanted& wanted) const {
    const std::vector<size_t> written = loops::writes(plan_.routine.steps[step]);
    return std::any_of(written.begin(), written.end(),
                       [&](size_t value) { return wanted(choice_of(value)); });
  }

  // What is to be fused is, and all else that somebody chose for is there.
  void check_fused(const Routine& routine) const {
    std::set<size_t> written;
    for (const Step& step : routine.steps)
      for (const size_t value : loops::writes(step)) written.insert(value);
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
  bool writes(const Kernel& kernel, size_t value) const {
    return std::any_of(kernel.steps.begin(), kernel.steps.end(), [&](size_t step) {
      return loops::contains(loops::writes(plan_.routine.steps[step]), value);
    });
  }

  // ---- kernels ----------------------------------------------------------------------------------

  void make_kernels(const std::function<bool(size_t)>& is_frozen) {
    const size_t steps = plan_.routine.steps.size();
    std::vector<std::optional<Product>> products(steps);
    for (size_t i = 0; i < steps; ++i) {
      const auto* nest = std::get_if<loops::Nest>(&plan_.routine.steps[i]);
      if (nest != nullptr) products[i] = product_of(plan_.routine, nest->statement, is_frozen);
    }
    std::map<size_t, Attention> attentions;  // by their last step
    std::set<size_t> taken;
    for (Attention& one : find_attention(plan_.routine, is_frozen)) {
      if (std::any_of(one.steps.begin(), one.steps.end() - 1, [&](size_t step) {
            return is_chosen(step, [](const Choice& of) { return of.fuse == false; });
          }))
        continue;
      taken.insert(one.steps.begin(), one.steps.end());
      attentions.emplace(one.steps.back(), std::move(one));
    }
    std::vector<size_t> open;
    for (size_t i = 0; i < steps; ++i) {
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

  bool is_nest(size_t step) const {
    return std::holds_alternative<loops::Nest>(plan_.routine.steps[step]);
  }
  int64_t trips_of(const std::vector<size_t>& steps) const {
    const auto nowhere = [](size_t) { return false; };
    return shared_trips(kernel_routine(plan_.routine, steps, nowhere).routine);
  }
  // Why `next` is not in the loops of `open`; empty: it is.
  std::string reason_to_end(std::vector<size_t> open, size_t next) const {
    if (is_chosen(next, [](const Choice& one) { return one.new_loops; }))
      return "what follows is to have loops of its own";
    if (!is_nest(next)) return "what follows is a call";
    if (!is_nest(open.back())) return "is a call";
    open.push_back(next);
    return trips_of(open) > 0 ? ""
                              : loops::short_name(loops::origin_of(plan_.routine.steps[next])) +
                                    " has other outer loops, or needs all of this";
  }
  void add_loops(std::vector<Kernel>& kernels, std::vector<size_t> steps,
                 const std::string& ends = "") const {
    if (steps.empty()) return;
    const bool alone = std::any_of(steps.begin(), steps.end(), [&](size_t step) {
      return is_chosen(step, [](const Choice& one) { return one.one_thread; });
    });
    const int64_t trips = alone ? 0 : trips_of(steps);
    kernels.push_back(
        {.form = Kernel::Form::loops, .steps = std::move(steps), .trips = trips, .ends = ends});
  }

  void add_product(size_t step, Product product, const std::function<bool(size_t)>& is_frozen) {
    const bool frozen = is_frozen(product.right);
    const std::optional<size_t> factor =
        frozen && product.batch.empty() ? fold_factor(product, is_frozen) : std::nullopt;
    const int winograd = chosen_winograd(product, frozen)
                             .value_or(frozen && options_.winograd ? winograd_of(product) : 0);
    const bool plain = winograd > 0 && has_large_weights(product, winograd);
    const int packed_for = plain ? 0 : winograd;
    const std::string key = packing_key(product) + (factor ? "*" + std::to_string(*factor) : "") +
                            "w" + std::to_string(packed_for);
    auto packed = packed_.find(key);
    if (packed == packed_.end() || !frozen) {
      const size_t value = add_panels(product, packed_for);
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
    const size_t result = product.statement.stores[0].result;
    const std::optional<bool> chosen = choice_of(result).strassen;
    if (chosen.value_or(false) && !can_halve(product))
      refuse(result,
             "cannot be computed by Strassen's algorithm: it is no product of matrices with an "
             "even number of terms side by side");
    return chosen.value_or(options_.strassen && pays_to_halve(product));
  }
  std::optional<int> chosen_winograd(const Product& product, bool frozen) const {
    const size_t result = product.statement.stores[0].result;
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
  std::optional<size_t> fold_factor(Product& product,
                                    const std::function<bool(size_t)>& is_frozen) {
    const auto folded = fold(product, [&](size_t value) {
      return is_frozen(value) && plan_.routine.values[value].type.rank() == 1;
    });
    if (!folded) return std::nullopt;
    const size_t factor = add_column_value(product, folded->factor, "factor"),
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
  size_t add_column_value(const Product& product, const composit::Expr& x,
                          const std::string& name) {
    Routine& routine = plan_.routine;
    loops::Nest nest = {{}, {name, "", ""}};
    nest.statement.axes = {{"", product.statement.axes[*product.columns].extent}};
    const composit::Expr value = composit::replace(x, [&](const composit::Expr& part) {
      return part.kind() == composit::ExprKind::axis ? composit::Expr::axis(0) : composit::Expr();
    });
    nest.statement.stores.push_back({routine.values.size(), {composit::Expr::axis(0)}, value});
    routine.values.push_back(
        {composit::tensor_type(x.dtype(), {product.column_count()}), Role::temporary, name, {}});
    plan_.frozen.push_back(true);
    routine.steps.push_back(std::move(nest));
    add_loops(plan_.prepare, {routine.steps.size() - 1});
    return routine.values.size() - 1;
  }

  // Two products whose panels are the same have the same key.
  static std::string packing_key(const Product& product) {
    std::string key = std::to_string(product.right);
    const auto add = [&](size_t axis) {
      key += "," + std::to_string(product.extent(axis)) + ":" +
             std::to_string(product.right_at.coefficients[axis]);
    };
    for (const size_t axis : product.batch) add(axis);
    key += "/";
    if (product.columns) add(*product.columns);
    key += "/";
    for (const size_t axis : product.terms) add(axis);
    return key + "/" + std::to_string(product.right_at.constant);
  }
  // Pixels of a Winograd tile, by what was measured: F(4x4) pays where there are many of them,
  // F(2x2) as long as there are more than a few, for it reads more weights.
  static int winograd_of(const Product& product) {
    if (!is_3x3(product) || product.extent(product.terms[2]) < 32 || product.column_count() < 32)
      return 0;
    const std::vector<size_t>& rows = product.rows;  // images, lines, pixels
    const int64_t side =
        std::min(product.extent(rows[rows.size() - 2]), product.extent(rows.back()));
    return side >= 28 ? 4 : side >= 7 ? 2 : 0;
  }
  bool has_large_weights(const Product& product, int winograd) const {
    const composit::DType dtype = plan_.routine.values[product.right].type.dtype;
    const int64_t elements = packed_terms(product, winograd) * product.column_count();
    return elements * static_cast<int64_t>(composit::item_size(dtype)) > options_.winograd_bytes;
  }
  size_t add_panels(const Product& product, int winograd) {
    Routine& routine = plan_.routine;
    const int64_t columns = (product.column_count() + kMostColumns - 1) / kMostColumns;
    const composit::Dims sizes = {product.size(product.batch), columns,
                                  packed_terms(product, winograd), kMostColumns};
    const composit::DType dtype = routine.values[product.right].type.dtype;
    routine.values.push_back({composit::tensor_type(dtype, sizes),
                              Role::temporary,
                              routine.values[product.right].name + ".panels",
                              {}});
    plan_.frozen.push_back(false);
    return routine.values.size() - 1;
  }

  // Zeros go around a value with the first kernel that writes it.
  void add_borders(std::vector<Kernel>& kernels) {
    std::vector<Kernel> all;
    for (Kernel& kernel : kernels) {
      for (const size_t step : kernel.steps)
        for (const size_t value : loops::writes(plan_.routine.steps[step]))
          if (borders_.erase(value) > 0)
            all.push_back({.form = Kernel::Form::border, .steps = {}, .value = value});
      all.push_back(std::move(kernel));
    }
    kernels = std::move(all);
  }

  const PlanOptions& options_;
  Plan plan_;
  std::map<std::string, size_t> packed_;
  std::set<size_t> borders_;
};

}  // namespace

Plan plan_of(const composit::Graph& graph, const PlanOptions& options) {
  return Planner(options).run(graph);
}

}  // namespace flashlight::mosaic
