#include "flashlight/text/nest_writer.h"

#include <algorithm>
#include <cmath>

#include "composit/ir/error.h"
#include "composit/ir/scope.h"
#include "flashlight/loops/schedule.h"
#include "flashlight/loops/statement.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"
#include "flashlight/text/printer.h"

namespace flashlight::text {
namespace {

using composit::AxisKind;
using composit::DType;
using composit::Store;
using ScalarFunction = composit::Function;

// Shorter sums become loops: fl::sum adds in several lanes, which pays for long sums only.
constexpr int64_t kLeastTerms = 16;
// The most elements of an array that a loop keeps on the stack.
constexpr int64_t kMaxStackElements = 8192;

bool is_accumulator(const Expr& x) { return x.kind() == ExprKind::accumulator; }

// The function of the runtime that folds in several lanes; nullptr if there is none.
const char* lane_function_of(const Statement& statement) {
  const auto function = fold_function(statement);
  const DType dtype = statement.body[0].dtype();
  if (dtype != DType::float32 && dtype != DType::float64) return nullptr;
  if (is_sum(statement)) return "fl::sum";
  const bool from_infinity = function && statement.init[0].kind() == ExprKind::literal &&
                             std::isinf(std::get<double>(statement.init[0].value()));
  if (from_infinity && function == ScalarFunction::max) return "fl::largest";
  if (from_infinity && function == ScalarFunction::min) return "fl::smallest";
  return nullptr;
}

// True if the text has names of sizes for it.
bool is_named(int64_t extent) { return current_names() != nullptr && is_open_number(extent); }

// A number of terms, which fl::sum takes as an int; data is wider.
std::string counted(const std::string& number) {
  return has_open_numbers() && has_wide_indices() ? "static_cast<int>(" + number + ")" : number;
}

}  // namespace

std::string loop_name(const std::function<bool(const std::string& name)>& is_free) {
  static const std::string kLetters = "ijklmnopqrstuvwxyz";
  for (int round = 0;; ++round)
    for (const char letter : kLetters)
      if (const std::string name = letter + (round == 0 ? "" : std::to_string(round));
          is_free(name))
        return name;
}

NestWriter::NestWriter(const Statement& statement, const AxisIds& order, const NestContext& context)
    : statement_(statement), context_(context) {
  leaves_.axes.resize(statement.axes.size());
  leaves_.element = context.element;
  leaves_.type = context.type;
  leaves_.range = context.range;
  leaves_.mention = context.mention;
  loop_names_.insert(context.loops.begin(), context.loops.end());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i < context.loops.size())
      leaves_.axes[order[i]] = context.loops[i];
    else
      rest_.push_back(order[i]);
  }
}

Code NestWriter::write() {
  if (context_.plain) return statement_.init.empty() ? elementwise() : accumulated();
  if (const auto contraction = contraction_of(statement_)) return product(*contraction);
  if (statement_.init.empty()) return elementwise();
  return reduction();
}

// fl::sum takes several extents as constants.
bool NestWriter::has_named_extents(const AxisIds& axes) const {
  return std::any_of(axes.begin(), axes.end(),
                     [&](AxisId axis) { return is_named(statement_.axes[axis].extent); });
}

AxisIds NestWriter::axes_of(AxisKind kind) const {
  AxisIds axes;
  for (const AxisId i : loops::axes_of(statement_))
    if (statement_.axes[i].kind == kind) axes.push_back(i);
  return axes;
}

// Names loop variables from the outermost loop in.
std::string NestWriter::name_axis(AxisId axis) {
  return leaves_.axes[axis] = loop_name([this](const std::string& name) {
           return !context_.taken->contains(name) && loop_names_.insert(name).second;
         });
}
void NestWriter::name_axes(const AxisIds& axes) {
  for (AxisId axis : axes) name_axis(axis);
}

// ---- loops --------------------------------------------------------------------------------------

NestWriter::Bounds NestWriter::bounds_of(const AxisIds& axes, const std::vector<Expr>& predicates) {
  Bounds bounds;
  composit::IndexAnalysis analysis(statement_.axes);
  ExpressionWriter text = writer();
  for (const Expr& predicate : predicates) {
    const auto bound = composit::bound_of(predicate, analysis);
    const auto inner = std::find_if(axes.rbegin(), axes.rend(), [&](AxisId axis) {
      return bound && bound->coefficients[axis] != 0;
    });
    if (inner == axes.rend() || std::abs(bound->coefficients[*inner]) != 1) {
      bounds.conditions.push_back(predicate);
      continue;
    }
    const int64_t sign = bound->coefficients[*inner];
    composit::Affine rest = *bound;
    rest.coefficients[*inner] = 0;
    const composit::Affine one{.coefficients = {}, .constant = 1};
    const composit::Affine limit =
        sign > 0 ? *composit::Affine{.coefficients = {}, .constant = 0}.plus(rest, -1)
                 : *rest.plus(one);
    const Expr limit_text = composit::to_expr(limit);
    text.plan({limit_text});
    auto& [low, high] = bounds.limits[*inner];
    (sign > 0 ? low : high).push_back(text.text(limit_text));
  }
  return bounds;
}

