#include <algorithm>

#include "composit/ir/literal.h"
#include "composit/op/expr_print.h"
#include "composit/op/loops.h"
#include "composit/op/loops_text.h"

namespace composit {
namespace {

// ---- names --------------------------------------------------------------------------------------

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// `name`, or what comes closest to it among words that may name an axis and are not `taken`.
std::string axis_name(const Axis& axis, size_t number, const std::vector<std::string>& taken) {
  std::string name = axis.name;
  for (char& c : name)
    if (!is_word_start(c) && !is_digit(c)) c = '_';
  if (name.empty() || is_digit(name[0]))
    name = (axis.kind == AxisKind::reduction ? "r" : "i") + std::to_string(number);
  while (is_loop_word(name) || std::find(taken.begin(), taken.end(), name) != taken.end())
    name += '_';
  return name;
}

// None of them is among `taken`.
std::vector<std::string> axis_names(const Statement& statement, std::vector<std::string> taken) {
  const auto first = static_cast<std::ptrdiff_t>(taken.size());
  for (size_t i = 0; i < statement.axes.size(); ++i)
    taken.push_back(axis_name(statement.axes[i], i, taken));
  return {taken.begin() + first, taken.end()};
}

bool is_numbered(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return false;
  return std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                     is_digit);
}

// A prefix of numbered names, none of which is the name of an axis.
std::string free_prefix(std::string prefix, const std::vector<std::string>& axes) {
  const auto clashes = [&](const std::string& axis) { return is_numbered(axis, prefix); };
  while (std::any_of(axes.begin(), axes.end(), clashes)) prefix += '_';
  return prefix;
}

// ---- loops --------------------------------------------------------------------------------------

class LoopsPrinter {
 public:
  LoopsPrinter(const Loops& loops, const SizeNames& sizes) : loops_(loops), sizes_(sizes) {}

  std::string run() {
    choose_prefixes();
    text_ = "loops(";
    tensors(names_.operand, loops_.operands, sizes_.operands);
    text_ += ") -> (";
    tensors(result_, loops_.results, sizes_.results);
    text_ += ") {";
    ++indent_;
    for (size_t i = 0; i < loops_.statements.size(); ++i) {
      named_axes_ = which(sizes_.axes, i);
      statement(loops_.statements[i]);
    }
    close();
    return std::move(text_);
  }

 private:
  void choose_prefixes();
  void tensors(const std::string& prefix, const std::vector<Type>& types,
               const std::vector<SizeNames::Which>& named);
  // By its name, where it has one.
  void size(int64_t number, const SizeNames::Which& named, size_t i);
  static SizeNames::Which which(const std::vector<SizeNames::Which>& named, size_t i) {
    return i < named.size() ? named[i] : SizeNames::Which();
  }
  void statement(const Statement& statement);
  void header(std::string_view word, const Statement& statement, AxisKind kind);
  void variables(const Statement& statement, ExprPrinter& printer);
  void points(const Statement& statement, bool reduces, ExprPrinter& printer);
  void combination(const std::vector<Expr>& combine, ExprPrinter& printer);
  void store(const Store& store, ExprPrinter& printer);
  void line(const std::string& left, const Expr& right, ExprPrinter& printer);
  std::string new_line() const { return "\n" + std::string(2 * indent_, ' '); }
  void close() {
    --indent_;
    text_ += new_line() + "}";
  }

