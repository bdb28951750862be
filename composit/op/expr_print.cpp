#include "composit/op/expr_print.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "composit/ir/literal.h"
#include "composit/op/fold.h"
#include "composit/op/loops_text.h"

namespace composit {
namespace {

// Operations in one expression; what would be longer is taken apart.
constexpr size_t kMaxOperations = 16;
constexpr size_t kMaxPartOperations = kMaxOperations / 4;
constexpr double kMaxPlainInteger = 1e15;

bool is_number(const Expr& x) { return x.kind() == ExprKind::literal; }
bool is_leaf(const Expr& x) { return x.arguments().empty(); }
bool is_load_of_leaves(const Expr& x) {
  return x.kind() == ExprKind::load &&
         std::all_of(x.arguments().begin(), x.arguments().end(), is_leaf);
}
// So short that it is written again where it is used again.
bool is_short(const Expr& x) {
  if (x.is(Function::cast)) return is_leaf(x[0]) || is_load_of_leaves(x[0]);
  return (is_leaf(x) && x.kind() != ExprKind::call) || is_load_of_leaves(x);
}

// ---- literals -----------------------------------------------------------------------------------

// The shortest text that reads back as `value`, an element of `dtype`.
void append_real(std::string& text, double value, DType dtype) {
  const bool negative_zero = value == 0 && std::signbit(value);
  if (std::trunc(value) == value && std::abs(value) < kMaxPlainInteger && !negative_zero)
    return append_int(text, static_cast<int64_t>(value));
  std::string shortest;
  const auto single = static_cast<float>(value);
  append_element(shortest, DType::float32, reinterpret_cast<const std::byte*>(&single));
  if (shortest.find_first_of(".enx") == std::string::npos) shortest += ".0";
  const auto read = parse_float(shortest);
  const auto same = [&](const Scalar::Value& other) {
    return std::bit_cast<uint64_t>(std::get<double>(other)) == std::bit_cast<uint64_t>(value);
  };
  if (read && same(converted(*read, dtype)))
    text += shortest;
  else
    append_float(text, value);
}

void append_parts(std::string& text, std::complex<double> value, DType part) {
  text += '(';
  append_real(text, value.real(), part);
  text += ", ";
  append_real(text, value.imag(), part);
  text += ')';
}

// A literal of `dtype` by its value alone.
void append_bare(std::string& text, const Scalar::Value& value, DType dtype) {
  if (const auto* truth = std::get_if<bool>(&value)) {
    text += *truth ? "true" : "false";
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    append_int(text, *integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    append_real(text, *real, dtype);
  } else {
    text += "complex";
    append_parts(text, std::get<std::complex<double>>(value),
                 part_of_complex(dtype).value_or(DType::float64));
  }
}

// One that no dtype has been given yet: its text says its kind.
void append_weak(std::string& text, const Scalar::Value& value) {
  if (const auto* real = std::get_if<double>(&value))
    append_float(text, *real);
  else
    append_bare(text, value, DType::complex128);
}

}  // namespace

// ---- names --------------------------------------------------------------------------------------

void ExprPrinter::plan(const std::vector<Expr>& roots) {
  order_ = parts_of(roots);
  next_ = 0;
  parts_ = {};
  parts_.reserve(order_.size());
  for (size_t i = 0; i < order_.size(); ++i) parts_.insert(order_[i].hash(), {.order = i});
  for (const Expr& root : roots)
    if (root.defined()) ++parts_.find(root.hash())->uses;
  for (const Expr& part : order_)
    for (const Expr& argument : part.arguments()) ++parts_.find(argument.hash())->uses;
  for (const Expr& x : order_) measure(x, *parts_.find(x.hash()));
}

// Arguments come before.
void ExprPrinter::measure(const Expr& x, Part& part) {
  if (is_leaf(x) || is_load_of_leaves(x)) return;
  std::vector<Part*> arguments;
  part.operations = 1;
  for (const Expr& argument : x.arguments()) {
    arguments.push_back(parts_.find(argument.hash()));
    part.operations += arguments.back()->operations;
  }
  if (part.operations > kMaxOperations) {
    part.operations = 1;
    for (Part* argument : arguments) {
      if (argument->operations > kMaxPartOperations) {
        argument->named = true;
        argument->operations = 0;
      }
      part.operations += argument->operations;
    }
  }
  if (part.uses > 1 && !is_short(x)) {
    part.named = true;
    part.operations = 0;
  }
}

void ExprPrinter::locals(const Expr& root, std::string_view new_line) {
  if (!root.defined()) return;
  const size_t end = parts_.find(root.hash())->order + 1;
  for (; next_ < end; ++next_) {
    Part& part = *parts_.find(order_[next_].hash());
    if (!part.named) continue;
    part.local = next_local_++;
    text_.append(new_line).append("let ").append(names_.local);
    append_int(text_, static_cast<int64_t>(part.local));
    text_ += " = ";
    write_part(order_[next_], 0);
  }
}

// ---- expressions --------------------------------------------------------------------------------

// Recursion is no deeper than there are operations in one expression.
void ExprPrinter::write(const Expr& x, int precedence) {
  if (!x.defined()) {
    text_ += "absent";
    return;
  }
  const Part* part = parts_.find(x.hash());
  if (part == nullptr || !part->named) return write_part(x, precedence);
  text_ += names_.local;
  append_int(text_, static_cast<int64_t>(part->local));
}

void ExprPrinter::write_part(const Expr& x, int precedence) {
  switch (x.kind()) {
    case ExprKind::literal:
      return x.weak() ? append_weak(text_, x.value()) : typed_literal(x);
    case ExprKind::axis:
      if (x.number() >= names_.axes.size()) return leaf(names_.axis, x);
      text_ += names_.axes[x.number()];
      return;
    case ExprKind::load:
      leaf(names_.operand, x);
      return arguments(x, '[', ']');
    case ExprKind::accumulator:
      return leaf(names_.accumulator, x);
    case ExprKind::left:
      return leaf(names_.left, x);
    case ExprKind::right:
      return leaf(names_.right, x);
    case ExprKind::parameter:
      if (x.number() < names_.parameters.size()) {
        text_ += names_.parameters[x.number()];
        return;
      }
      return leaf(names_.parameter, x);
    case ExprKind::call:
      return call(x, precedence);
  }
}

void ExprPrinter::leaf(std::string_view prefix, const Expr& x) {
  text_ += prefix;
  append_int(text_, static_cast<int64_t>(x.number()));
}

void ExprPrinter::typed_literal(const Expr& x) {
  text_ += name(x.dtype());
  if (const auto part = part_of_complex(x.dtype()))
    return append_parts(text_, std::get<std::complex<double>>(x.value()), *part);
  text_ += '(';
  append_bare(text_, x.value(), x.dtype());
  text_ += ')';
}

void ExprPrinter::argument(const Expr& x, bool bare, int precedence) {
  if (bare && x.defined() && is_number(x))
    append_bare(text_, x.value(), x.dtype());
  else
    write(x, precedence);
}

// Literals take the dtype of other arguments; an index is an int64 by itself.
void ExprPrinter::arguments(const Expr& x, char open, char close) {
  const auto& all = x.arguments();
  const bool dtype_known = !std::all_of(all.begin(), all.end(), is_number);
  text_ += open;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0) text_ += ", ";
    const bool index = x.kind() == ExprKind::load;
    argument(all[i], index ? all[i].dtype() == DType::int64 : dtype_known, 0);
  }
  text_ += close;
}