For NestWriter::header(AxisId axis, const Bounds& bounds) const {
  const int64_t extent = statement_.axes[axis].extent;
  For loop = {extent > INT32_MAX ? "int64_t" : index_type(), leaves_.axes[axis], "0",
              bare_number(extent)};
  if (const auto found = bounds.limits.find(axis); found != bounds.limits.end()) {
    // Numbers that are data are wider than others.
    const std::string space = context_.plain ? "fl::" : "std::",
                      type = context_.plain || has_open_numbers() || has_wide_indices()
                                 ? "<int64_t>("
                                 : "(";
    for (const std::string& limit : found->second.first)
      loop.low = space + "max" + type + loop.low + ", " + limit + ")";
    for (const std::string& limit : found->second.second)
      loop.high = space + "min" + type + loop.high + ", " + limit + ")";
  }
  return loop;
}

Code NestWriter::loops(const AxisIds& axes, const Bounds& bounds, Code body, bool rolled) const {
  for (size_t i = axes.size(); i-- > 0;) {
    body = block(header(axes[i], bounds), body);
    // g++ 12 gives reads under a condition wrong masks in loops that it unrolls (-O3, AVX).
    if (!rolled || context_.plain || i + 1 < axes.size()) continue;
    Code with_pragma = directive("#pragma GCC unroll 1");
    with_pragma += body;
    body = std::move(with_pragma);
  }
  return body;
}

Code NestWriter::guarded(const std::vector<Expr>& conditions, Code body) {
  const Expr all = composit::all_of(conditions);
  if (!all.defined()) return body;
  ExpressionWriter text = writer();
  text.plan({all});
  Code code = text.locals(all);
  code += block(If{text.text(all)}, body);
  return code;
}

// ---- stores -------------------------------------------------------------------------------------

Code NestWriter::stores(ExpressionWriter& text, bool declare) {
  std::vector<Expr> roots;
  for (Store& one : statement_.stores) {
    one.value = composit::cast(one.value, context_.type(value_of(one)).dtype);
    roots.insert(roots.end(), one.at.begin(), one.at.end());
    roots.push_back(one.value);
  }
  text.plan(roots);
  Code code;
  for (const Store& one : statement_.stores) code += store(text, one, declare);
  return code;
}

Code added(const std::string& element, ExpressionWriter& text, const Expr& value, DType dtype) {
  if (dtype == DType::bool_) return assignment(element, element + " || " + text.addend(value));
  if (composit::item_size(dtype) < 4)
    return assignment(element, "static_cast<" + type_name(dtype) + ">(" + element + " + " +
                                   text.addend(value) + ")");
  return text.add(element, value);
}

Code NestWriter::store(ExpressionWriter& text, const Store& one, bool declare) {
  Code code;
  std::vector<std::string> indices;
  for (size_t i = 0; i < one.at.size(); ++i) {
    code += text.locals(one.at[i]);
    indices.push_back(text.index(one.at[i], context_.type(value_of(one)).sizes[i]));
  }
  code += text.locals(one.value);
  const DType dtype = context_.type(value_of(one)).dtype;
  context_.mention(value_of(one));
  const Element target = context_.element(value_of(one), indices);
  const std::string element = target.str();
  if (declare && context_.declares(value_of(one))) {
    code +=
        assignment("const " + compute_type_name(dtype) + " " + element, text.expression(one.value));
    return code;
  }
  code += one.add ? added(element, text, one.value, dtype) : text.assign(target, one.value);
  return code;
}

Code NestWriter::elementwise() {
  name_axes(rest_);
  const Bounds bounds = bounds_of(rest_);
  ExpressionWriter text = writer();
  Code body = stores(text, rest_.empty() && !statement_.domain.defined());
  const bool rolled = text.has_guarded_reads();
  return loops(rest_, bounds, guarded(bounds.conditions, std::move(body)), rolled);
}

// ---- reductions ---------------------------------------------------------------------------------

