#include "flashlight/text/expression.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "composit/ir/error.h"
#include "composit/ir/scope.h"
#include "composit/op/scalar_function.h"
#include "flashlight/loops/statement.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"

namespace flashlight::text {
namespace {

using composit::DType;
using composit::FunctionDType;
using ScalarFunction = composit::Function;

constexpr int kSelectPrecedence = 1, kLowestOperator = 2, kProduct = 11, kUnary = 12, kPostfix = 14;
// A subexpression whose text is longer than this is split into named parts.
constexpr size_t kLongText = 72;
// An index whose text is at most this long gets no name, but is written at each use.
constexpr size_t kShortText = 12;

bool is_literal(const Expr& x) { return x.kind() == ExprKind::literal; }
bool is_narrow_integer(DType dtype) {
  return dtype == DType::int8 || dtype == DType::uint8 || dtype == DType::int16 ||
         dtype == DType::uint16 || dtype == DType::uint32;
}

bool is_unsigned(DType dtype) {
  return dtype == DType::uint8 || dtype == DType::uint16 || dtype == DType::uint32 ||
         dtype == DType::uint64;
}

// Narrower ones fit an int.
bool wraps_by_function(DType dtype) {
  return is_device_text() && (dtype == DType::int32 || dtype == DType::int64);
}

// The function of a device that wraps where the operator is undefined; nullptr if there is none.
const char* wrapping_function(const Expr& x) {
  switch (x.function()) {
    case ScalarFunction::add:
      return "plus";
    case ScalarFunction::sub:
      return "minus";
    case ScalarFunction::mul:
      return "times";
    case ScalarFunction::neg:
      return "negative";
    default:
      return nullptr;
  }
}

// The value of a real literal that is an integer.
std::optional<int64_t> whole_number(const Expr& x) {
  constexpr double kMost = 1 << 24;
  const auto* real = std::get_if<double>(&x.value());
  const bool is_real = x.dtype() == DType::float32 || x.dtype() == DType::float64;
  if (real == nullptr || !is_real || std::abs(*real) >= kMost || std::trunc(*real) != *real)
    return std::nullopt;
  return static_cast<int64_t>(*real);
}

// True if `index` is x < 0 ? x + n : x, which counts from the end if x is negative.
bool may_count_from_end(const Expr& index) {
  if (!index.is(ScalarFunction::select) || !index[0].is(ScalarFunction::lt)) return false;
  const Expr& x = index[2];
  return index[0][0].same(x) && composit::is_literal(index[0][1], 0) &&
         index[1].is(ScalarFunction::add) && index[1][0].same(x) && is_literal(index[1][1]);
}

// True for + - * of axes and literals, or of what other functions make of these: ints in C++, as
// axes are.
bool is_of_axes(const Expr& x) {
  if (!x.is(ScalarFunction::add) && !x.is(ScalarFunction::sub) && !x.is(ScalarFunction::mul) &&
      !x.is(ScalarFunction::neg))
    return false;
  const std::vector<Expr> parts = composit::parts_of({x});
  return std::all_of(parts.begin(), parts.end(), [](const Expr& part) {
    return part.kind() == ExprKind::call || part.kind() == ExprKind::axis ||
           part.kind() == ExprKind::literal;
  });
}

// True for axes and literals that + - * combine: such an index is an int if its axes are.
bool is_plain_index(const Expr& x) {
  const std::vector<Expr> parts = composit::parts_of({x});
  return std::all_of(parts.begin(), parts.end(), [](const Expr& part) {
    if (part.kind() != ExprKind::call)
      return part.kind() == ExprKind::axis || part.kind() == ExprKind::literal;
    return part.is(ScalarFunction::add) || part.is(ScalarFunction::sub) ||
           part.is(ScalarFunction::mul) || part.is(ScalarFunction::neg);
  });
}

// A name for a subexpression, after the function that computes it.
std::string noun(const Expr& x) {
  if (x.dtype() == DType::int64 && !composit::has_loads(x)) return "index";
  if (x.kind() == ExprKind::load) return "element";
  switch (x.function()) {
    case ScalarFunction::add:
      return "sum";
    case ScalarFunction::sub:
      return "difference";
    case ScalarFunction::mul:
      return "product";
    case ScalarFunction::div:
      return "quotient";
    case ScalarFunction::neg:
      return "negative";
    case ScalarFunction::select:
      return "selected";
    case ScalarFunction::lt:
    case ScalarFunction::le:
    case ScalarFunction::gt:
    case ScalarFunction::ge:
    case ScalarFunction::eq:
    case ScalarFunction::ne:
    case ScalarFunction::logical_and:
    case ScalarFunction::logical_or:
    case ScalarFunction::logical_not:
      return "condition";
    case ScalarFunction::cast:
      return "converted";
    case ScalarFunction::min:
      return "smaller";
    case ScalarFunction::max:
      return "larger";
    default:
      return std::string(composit::info_of(x.function()).name) + "_of";
  }
}

}  // namespace

ExpressionWriter::ExpressionWriter(const Leaves& leaves, const std::vector<composit::Axis>& axes,
                                   std::set<std::string>& taken)
    : leaves_(leaves), analysis_(axes), taken_(taken) {}

void ExpressionWriter::plan(const std::vector<Expr>& all) {
  std::vector<Expr> roots;
  for (const Expr& root : all)
    if (root.defined()) roots.push_back(root);
  measures_ = true;
  order_ = composit::parts_of(roots);
  parts_ = {};
  wide_ = false;
  for (size_t i = 0; i < order_.size(); ++i) {
    parts_.insert(order_[i].hash(), {});
    if (order_[i].dtype() != DType::int64) continue;
    wide_ |= !analysis_.range(order_[i]).inside(INT32_MIN, INT32_MAX) &&
             (analysis_.affine(order_[i]).has_value() || is_of_axes(order_[i]));
  }
  for (const Expr& root : roots) ++parts_.find(root.hash())->uses;
  for (const Expr& part : order_)
    for (const Expr& argument : part.arguments()) ++parts_.find(argument.hash())->uses;
  mark_always(roots);
  for (const Expr& x : order_) {
    Part& part = *parts_.find(x.hash());
    part.named = deserves_name(x, part);
  }
  for (const Expr& root : roots) split_long(root);
  measures_ = false;
}

bool ExpressionWriter::has_guarded_reads() const {
  return std::any_of(order_.begin(), order_.end(), [&](const Expr& x) {
    const Part& part = *parts_.find(x.hash());
    return x.kind() == ExprKind::load && !part.always && !part.named;
  });
}

// Marks expressions that are evaluated unconditionally: not the branches of a select.
void ExpressionWriter::mark_always(const std::vector<Expr>& roots) {
  std::vector<Expr> open = roots;
  while (!open.empty()) {
    const Expr x = open.back();
    open.pop_back();
    Part& part = *parts_.find(x.hash());
    if (part.always) continue;
    part.always = true;
    if (x.is(ScalarFunction::select))
      open.push_back(x[0]);
    else
      open.insert(open.end(), x.arguments().begin(), x.arguments().end());
  }
}

// True if `x` may be evaluated unconditionally: all of its loads are in range.
bool ExpressionWriter::is_safe(const Expr& x) {
  for (const Expr& part : composit::parts_of({x})) {
    if (part.kind() != ExprKind::load) continue;
    const Type& type = leaves_.type(value_of(part));
    for (size_t i = 0; i < part.arguments().size(); ++i)
      if (!analysis_.range(part[i]).inside(0, type.sizes[i] - 1)) return false;
  }
  return true;
}

bool ExpressionWriter::deserves_name(const Expr& x, const Part& part) {
  // An element that only one branch uses is read before the branch: g++ 12 turns conditional reads
  // into masked ones, with one mask for all rounds of a loop that it unrolled (-O3, AVX).
  if (x.kind() == ExprKind::load && !part.always && !is_index_of_load(x)) return is_safe(x);
  if (part.uses < 2 || x.kind() != ExprKind::call) return false;
  if (x.is(ScalarFunction::cast) && x[0].kind() != ExprKind::call) return false;
  if (may_count_from_end(x) && is_index_of_load(x)) return false;
  if (x.dtype() == DType::int64 && !composit::has_loads(x))  // an index, if it is a long one
    return part.always && write_part(x, 0).size() > kShortText;
  if (x.dtype() == DType::bool_ && !composit::has_loads(x)) return false;
  return part.always || is_safe(x);
}

// Names parts of expressions that would be too long for a line, innermost first.
void ExpressionWriter::split_long(const Expr& root) {
  for (const Expr& x : composit::parts_of({root})) {
    if (x.kind() != ExprKind::call) continue;
    // fl::wrapped is short; nvcc warns of parts that it leaves unused.
    if (is_device_text() && may_count_from_end(x) && is_index_of_load(x)) continue;
    if (parts_.find(x.hash())->named || write_part(x, 0).size() <= kLongText) continue;
    for (const Expr& argument : x.arguments()) {
      Part& part = *parts_.find(argument.hash());
      const bool long_enough = argument.kind() == ExprKind::call &&
                               write(argument, 0).size() > kLongText / 4 &&
                               argument.dtype() != DType::int64;
      // An expensive branch gets no name, so that it is computed only if it is taken.
      const bool branch = x.is(ScalarFunction::select) && cost_of(argument).expensive;
      if (long_enough && !branch && (part.always || is_safe(argument))) part.named = true;
    }
  }
}

std::string ExpressionWriter::fresh_name(const Expr& x) {
  return composit::unused_name(identifier(noun(x)), taken_);
}

Code ExpressionWriter::locals(const Expr& root) {
  Code code;
  if (!root.defined()) return code;
  for (const Expr& x : composit::parts_of({root})) {
    Part& part = *parts_.find(x.hash());
    if (!part.named || !part.name.empty()) continue;
    const ExpressionText value = write_part(x, 0);
    part.name = fresh_name(x);
    const bool index = x.dtype() == DType::int64 && !wide_ && !composit::has_loads(x) &&
                       is_plain_index(x) && analysis_.range(x).inside(INT32_MIN, INT32_MAX);
    code += assignment(
        "const " + (index ? leaves_.index_type : compute_type_name(x.dtype())) + " " + part.name,
        value);
  }
  return code;
}

bool ExpressionWriter::fits_line(const std::string& target, const Expr& x) {
  const size_t size = target.size() + text(x).size() + std::string_view(" = ;").size();
  return !x.is(ScalarFunction::select) || parts_.find(x.hash())->named || size <= kLongText;
}

Code ExpressionWriter::branches(const std::string& target, const Expr& x) {
  if (fits_line(target, x)) return assignment(target, expression(x));
  return if_else(text(x[0]), branches(target, x[1]), branches(target, x[2]));
}

// g++ 12 loses stores that both branches make when it unrolls a loop completely (-O3 with AVX).
Code ExpressionWriter::assign(const Element& element, const Expr& x) {
  const std::string target = element.str();
  if (element.indices.empty() || fits_line(target, x)) return branches(target, x);
  const std::string local = composit::unused_name("value", taken_);
  Code code = declaration(type_name(x.dtype()), local);
  code += branches(local, x);
  code += assignment(target, local);
  return code;
}

// ---- text ---------------------------------------------------------------------------------------

ExpressionText ExpressionWriter::addend(const Expr& x) { return write(x, kProduct); }

Code ExpressionWriter::add(const std::string& target, const Expr& x) {
  if (!wraps_by_function(x.dtype())) return assignment(target, expression(x), "+=");
  return assignment(target,
                    "fl::plus<" + type_name(x.dtype()) + ">(" + target + ", " + text(x) + ")");
}

ExpressionText ExpressionWriter::write(const Expr& x, int precedence) {
  const Part* part = parts_.find(x.hash());
  if (part != nullptr && part->named) return part->name.empty() ? "local_name" : part->name;
  return write_part(x, precedence);
}

std::string ExpressionWriter::number(const Expr& x) {
  const auto* integer = std::get_if<int64_t>(&x.value());
  if (integer != nullptr && x.dtype() == DType::int64 && is_open_number(*integer))
    return open_number(*integer);
  if (const auto whole = whole_number(x); whole && current_names() && is_open_number(*whole))
    return "static_cast<" + type_name(x.dtype()) + ">(" + bare_number(*whole) + ")";
  if (!has_open_numbers()) return literal(x.value(), x.dtype());
  const auto* real = std::get_if<double>(&x.value());
  const bool is_real = x.dtype() == DType::float32 || x.dtype() == DType::float64;
  if (real != nullptr && is_real) return open_real(*real, x.dtype());
  return literal(x.value(), x.dtype());
}

ExpressionText ExpressionWriter::write_part(const Expr& x, int precedence) {
  switch (x.kind()) {
    case ExprKind::literal: {
      const std::string text = number(x);
      return text[0] == '-' && precedence > kLowestOperator ? "(" + text + ")" : text;
    }
    case ExprKind::axis: {
      const std::string& name = leaves_.axes.at(x.number());
      if (wide_) return "int64_t{" + name + "}";
      // An axis that is part of another index is written with / and %.
      return precedence > kProduct && leaves_.parts.contains(axis_of(x)) ? "(" + name + ")" : name;
    }
    case ExprKind::load:
      return load(x);
    case ExprKind::accumulator:
      return ExpressionText::accumulator(leaves_.accumulators.at(x.number()).str());
    case ExprKind::left:
      return leaves_.left.at(x.number()).text();
    case ExprKind::right:
      return leaves_.right.at(x.number()).text();
    case ExprKind::call:
      return call(x, precedence);
    default:
      COMPOSIT_ASSERT(false, "a parameter outside of a scalar program");
  }
}

// True if `x` is an index of a load: it is then read together with the element.
bool ExpressionWriter::is_index_of_load(const Expr& x) const {
  return std::any_of(order_.begin(), order_.end(), [&](const Expr& other) {
    return other.kind() == ExprKind::load &&
           std::any_of(other.arguments().begin(), other.arguments().end(),
                       [&](const Expr& index) { return index.same(x); });
  });
}

bool ExpressionWriter::is_known_inside(const Expr& index, int64_t extent) {
  if (analysis_.range(index).inside(0, extent - 1)) return true;
  if (index.kind() != ExprKind::load) return false;
  const auto range = leaves_.range(value_of(index));
  return range && range->first >= 0 && range->second < extent;
}

std::string ExpressionWriter::index(const Expr& x, int64_t extent) {
  // Indices that are loaded are checked where they are used.
  const bool checks = composit::has_loads(x) && !is_known_inside(x, extent),
             wraps = checks && may_count_from_end(x) && composit::is_literal(x[1][1], extent);
  const std::string text = write(wraps ? x[2] : x, 0).str();
  if (!checks) return text;
  return (wraps ? "fl::wrapped(" : "fl::checked(") + text + ", " + open_number(extent) + ")";
}

ExpressionText ExpressionWriter::load(const Expr& x) {
  const Type& type = leaves_.type(value_of(x));
  std::vector<std::string> indices;
  for (size_t i = 0; i < x.arguments().size(); ++i) indices.push_back(index(x[i], type.sizes[i]));
  if (leaves_.mention && !measures_) leaves_.mention(value_of(x));
  const ExpressionText element = leaves_.element(value_of(x), indices).text();
  return is_half(x.dtype()) ? "float(" + element + ")" : element;
}

ExpressionText ExpressionWriter::cast(const Expr& x) {
  const DType from = x[0].dtype(), to = x.dtype();
  if (to == DType::bool_)
    return write(x[0], 8) + " != " + literal(composit::cast(Expr(0), from).value(), from);
  if (is_half(to)) {
    const bool exact = from == DType::float32 || is_half(from);
    const ExpressionText value = write(x[0], 0);
    return "fl::rounded<" + type_name(to) + ">(" +
           (exact ? value : "static_cast<float>(" + value + ")") + ")";
  }
  const bool checked = composit::is_floating_point(from) && !composit::is_floating_point(to) &&
                       !composit::is_complex(to);
  if (composit::is_complex(from) && !composit::is_complex(to))
    return "static_cast<" + type_name(to) + ">(" + complex_namespace() + "real(" + write(x[0], 0) +
           "))";
  if (composit::is_complex(to) && !composit::is_complex(from)) {
    const DType part = to == DType::complex128 ? DType::float64 : DType::float32;
    const ExpressionText real = write(x[0], 0);
    return type_name(to) + "(" +
           (from == part ? real : "static_cast<" + type_name(part) + ">(" + real + ")") + ")";
  }
  if (is_half(from) && to == DType::float32) return write(x[0], kPostfix);
  return (checked ? "fl::truncated<" : "static_cast<") + type_name(to) + ">(" + write(x[0], 0) +
         ")";
}

ExpressionText ExpressionWriter::select(const Expr& x, int precedence) {
  const ExpressionText text = write(x[0], kLowestOperator) + " ? " + write(x[1], kLowestOperator) +
                              " : " + write(x[2], kSelectPrecedence);
  return precedence > kSelectPrecedence ? "(" + text + ")" : text;
}

// Integer division: C++'s / and % if neither operand can be negative.
ExpressionText ExpressionWriter::division(const Expr& x, int precedence) {
  const bool quotient = x.is(ScalarFunction::floor_divide) || x.is(ScalarFunction::trunc_divide);
  const bool plain =
      is_literal(x[1]) && analysis_.range(x[1]).low > 0 && analysis_.range(x[0]).low >= 0;
  if (!plain) {
    return "fl::" + std::string(composit::info_of(x.function()).name) + "<" +
           compute_type_name(x.dtype()) + ">(" + write(x[0], 0) + ", " + write(x[1], 0) + ")";
  }
  constexpr int kProduct = 11;
  const ExpressionText text = ExpressionText::binary(write(x[0], kProduct), quotient ? "/" : "%",
                                                     write(x[1], kProduct + 1));
  return precedence > kProduct ? "(" + text + ")" : text;
}

// True for a number that is too large for an int, unless it is an index, whose text is wide then.
bool ExpressionWriter::may_wrap(const Expr& x) {
  return wraps_by_function(x.dtype()) && wrapping_function(x) != nullptr &&
         !analysis_.affine(x).has_value() && !analysis_.range(x).inside(INT32_MIN, INT32_MAX);
}

ExpressionText ExpressionWriter::operation(const Expr& x, int precedence) {
  const composit::FunctionInfo& info = composit::info_of(x.function());
  if (may_wrap(x)) {
    const ExpressionText first = std::string("fl::") + wrapping_function(x) + "<" +
                                 type_name(x.dtype()) + ">(" + write(x[0], 0);
    return info.arity == 1 ? first + ")" : first + ", " + write(x[1], 0) + ")";
  }
  if (is_unsigned(x[0].dtype()) && info.arity == 2 && composit::is_literal(x[1], 0)) {
    if (x.is(ScalarFunction::lt)) return "false";
    if (x.is(ScalarFunction::ge)) return "true";
  }
  const bool mixed = info.precedence < 7 && info.dtype == FunctionDType::integer;
  ExpressionText text = "";
  if (info.arity == 1) {
    text = std::string(info.op) + write(x[0], info.precedence + 1);
  } else {
    // -Wparentheses wants parentheses around && in ||, and around arithmetic in &, | and ^.
    const bool logical_or = x.is(ScalarFunction::logical_or);
    const int inner = mixed ? kUnary : logical_or ? info.precedence + 2 : info.precedence;
    const bool of_bools = info.precedence == 7 && x[0].dtype() == DType::bool_;
    const bool shift = info.precedence == 9 || of_bools;
    text = ExpressionText::binary(write(x[0], shift ? kUnary : inner), std::string(info.op),
                                  write(x[1], shift || mixed ? kUnary
                                              : logical_or   ? inner
                                                             : info.precedence + 1));
  }
  if (is_narrow_integer(x.dtype()))
    return "static_cast<" + type_name(x.dtype()) + ">(" + text + ")";
  return info.precedence < precedence ? "(" + text + ")" : text;
}

ExpressionText ExpressionWriter::call(const Expr& x, int precedence) {
  const ScalarFunction function = x.function();
  const composit::FunctionInfo& info = composit::info_of(function);
  if (function == ScalarFunction::cast) {
    const ExpressionText text = cast(x);
    return x.dtype() == DType::bool_ && precedence > 7 ? "(" + text + ")" : text;
  }
  if (function == ScalarFunction::select) return select(x, precedence);
  if ((function == ScalarFunction::floor_divide || function == ScalarFunction::remainder ||
       function == ScalarFunction::trunc_divide || function == ScalarFunction::fmod))
    return division(x, precedence);
  const bool is_bool =
      x.arguments()[0].dtype() == DType::bool_ && info.dtype == FunctionDType::same;
  const bool named_op = info.op.empty() || is_bool || function == ScalarFunction::shift_left ||
                        function == ScalarFunction::shift_right;
  if (!named_op) return operation(x, precedence);
  const DType dtype = x[0].dtype();
  if (function == ScalarFunction::nextafter && is_half(dtype)) {  // not the float's neighbor
    const std::string half = type_name(dtype);
    return "float(fl::nextafter(" + half + "(" + write(x[0], 0) + "), " + half + "(" +
           write(x[1], 0) + ")))";
  }
  ExpressionText text = "fl::" + std::string(info.name);
  if (!composit::is_floating_point(dtype))  // C++ deduces that of a float
    text = text + ("<" + compute_type_name(dtype) + ">");
  text = text + "(";
  for (size_t i = 0; i < x.arguments().size(); ++i)
    text = text + (i > 0 ? ", " : "") + write(x[i], 0);
  return text + ")";
}

}  // namespace flashlight::text