void ExprPrinter::call(const Expr& x, int precedence) {
  const FunctionInfo& info = info_of(x.function());
  if (x.is(Function::cast)) {
    text_ += name(x.dtype());
    return arguments(x, '(', ')');
  }
  const bool select = x.is(Function::select);
  if (!select && info.op.empty()) {
    text_ += info.name;
    return arguments(x, '(', ')');
  }
  const bool enclose = (select ? kSelectPrecedence : info.precedence) < precedence;
  if (enclose) text_ += '(';
  operation(x, info);
  if (enclose) text_ += ')';
}

void ExprPrinter::operation(const Expr& x, const FunctionInfo& info) {
  if (x.is(Function::select)) {
    const bool bare = !is_number(x[1]) || !is_number(x[2]);
    argument(x[0], true, kLowestOperator);
    text_ += " ? ";
    argument(x[1], bare, kLowestOperator);
    text_ += " : ";
    return argument(x[2], bare, kSelectPrecedence);
  }
  if (info.arity == 1) {
    text_ += info.op;
    return write(x[0], info.precedence + 1);
  }
  const bool bare = !is_number(x[0]) || !is_number(x[1]);
  argument(x[0], bare, info.precedence);
  text_.append(" ").append(info.op).append(" ");
  argument(x[1], bare, info.precedence + 1);
}

std::string print(const Expr& x) {
  std::string text;
  const LeafNames names;
  ExprPrinter printer(text, names);
  printer.plan({x});
  printer.locals(x, "\n");
  if (!text.empty()) text = text.substr(1) + '\n';
  printer.write(x);
  return text;
}

}  // namespace composit