  const Loops& loops_;
  const SizeNames& sizes_;
  SizeNames::Which named_axes_;  // of the statement that is being written
  LeafNames names_;
  std::string result_;
  std::string text_;
  size_t indent_ = 0;
};

std::string numbered(const std::string& prefix, size_t number) {
  return prefix + std::to_string(number);
}

void LoopsPrinter::choose_prefixes() {
  std::vector<std::string> axes = names_.parameters = sizes_.names;
  for (const Statement& each : loops_.statements)
    for (std::string& name : axis_names(each, sizes_.names)) axes.push_back(std::move(name));
  result_ = free_prefix("y", axes);
  names_.operand = free_prefix("x", axes);
  names_.accumulator = names_.left = free_prefix("s", axes);
  names_.right = free_prefix("v", axes);
  names_.parameter = free_prefix("p", axes);
  names_.local = free_prefix("t", axes);
}

void LoopsPrinter::size(int64_t number, const SizeNames::Which& named, size_t i) {
  if (i < named.size() && named[i])
    text_ += sizes_.names[*named[i]];
  else
    append_int(text_, number);
}

void LoopsPrinter::tensors(const std::string& prefix, const std::vector<Type>& types,
                           const std::vector<SizeNames::Which>& named) {
  for (size_t i = 0; i < types.size(); ++i) {
    text_ += (i > 0 ? ", " : "") + numbered(prefix, i) + ": ";
    if (!is_defined(types[i])) {
      text_ += "none";
      continue;
    }
    text_.append(name(types[i].dtype)).append("[");
    for (size_t axis = 0; axis < types[i].rank(); ++axis) {
      if (axis > 0) text_ += ", ";
      size(types[i].sizes[axis], which(named, i), axis);
    }
    text_ += ']';
  }
}

bool has_axis(const Statement& statement, AxisKind kind) {
  return std::any_of(statement.axes.begin(), statement.axes.end(),
                     [&](const Axis& axis) { return axis.kind == kind; });
}

// True if all accumulators are sums.
bool sums(const Statement& statement) {
  for (size_t k = 0; k < statement.combine.size(); ++k) {
    const Expr& combine = statement.combine[k];
    const auto is = [&](const Expr& side, ExprKind kind) {
      return side.kind() == kind && side.number() == k && side.dtype() == combine.dtype();
    };
    if (!combine.defined() || !combine.is(Function::add)) return false;
    if (!is(combine[0], ExprKind::left) || !is(combine[1], ExprKind::right)) return false;
  }
  return statement.body.size() == statement.combine.size();
}

void append_stores(std::vector<Expr>& roots, const Statement& statement) {
  for (const Store& store : statement.stores) {
    roots.insert(roots.end(), store.at.begin(), store.at.end());
    roots.push_back(store.value);
  }
}

void LoopsPrinter::statement(const Statement& statement) {
  const size_t outside = indent_;
  names_.axes = axis_names(statement, sizes_.names);
  ExprPrinter printer(text_, names_);
  header("for", statement, AxisKind::parallel);
  variables(statement, printer);
  if (has_axis(statement, AxisKind::scan)) header("scan", statement, AxisKind::scan);
  const bool reduces = has_axis(statement, AxisKind::reduction);
  if (reduces) header("reduce", statement, AxisKind::reduction);
  points(statement, reduces, printer);
  if (reduces) {
    close();
    std::vector<Expr> roots;
    append_stores(roots, statement);
    printer.plan(roots);
  }
  for (const Store& each : statement.stores) store(each, printer);
  while (indent_ > outside) close();
}

void LoopsPrinter::header(std::string_view word, const Statement& statement, AxisKind kind) {
  bool first = true;
  for (size_t i = 0; i < statement.axes.size(); ++i) {
    if (statement.axes[i].kind != kind) continue;
    text_ += first ? new_line() + std::string(word) + " " : ", ";
    text_ += names_.axes[i] + " < ";
    size(statement.axes[i].extent, named_axes_, i);
    first = false;
  }
  text_ += first ? new_line() + "{" : " {";
  ++indent_;
}

void LoopsPrinter::variables(const Statement& statement, ExprPrinter& printer) {
  printer.plan(statement.init);
  for (size_t k = 0; k < statement.init.size(); ++k) {
    const bool known = k < statement.combine.size() && statement.combine[k].defined();
    const std::string dtype(known ? name(statement.combine[k].dtype()) : "none");
    line("var " + numbered(names_.accumulator, k) + ": " + dtype + " = ", statement.init[k],
         printer);
  }
}

// Prints the work at each point. A statement without a reduction stores there, too, and its stores
// share names.
void LoopsPrinter::points(const Statement& statement, bool reduces, ExprPrinter& printer) {
  const bool adds = sums(statement);
  std::vector<Expr> roots = {statement.domain};
  roots.insert(roots.end(), statement.body.begin(), statement.body.end());
  if (!adds) roots.insert(roots.end(), statement.combine.begin(), statement.combine.end());
  if (!reduces) append_stores(roots, statement);
  printer.plan(roots);

  if (statement.domain.defined()) line("where ", statement.domain, printer);
  for (size_t k = 0; k < statement.body.size(); ++k)
    line(adds ? numbered(names_.accumulator, k) + " += "
              : "new " + numbered(names_.right, k) + " = ",
         statement.body[k], printer);
  if (!adds) combination(statement.combine, printer);
}

void LoopsPrinter::combination(const std::vector<Expr>& combine, ExprPrinter& printer) {
  for (const Expr& each : combine) printer.locals(each, new_line());
  text_ += new_line();
  for (size_t k = 0; k < combine.size(); ++k)
    text_ += (k > 0 ? ", " : "") + numbered(names_.accumulator, k);
  for (size_t k = 0; k < combine.size(); ++k) {
    text_ += k > 0 ? ", " : " = ";
    printer.write_assigned(combine[k]);
  }
}

void LoopsPrinter::store(const Store& store, ExprPrinter& printer) {
  for (const Expr& at : store.at) printer.locals(at, new_line());
  printer.locals(store.value, new_line());
  text_ += new_line() + numbered(result_, store.result) + "[";
  for (size_t axis = 0; axis < store.at.size(); ++axis) {
    if (axis > 0) text_ += ", ";
    printer.write_assigned(store.at[axis]);
  }
  text_ += store.add ? "] += " : "] = ";
  printer.write_assigned(store.value);
}

void LoopsPrinter::line(const std::string& left, const Expr& right, ExprPrinter& printer) {
  printer.locals(right, new_line());
  text_ += new_line() + left;
  printer.write_assigned(right);
}

}  // namespace

std::string print(const Loops& loops, const SizeNames& sizes) {
  return LoopsPrinter(canonical(loops), sizes).run();
}
std::string print(const Loops& loops) { return print(loops, {}); }

}  // namespace composit
