#include "flashlight/mosaic/describe.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

#include "composit/ir/scope.h"
#include "flashlight/loops/schedule.h"
#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/buffers.h"
#include "flashlight/mosaic/loops_writer.h"
#include "flashlight/text/literal.h"

namespace flashlight::mosaic {
namespace {

using loops::Statement;

// "56 x 56", from the outside in; "1" for none.
std::string extents(const Product& product, const AxisIds& axes) {
  std::vector<int64_t> list;
  for (const AxisId axis : axes) list.push_back(product.extent(axis));
  return list.empty() ? "1" : fmt::format("{}", fmt::join(list, " x "));
}

std::string product_loops(const Kernel& kernel) {
  const Product& product = *kernel.product;
  const std::string panels =
      fmt::format("{} columns x {} terms", product.column_count(), extents(product, product.terms));
  if (kernel.form == Kernel::Form::pack) return panels + " in panels";
  const std::string sizes = extents(product, product.rows) + " rows x " + panels;
  const int64_t batch = product.size(product.batch);
  const std::string tiles =
      kernel.winograd > 0 ? fmt::format("Winograd's tiles of {0} x {0} pixels", kernel.winograd)
      : kernel.strassen   ? "halves by Strassen's algorithm, in tiles"
      : batch > 1         ? "tiles of rows x a panel of columns"
                          : "strips of rows x panels of columns, in tiles";
  return (batch > 1 ? fmt::format("{} times (threads) ", batch) : "") + sizes + ": " + tiles;
}

std::string attention_loops(const Attention& attention) {
  const Product& scores = attention.scores;
  return fmt::format(
      "{} heads x {} queries (threads), in blocks of keys: {} keys, {} wide, values {} wide",
      scores.size(scores.batch), scores.extent(scores.rows[0]), scores.extent(*scores.columns),
      scores.extent(scores.terms[0]), attention.results.extent(*attention.results.columns));
}

// "mean: for 32, 768 terms": what is inside of the loops that steps share.
std::string step_loops(const loops::Routine& routine, const loops::Schedule& schedule,
                       StepId number) {
  const std::string name = loops::short_name(loops::origin_of(routine.steps[number]));
  const auto* nest = std::get_if<loops::Nest>(&routine.steps[number]);
  if (nest == nullptr) return name;
  const Statement& statement = nest->statement;
  std::vector<std::string> loops, terms;
  for (size_t i = schedule.shared[number]; i < schedule.order[number].size(); ++i)
    loops.push_back(
        fmt::format("for {}", statement.axes[schedule.order[number][i]].extent.value()));
  for (const composit::Axis& axis : statement.axes)
    if (axis.kind != composit::AxisKind::parallel)
      terms.push_back(std::to_string(axis.extent.value()));
  if (!terms.empty()) loops.push_back(fmt::format("{} terms", fmt::join(terms, " x ")));
  return loops.empty() ? name : fmt::format("{}: {}", name, fmt::join(loops, ", "));
}

std::string nested(const loops::Routine& routine, const loops::Schedule& schedule,
                   const std::vector<loops::Item>& items, bool divided) {
  std::vector<std::string> parts;
  for (const loops::Item& item : items)
    parts.push_back(item.is_loop()
                        ? fmt::format("for {}{} {{ {} }}", item.extent, divided ? " (threads)" : "",
                                      nested(routine, schedule, item.body, false))
                        : step_loops(routine, schedule, item.step));
  return fmt::format("{}", fmt::join(parts, "; "));
}

int64_t parallel_points(const Statement& statement) {
  int64_t count = 1;
  for (AxisId axis; axis < loops::parallel_axes(statement); ++axis)
    count *= statement.axes[axis].extent.value();
  return count;
}

int64_t flops_of(const Statement& statement) {
  int64_t inside = 0, behind = 0;
  for (const auto* list : {&statement.body, &statement.combine})
    for (const composit::Expr& x : *list) inside += loops::cost_of(x).operations;
  for (const composit::Store& store : statement.stores)
    behind += loops::cost_of(store.value).operations;
  return loops::iterations(statement) * inside + parallel_points(statement) * behind;
}

// Of a table that indices pick rows from, what they pick at most.
int64_t bytes_of(const Plan& plan, const Kernel& kernel) {
  std::set<ValueId> values;
  for (const ValueId value : touched(plan, kernel)) values.insert(value);
  int64_t most = kernel.form == Kernel::Form::loops ? 0 : INT64_MAX;
  for (const StepId step : kernel.steps)
    if (const auto* nest = std::get_if<loops::Nest>(&plan.routine.steps[step]);
        nest != nullptr && kernel.form == Kernel::Form::loops)
      most += loops::iterations(nest->statement);
    else
      most = INT64_MAX;
  int64_t sum = 0;
  for (const ValueId value : values) {
    const composit::Type& type = plan.routine.values[value].type;
    const auto item = static_cast<int64_t>(composit::item_size(type.dtype));
    if (plan.homes[value] != Home::kernel) sum += std::min(type.numel(), most) * item;
  }
  return sum;
}

void add_operations(const loops::Step& step, std::vector<loops::Origin>& operations) {
  const auto add = [&](const loops::Origin& one) {
    if (std::find(operations.begin(), operations.end(), one) == operations.end())
      operations.push_back(one);
  };
  if (const auto* nest = std::get_if<loops::Nest>(&step))
    for (const loops::Origin& one : nest->fused) add(one);
  add(loops::origin_of(step));
}

// A comment, broken where lines are full.
text::Code lines_of(std::string text) {
  constexpr size_t kMost = text::kColumns - 3;  // behind "// "
  text::Code code;
  while (text.size() > kMost) {
    const size_t space = text.rfind(' ', kMost);
    if (space == std::string::npos) break;
    code += text::comment(text.substr(0, space));
    text.erase(0, space + 1);
  }
  if (!text.empty()) code += text::comment(text);
  return code;
}

std::string amount(double x) {
  return x >= 1e6   ? fmt::format("{:.1f} M", x * 1e-6)
         : x >= 1e3 ? fmt::format("{:.1f} k", x * 1e-3)
                    : fmt::format("{:.0f} ", x);
}

}  // namespace

Description describe(const Plan& plan, const Kernel& kernel) {
  Description one;
  for (const StepId step : kernel.steps) add_operations(plan.routine.steps[step], one.operations);
  one.bytes = bytes_of(plan, kernel);
  if (kernel.attention) {
    one.loops = attention_loops(*kernel.attention);
    one.flops = kernel.attention->scores.operations() + kernel.attention->results.operations();
  } else if (kernel.product) {
    one.loops = product_loops(kernel);
    if (kernel.form == Kernel::Form::product)
      one.flops = kernel.product->operations() + flops_of(kernel.product->statement) -
                  2 * loops::iterations(kernel.product->statement);
  } else if (kernel.form == Kernel::Form::loops) {
    const loops::Routine routine = routine_of(plan, kernel).routine;
    const loops::Schedule schedule = loops::schedule_of(routine);
    one.loops = nested(routine, schedule, schedule.items, kernel.trips > 0);
    for (const loops::Step& step : routine.steps)
      if (const auto* nest = std::get_if<loops::Nest>(&step))
        one.flops += flops_of(nest->statement);
  }
  return one;
}

std::string names_of(const std::vector<loops::Origin>& operations) {
  std::vector<std::string> names;
  for (const loops::Origin& one : operations) {
    const std::string name = loops::short_name(one);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string work_of(const Description& one) {
  return fmt::format(
      "{}FLOP, {}B, {:.2g} FLOP per byte", amount(static_cast<double>(one.flops)),
      amount(static_cast<double>(one.bytes)),
      static_cast<double>(one.flops) / static_cast<double>(std::max<int64_t>(one.bytes, 1)));
}

text::Code comment_of(const Plan& plan, const Kernel& kernel) {
  const Description one = describe(plan, kernel);
  text::Code code = lines_of(names_of(one.operations));
  code += lines_of(one.loops);
  if (one.flops > 0) code += lines_of(work_of(one));
  return code;
}

std::vector<std::string> value_names(const loops::Routine& routine) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const loops::Value& value : routine.values)
    names.push_back(composit::unused_name(text::identifier(value.name), taken));
  return names;
}

}  // namespace flashlight::mosaic