Code NestWriter::reduction() {
  const auto function = fold_function(statement_);
  const AxisIds reduced = axes_of(AxisKind::reduction);
  if (function && wants_reduction_outside(statement_) && !rest_.empty()) {
    const int64_t extent = statement_.axes[rest_.back()].extent;
    const bool plain = accumulates_in_result();
    const bool fits = extent <= kMaxStackElements && !is_named(extent);
    if (plain || fits) return reduction_outside();
  }
  const char* lane_function = lane_function_of(statement_);
  const auto extent_of = [&](AxisId axis) { return statement_.axes[axis].extent; };
  double terms = 1;  // fl::sum counts them in an int if there are several indices
  for (const AxisId axis : reduced) terms *= static_cast<double>(extent_of(axis));
  const bool lanes = lane_function != nullptr && !reduced.empty() &&
                     extent_of(reduced.back()) >= kLeastTerms &&
                     (reduced.size() == 1 || (terms <= INT32_MAX && !has_named_extents(reduced)));
  if (lanes) {
    const std::vector<std::string> names = leaves_.axes;
    const std::set<std::string> loop_names = loop_names_;
    name_axes(rest_);
    name_axes(reduced);
    const Bounds bounds = bounds_of(reduced);
    const bool free = bounds.conditions.empty() && (reduced.size() == 1 || bounds.limits.empty());
    leaves_.axes = names;
    loop_names_ = loop_names;
    if (free) return folded(lane_function);
  }
  return accumulated();
}

std::string NestWriter::accumulator_name(size_t number) {
  const ValueId result = value_of(statement_.stores[0]);
  std::string base = number == 0 ? context_.name(result) + "_sum" : "second_sum";
  if (const auto function = fold_function(statement_)) {
    if (*function == ScalarFunction::max) base = "largest";
    if (*function == ScalarFunction::min) base = "smallest";
    if (*function == ScalarFunction::mul) base = "product";
    if (*function == ScalarFunction::add) base = "sum";
  }
  return composit::unused_name(base, *context_.taken);
}

// fl::sum<float>(768, [&](int j) { return x[i][j]; })
// fl::sum<float, 16, 16>([&](int j, int k) { return x[i][j][k]; })
Call NestWriter::fold_call(const std::string& function) {
  const AxisIds reduced = axes_of(AxisKind::reduction);
  name_axes(rest_);
  name_axes(reduced);
  const Bounds bounds = bounds_of(reduced);
  const Expr& body = statement_.body[0];
  ExpressionWriter text = writer();
  text.plan({body});
  Code inside = text.locals(body);
  inside += returned(text.expression(body));
  std::string sizes, parameters;
  for (const AxisId axis : reduced) {
    sizes += ", " + std::to_string(statement_.axes[axis].extent);
    const bool used = composit::depends_on(body, ExprKind::axis, axis);
    parameters += (parameters.empty() ? "int" : ", int") + (used ? " " + leaves_.axes[axis] : "");
  }
  Call call = {"", function + "<" + type_name(body.dtype()), {}};
  if (reduced.size() == 1) {
    const For loop = header(reduced[0], bounds);
    if (!bounds.limits.empty()) call.arguments.push_back(counted(loop.low));
    call.arguments.push_back(counted(loop.high));
  } else {
    call.function += sizes;
  }
  call.function += ">";
  call.arguments.push_back(Lambda{.head = "[&](" + parameters + ")", .body = std::move(inside)});
  return call;
}

// const float sum = fl::sum<float>(768, [&](int j) { return x[i][j]; });
// If the sum is used once and all fits one line, its call is written inline; else it gets a name.
Code NestWriter::folded(const std::string& function) {
  Call fold = fold_call(function);
  const size_t indent = 2 * rest_.size() + 2 * context_.loops.size() + 2;
  leaves_.accumulators = {{"_"}};  // the call or a name will replace it
  const std::set<std::string> taken = *context_.taken;
  ExpressionWriter trial = writer();
  Code code = stores(trial, rest_.empty());
  const auto* store =
      code.nodes.size() == 1 ? std::get_if<Assignment>(&code.nodes[0]->kind) : nullptr;
  const bool once = store != nullptr && store->value.accumulators() == 1;
  if (const auto line = text_of(fold);
      once && line && indent + width(*store) + line->size() <= kColumns)
    return loops(rest_, {}, assignment(store->target, store->value.fill(*line), store->sign));
  if (once && store->sign == "=" && is_accumulator(statement_.stores[0].value)) {
    fold.target = store->target;
    return loops(rest_, {}, call(std::move(fold)));
  }
  *context_.taken = taken;
  const std::string name = accumulator_name(0);
  fold.target = "const " + type_name(statement_.body[0].dtype()) + " " + name;
  leaves_.accumulators = {{name}};
  ExpressionWriter after = writer();
  code = call(std::move(fold));
  code += stores(after, rest_.empty());
  return loops(rest_, {}, std::move(code));
}

// 16-bit floats in memory would be rounded at each point.
bool NestWriter::accumulates_in_result() const {
  const Store& first = statement_.stores[0];
  return is_accumulator(first.value) && !composit::is_half(context_.type(value_of(first)).dtype);
}

