#include "flashlight/mosaic/plan_form.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <sstream>

#include "composit/ir/error.h"
#include "composit/ir/words.h"
#include "composit/op/affine.h"
#include "flashlight/loops/fuse.h"
#include "flashlight/loops/lower.h"
#include "flashlight/loops/signed_zero.h"
#include "flashlight/loops/statement.h"
#include "flashlight/loops/unify.h"
#include "flashlight/loops/verify.h"
#include "flashlight/mosaic/copy_windows.h"
#include "flashlight/mosaic/describe.h"
#include "flashlight/mosaic/early_checks.h"
#include "flashlight/mosaic/frozen.h"
#include "flashlight/mosaic/integer_products.h"
#include "flashlight/mosaic/reductions.h"
#include "flashlight/mosaic/sides.h"
#include "flashlight/mosaic/split_axes.h"
#include "flashlight/mosaic/split_phases.h"
#include "flashlight/mosaic/tilize.h"
#include "flashlight/mosaic/weight_order.h"
#include "flashlight/text/literal.h"

namespace flashlight::mosaic {
namespace {

using loops::FunctionId;
using loops::Role;
using loops::Routine;
using loops::Step;

using IsFrozen = std::function<bool(ValueId value)>;

// True if both sides of a product lie in memory so that their offsets are sums of one summand per
// axis. Statements that only split axes can be made so.
bool is_plain(const loops::Statement& statement, const IsFrozen& is_frozen) {
  const auto product = sides_of(statement);
  if (!product) return false;
  for (const composit::Expr* side : {&product->left, &product->right}) {
    if (side->kind() != composit::ExprKind::load) return false;
    composit::IndexAnalysis analysis(statement.axes);
    for (const composit::Expr& index : side->arguments())
      if (!analysis.affine(index)) return false;
  }
  return !has_one_row(*product) || is_frozen(value_of(product->right));
}

// A product keeps its shape: what would have to be computed for each element of a side is memory.
std::string refusal(const loops::Statement& before, const loops::Statement& after,
                    const IsFrozen& is_frozen) {
  const auto is_plain_in_parts = [&](const loops::Statement& one) {
    const std::vector<loops::Statement> phases = phases_of(one);
    return std::any_of(phases.begin(), phases.end(), [&](const loops::Statement& phase) {
      return is_plain(with_split_axes(phase), is_frozen);
    });
  };
  if (!is_plain_in_parts(before) || is_plain_in_parts(after)) return "";
  return "is a side of a product, which tiles read from memory";
}

class Former {
 public:
  explicit Former(const PlanOptions& options) { form_.options = options; }

  PlanForm run(const composit::Graph& graph) {
    form_.ports = composit::ports_of(graph, text::namespace_name(options().name));
    form_.changing = changing_inputs(graph);
    form_.program = in_memory(fused(graph));
    if (options().update_inputs) {
      find_updates(graph);
      form_.program =
          loops::checked("check_early", check_early(std::move(form_.program), form_.updates));
    }
    return std::move(form_);
  }

 private:
  const PlanOptions& options() const { return form_.options; }

  // The loops of the graph, fused where the cost model or the user's choices say so.
  loops::Program fused(const composit::Graph& graph) {
    using loops::checked;
    loops::Program program = checked("lower", loops::lower(graph, {.name = options().name,
                                                                   .results = options().results,
                                                                   .outline = false}));
    find_choices(program.functions.back());
    const FunctionId own(program.functions.size() - 1);
    const auto choice = [this, own](FunctionId function, ValueId value) {
      const auto one = form_.choices.find(value);
      return function != own || one == form_.choices.end() ? std::nullopt : one->second.fuse;
    };
    const IsFrozen before_integers = is_frozen_in(program);
    program = checked("integer_products", integer_products(std::move(program), before_integers));
    const auto refused = [is_frozen = is_frozen_in(program)](const auto& before,
                                                             const auto& after) {
      return refusal(before, after, is_frozen);
    };
    program = checked("fuse", fuse(std::move(program), {.refusal = refused, .choice = choice}));
    check_fused(program.functions.back());
    return checked("drop_zero_terms", drop_zero_terms(std::move(program)));
  }

  // Values that are known before the program runs.
  IsFrozen is_frozen_in(const loops::Program& program) const {
    return [frozen = frozen_values(program.functions.back(), form_.changing, options().freeze)](
               ValueId value) { return value < frozen.size() && frozen[value]; };
  }

  // The program in terms of memory, with sums that tiles and threads can take.
  loops::Program in_memory(loops::Program program) {
    using loops::checked;
    program = checked("split_phases", with_sides(split_phases(with_sides(std::move(program)))));
    program = checked("split_axes", with_sides(split_axes(std::move(program))));
    const IsFrozen unordered = is_frozen_in(program);
    program = checked("order_weights", with_sides(order_weights(std::move(program), unordered)));
    const IsFrozen is_frozen = is_frozen_in(program);
    CopiedWindows windows = copy_windows(std::move(program), is_frozen);
    program = checked("copy_windows", with_sides(std::move(windows.program)));
    for (const ValueId copy : windows.copies) set_order_of(copy, program.functions.back());
    Tilized tilized = tilize(std::move(program), is_frozen, form_.choices,
                             options().products == composit::DType::bfloat16);
    form_.layouts = std::move(tilized.layouts);
    form_.across = std::move(tilized.across);
    form_.row_major_across = std::move(tilized.row_major_across);
    program = checked("tilize", with_sides(std::move(tilized.program)));
    return checked("split_reductions", with_sides(split_reductions(std::move(program))));
  }