// Runs the reduction outside of the last parallel axis, which is contiguous in memory.
Code NestWriter::reduction_outside() {
  const AxisId inner = rest_.back();
  const AxisIds outer(rest_.begin(), rest_.end() - 1), reduced = axes_of(AxisKind::reduction);
  name_axes(outer);
  const std::set<std::string> loop_names = loop_names_;
  name_axes(reduced);
  name_axis(inner);
  const Store& first = statement_.stores[0];
  const bool plain = statement_.stores.size() == 1 && accumulates_in_result();
  Element element;
  Code code;
  if (plain) {
    ExpressionWriter text = writer();
    text.plan(first.at);
    std::vector<std::string> indices;
    for (size_t i = 0; i < first.at.size(); ++i)
      indices.push_back(text.index(first.at[i], context_.type(value_of(first)).sizes[i]));
    context_.mention(value_of(first));
    element = context_.element(value_of(first), indices);
  } else {
    const std::string name = accumulator_name(0);
    element = {name, {leaves_.axes[inner]}};
    code += declaration(compute_type_name(statement_.init[0].dtype()),
                        name + "[" + open_number(statement_.axes[inner].extent) + "]");
  }
  leaves_.accumulators = {element};
  ExpressionWriter text = writer();
  text.plan(statement_.init);
  code += block(header(inner), assignment(element.str(), text.expression(statement_.init[0])));
  AxisIds axes = reduced;
  axes.push_back(inner);
  const Bounds bounds = bounds_of(axes);
  Code point = update();
  code += loops(axes, bounds, guarded(bounds.conditions, std::move(point)), guarded_update_);
  if (!plain) {
    ExpressionWriter after = writer();
    code += block(header(inner), stores(after, false));
    if (outer.empty()) return braced("", code);
  }
  return loops(outer, {}, std::move(code));
}

// Combines one point into the accumulators.
Code NestWriter::update() {
  const auto function = fold_function(statement_);
  ExpressionWriter text = writer();
  if (function == ScalarFunction::add && statement_.body[0].dtype() != DType::bool_ &&
      composit::item_size(statement_.body[0].dtype()) >= 4) {
    text.plan(statement_.body);
    guarded_update_ = text.has_guarded_reads();
    Code code = text.locals(statement_.body[0]);
    code += text.add(leaves_.accumulators[0].str(), statement_.body[0]);
    return code;
  }
  leaves_.left = leaves_.accumulators;
  std::vector<Expr> next = composit::replace(statement_.combine, [&](const Expr& part) {
    return part.kind() == ExprKind::right
               ? composit::cast(statement_.body[part.number()], part.dtype())
               : Expr();
  });
  for (size_t i = 0; i < next.size(); ++i)
    next[i] = composit::cast(next[i], statement_.init[i].dtype());
  text.plan(next);
  guarded_update_ = text.has_guarded_reads();
  Code code;
  for (const Expr& one : next) code += text.locals(one);
  if (next.size() == 1) {
    code += text.assign(leaves_.accumulators[0], next[0]);
    return code;
  }
  for (size_t i = 0; i < next.size(); ++i)
    code += assignment(
        "const " + compute_type_name(next[i].dtype()) + " next_" + leaves_.accumulators[i].str(),
        text.expression(next[i]));
  for (const Element& one : leaves_.accumulators)
    code += assignment(one.str(), "next_" + one.str());
  return code;
}

Code NestWriter::accumulated() {
  name_axes(rest_);
  const AxisIds scanned = axes_of(AxisKind::scan), reduced = axes_of(AxisKind::reduction);
  name_axes(scanned);
  name_axes(reduced);
  AxisIds inner = scanned;
  inner.insert(inner.end(), reduced.begin(), reduced.end());
  const Bounds bounds = bounds_of(inner);
  leaves_.accumulators.clear();
  Code code;
  ExpressionWriter text = writer();
  text.plan(statement_.init);
  for (size_t i = 0; i < statement_.init.size(); ++i) {
    const std::string name = accumulator_name(i);
    leaves_.accumulators.push_back({name});
    code += assignment(compute_type_name(statement_.init[i].dtype()) + " " + name,
                       text.expression(statement_.init[i]));
  }
  Code step = update();
  if (scanned.empty()) {
    code += loops(reduced, bounds, guarded(bounds.conditions, std::move(step)), guarded_update_);
    ExpressionWriter after = writer();
    code += stores(after, rest_.empty());
    return loops(rest_, {}, std::move(code));
  }
  ExpressionWriter after = writer();
  if (!reduced.empty()) {
    step = loops(reduced, bounds, guarded(bounds.conditions, std::move(step)), guarded_update_);
    step += stores(after, false);
  } else {
    step += stores(after, false);
    step = guarded(bounds.conditions, std::move(step));
  }
  code += loops(scanned, bounds, std::move(step));
  return loops(rest_, {}, std::move(code));
}

}  // namespace flashlight::text