  // New values of inputs: results behind the graph's outputs.
  void find_updates(const composit::Graph& graph) {
    const Routine& routine = form_.program.functions.back();
    size_t next = routine.results.size() - graph.mutations().size();
    for (const composit::Mutation& mutation : graph.mutations()) {
      const auto target = std::find(graph.inputs().begin(), graph.inputs().end(), mutation.target);
      const auto input = static_cast<size_t>(target - graph.inputs().begin());
      const ValueId value = routine.inputs[input], result = routine.results[next++];
      if (options().update_weights || routine.values[value].role == loops::Role::argument)
        form_.updates[result] = value;
    }
  }

  // ---- choices ----------------------------------------------------------------------------------

  void set_order_of(ValueId value, const Routine& routine) {
    const Layout layout = row_major(routine.values[value].type);
    form_.choices[value].layout = layout.tiling.schema();
  }
  void find_choices(const Routine& routine) {
    const std::vector<std::string> names = value_names(routine);
    for (const auto& [name, choice] : options().choices) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end())
        throw composit::UserError("[mosaic] no value is called '" + name + "'; there are " +
                                  composit::nearest(name, names));
      const ValueId value(static_cast<size_t>(found - names.begin()));
      // Layouts are those of a copy; how a kernel computes is no matter of where it writes to.
      const bool may_be_callers = choice == Choice{.layout = choice.layout,
                                                   .apart = choice.apart,
                                                   .winograd = choice.winograd,
                                                   .strassen = choice.strassen,
                                                   .product = choice.product,
                                                   .split_columns = choice.split_columns};
      if (routine.values[value].role != Role::temporary && !may_be_callers)
        throw composit::UserError("[mosaic] '" + name +
                                  "' is no temporary: it is the caller's, or a constant");
      form_.choices[value] = choice;
    }
  }
  // Checks the user's choices: values chosen to be fused were fused; all other chosen values still
  // exist.
  void check_fused(const Routine& routine) const {
    std::set<ValueId> written;
    for (const Step& step : routine.steps)
      for (const ValueId value : loops::writes(step)) written.insert(value);
    for (const auto& [value, choice] : form_.choices) {
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

  PlanForm form_;
};

// ---- sizes --------------------------------------------------------------------------------------

[[noreturn]] void refuse_forms(const std::string& difference) {
  throw composit::UserError("[mosaic] expected plans of one form, received different " +
                            difference);
}
template <class Get>
void expect_same(const std::vector<PlanForm>& forms, const std::string& what, const Get& get) {
  for (const PlanForm& form : forms)
    if (!(get(form) == get(forms[0]))) refuse_forms(what);
}

// A layout without its sizes.
Layout without_sizes(Layout layout) {
  const TileSchema& schema = layout.tiling.schema();
  std::vector<int64_t> sizes = layout.tiling.sizes();
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!layout.tiling.is_blocked(i)) sizes[i] = 1;
  layout.tiling = Tiling(schema, std::move(sizes));
  return layout;
}
// The same layout around a value that has another type in memory. Extents of dimensions in blocks
// stay.
Layout with_type(Layout layout, const composit::Type& physical) {
  std::vector<int64_t> sizes = layout.tiling.sizes();
  const std::vector<Tiling::Loop>& axes = layout.tiling.loops();
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t dimension = axes[i].dimension;
    if (layout.tiling.is_blocked(dimension)) continue;
    sizes[dimension] = physical.sizes[i] - layout.before[dimension] - layout.after[dimension] -
                       (i + 1 == axes.size() ? layout.apart : 0);
  }
  layout.tiling = Tiling(layout.tiling.schema(), std::move(sizes));
  return layout;
}

// The type of a port without its sizes. A port that is not row-major keeps them.
composit::Type without_sizes(composit::Type type) {
  if (!composit::is_defined(type) || !composit::is_contiguous(type)) return type;
  type.strides.clear();
  type.sizes.assign(type.sizes.size(), 1);
  return type;
}
std::vector<composit::Type> without_sizes(std::vector<composit::Type> types) {
  for (composit::Type& type : types) type = without_sizes(std::move(type));
  return types;
}

const loops::Routine& own_function(const PlanForm& form) { return form.program.functions.back(); }

void expect_one_form(const std::vector<PlanForm>& forms) {
  expect_same(forms, "names of inputs", [](const PlanForm& one) { return one.ports.input_names; });
  expect_same(forms, "inputs", [](const PlanForm& one) { return without_sizes(one.ports.inputs); });
  expect_same(forms, "results",
              [](const PlanForm& one) { return without_sizes(one.ports.results); });
  expect_same(forms, "inputs that are written", [](const PlanForm& one) { return one.changing; });
  expect_same(forms, "choices", [](const PlanForm& one) { return one.choices; });
  expect_same(forms, "new values of inputs", [](const PlanForm& one) { return one.updates; });
  for (const ValueId value : own_function(forms[0]).values.ids())
    expect_same(forms, "layouts of '" + own_function(forms[0]).values[value].name + "'",
                [&](const PlanForm& one) {
                  const auto layout = one.layouts.find(value);
                  return layout == one.layouts.end() ? std::optional<Layout>()
                                                     : without_sizes(layout->second);
                });
  expect_same(forms, "orders of values in memory",
              [](const PlanForm& one) { return std::pair(one.across, one.row_major_across); });
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream from(text);
  return {std::istream_iterator<std::string>(from), {}};
}
bool is_number(const std::string& word) {
  return word == "several" || (word[0] >= '0' && word[0] <= '9');
}

// Reasons why values are memory say how often they would be computed: a number that depends on
// sizes becomes "several". At other sizes the reason may be another one.
std::string common_text(const std::string& a, const std::string& b) {
  if (a == b) return a;
  const std::vector<std::string> words = words_of(a), others = words_of(b);
  std::string text;
  bool alike = words.size() == others.size();
  for (size_t i = 0; i < words.size() && alike; ++i) {
    const bool same = words[i] == others[i];
    alike = same || (is_number(words[i]) && is_number(others[i]));
    text += (text.empty() ? "" : " ") + (same ? words[i] : "several");
  }
  return alike ? text : "has a reason that depends on sizes";
}
void make_reasons_common(PlanForm& form, const std::vector<PlanForm>& forms) {
  for (auto& [value, reason] : form.program.functions.back().kept)
    for (const PlanForm& other : forms) {
      const auto& kept = own_function(other).kept;
      if (const auto found = kept.find(value); found != kept.end())
        reason = common_text(reason, found->second);
    }
}

bool has_names(const loops::SizeIds& named) {
  return std::any_of(named.begin(), named.end(), [](const auto& one) { return one.has_value(); });
}

// Values that are made by steps with named sizes: their elements, or how many there are, differ
// from size to size.
std::set<ValueId> sized_values(const loops::Routine& routine) {
  std::set<ValueId> sized;
  for (const loops::Step& step : routine.steps) {
    const auto* nest = std::get_if<loops::Nest>(&step);
    const ValueIds written = loops::writes(step);
    const auto of_type = [&](ValueId value) { return has_names(routine.values[value].named); };
    bool is_sized = std::any_of(written.begin(), written.end(), of_type);
    if (nest != nullptr) {
      is_sized |= has_names(nest->named);
      for (const composit::Expr& part : composit::parts_of(loops::expressions(nest->statement)))
        is_sized |= part.kind() == composit::ExprKind::parameter;
    }
    if (is_sized) sized.insert(written.begin(), written.end());
  }
  return sized;
}

// A port that is this value of the program.
void set_sizes(composit::Type& port, const loops::Value& value) {
  const composit::Dims& sizes = value.model_sizes.empty() ? value.type.sizes : value.model_sizes;
  if (port.sizes == sizes) return;
  port.sizes = sizes;
  port.strides = composit::contiguous_strides(sizes);
}

}  // namespace

PlanForm form_of(const composit::Graph& graph, const PlanOptions& options) {
  return Former(options).run(graph);
}

PlanForm form_of(const std::vector<composit::Graph>& graphs, const PlanOptions& options,
                 const std::vector<std::string>& sizes) {
  std::vector<PlanForm> forms;
  for (const composit::Graph& graph : graphs) forms.push_back(form_of(graph, options));
  return form_of(forms, sizes);
}

PlanForm form_of(const std::vector<PlanForm>& forms, const std::vector<std::string>& sizes) {
  std::vector<loops::Program> programs;
  for (const PlanForm& form : forms) programs.push_back(form.program);
  if (!forms.empty()) expect_one_form(forms);
  loops::Program program = loops::unify(programs, {.names = sizes});
  PlanForm form = forms[0];
  form.program = std::move(program);
  form.sized = sized_values(own_function(form));
  make_reasons_common(form, forms);
  return form;
}

PlanForm bind_sizes(PlanForm form, const loops::SizeNumbers& sizes) {
  form.program = with_sides(loops::bind_sizes(std::move(form.program), sizes));
  const loops::Routine& routine = own_function(form);
  for (auto& [value, layout] : form.layouts)
    layout = with_type(std::move(layout), routine.values[value].type);
  // Behind them stand constants of the program.
  for (size_t i = 0; i < form.ports.inputs.size(); ++i)
    set_sizes(form.ports.inputs[i], routine.values[routine.inputs[i]]);
  auto result = routine.results.begin();
  for (composit::Type& type : form.ports.results)
    if (composit::is_defined(type)) set_sizes(type, routine.values[*result++]);
  return form;
}

}  // namespace flashlight::mosaic
