#include "composit/op/expr.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "composit/ir/error.h"
#include "composit/ir/flat_map.h"
#include "composit/op/fold.h"
#include "composit/op/promotion.h"

namespace composit {

namespace {

// Arguments free their own ones after the other: freed within each other, a long chain would
// overflow the stack.
struct Arguments {
  std::vector<Expr> items;

  Arguments(std::vector<Expr> items = {}) : items(std::move(items)) {}  // NOLINT
  Arguments(Arguments&&) = default;
  ~Arguments();
};

thread_local std::vector<Expr>* dying_arguments = nullptr;

Arguments::~Arguments() {
  if (items.empty()) return;
  if (dying_arguments != nullptr) {
    for (Expr& item : items) dying_arguments->push_back(std::move(item));
    return;
  }
  std::vector<Expr> pending = std::move(items);
  dying_arguments = &pending;
  while (!pending.empty()) {
    const Expr last = std::move(pending.back());
    pending.pop_back();
  }
  dying_arguments = nullptr;
}

}  // namespace

struct Expr::Node {
  ExprKind kind = ExprKind::literal;
  Function function = Function::count_;
  DType dtype = DType::int64;
  bool weak = false;
  size_t number = 0;
  Scalar::Value value = {};
  Arguments arguments = {};
  Hash hash = {};
};

namespace {

void add_to(Hasher& hasher, const Scalar::Value& value) {
  hasher.add(static_cast<uint64_t>(value.index()));
  if (const auto* truth = std::get_if<bool>(&value)) hasher.add(uint64_t{*truth});
  if (const auto* integer = std::get_if<int64_t>(&value))
    hasher.add(static_cast<uint64_t>(*integer));
  if (const auto* number = std::get_if<double>(&value))
    hasher.add(std::bit_cast<uint64_t>(*number));
  if (const auto* number = std::get_if<std::complex<double>>(&value)) {
    hasher.add(std::bit_cast<uint64_t>(number->real()));
    hasher.add(std::bit_cast<uint64_t>(number->imag()));
  }
}

DType dtype_of(const Scalar::Value& value) {
  constexpr DType dtypes[] = {DType::bool_, DType::int64, kDefaultFloat, DType::complex64};
  return dtypes[value.index()];
}

DType widest(DType dtype) {
  if (is_complex(dtype)) return DType::complex128;
  return is_floating_point(dtype) ? DType::float64 : dtype;
}

// The dtype that operands of one function are cast to: torch's promotion among those that have a
// dtype, and literals where their category is higher.
DType common_dtype(const std::vector<Expr>& arguments, size_t first) {
  Promotion promotion;
  for (size_t i = first; i < arguments.size(); ++i) {
    const Expr& x = arguments[i];
    x.weak() ? promotion.add_number(x.dtype()) : promotion.add(tensor_type(x.dtype(), {}));
  }
  return promotion.result();
}

[[noreturn]] void refuse(const FunctionInfo& info, const char* expected, DType received) {
  throw UserError("[" + std::string(info.name) + "] expected " + expected + ", received " +
                  std::string(name(received)));
}

// The dtype that the arguments are cast to, and the dtype of the result.
std::pair<DType, DType> dtypes_of(const FunctionInfo& info, DType common) {
  const bool complex = is_complex(common);
  switch (info.dtype) {
    case FunctionDType::same:
      return {common, common};
    case FunctionDType::number:
      if (common == DType::bool_) refuse(info, "a number", common);
      return {common, common};
    case FunctionDType::real:
      if (complex) refuse(info, "a real number", common);
      return {common, common};
    case FunctionDType::to_float:
      return {to_float(common), to_float(common)};
    case FunctionDType::to_real_float:
      if (complex) refuse(info, "a real number", common);
      return {to_float(common), to_float(common)};
    case FunctionDType::integer:
      if (category(common) > DTypeCategory::integer) refuse(info, "an integer or bool", common);
      return {common, common};
    case FunctionDType::magnitude:
      return {common, real_dtype(common)};
    case FunctionDType::comparison:
      return {common, DType::bool_};
    case FunctionDType::order:
      if (complex) refuse(info, "real numbers", common);
      return {common, DType::bool_};
    case FunctionDType::logical:
      return {DType::bool_, DType::bool_};
    case FunctionDType::special:  // complex; the others never come here
      if (complex) refuse(info, "real numbers", common);
      return {to_float(common), complex_dtype(to_float(common))};
  }
  COMPOSIT_ASSERT(false, "no such kind of function");
}

}  // namespace

Expr Expr::make(Node node) {
  Hasher hasher;
  hasher.add(static_cast<uint64_t>(node.kind) | static_cast<uint64_t>(node.function) << 8 |
             static_cast<uint64_t>(node.dtype) << 16 | uint64_t{node.weak} << 24);
  hasher.add(uint64_t{node.number});
  if (node.kind == ExprKind::literal) add_to(hasher, node.value);
  for (const Expr& argument : node.arguments.items) {
    COMPOSIT_ASSERT(argument.defined(), "an absent argument");
    hasher.add(argument.hash());
  }
  node.hash = hasher.finish();
  return Expr(std::make_shared<const Node>(std::move(node)));
}

Expr::Expr(bool value) : Expr(make({.dtype = DType::bool_, .weak = true, .value = value})) {}
Expr::Expr(int value) : Expr(static_cast<int64_t>(value)) {}
Expr::Expr(int64_t value) : Expr(make({.dtype = DType::int64, .weak = true, .value = value})) {}
Expr::Expr(double value) : Expr(make({.dtype = kDefaultFloat, .weak = true, .value = value})) {}
Expr::Expr(std::complex<double> value)
    : Expr(make({.dtype = DType::complex64, .weak = true, .value = value})) {}
Expr::Expr(const Scalar& value)
    : Expr(make({.dtype = dtype_of(value.value), .weak = true, .value = value.value})) {}

namespace {
const char* const kAbsent = "an absent expression was used";
}

ExprKind Expr::kind() const {
  COMPOSIT_ASSERT(node_, kAbsent);
  return node_->kind;
}
DType Expr::dtype() const {
  COMPOSIT_ASSERT(node_, kAbsent);
  return node_->dtype;
}
bool Expr::weak() const { return node_ != nullptr && node_->weak; }
Function Expr::function() const {
  COMPOSIT_ASSERT(kind() == ExprKind::call, "function of a leaf");
  return node_->function;
}
size_t Expr::number() const {
  COMPOSIT_ASSERT(node_, kAbsent);
  return node_->number;
}
const Scalar::Value& Expr::value() const {
  COMPOSIT_ASSERT(kind() == ExprKind::literal, "value of an expression that is no literal");
  return node_->value;
}
const std::vector<Expr>& Expr::arguments() const {
  COMPOSIT_ASSERT(node_, kAbsent);
  return node_->arguments.items;
}
const Hash& Expr::hash() const {
  COMPOSIT_ASSERT(node_, kAbsent);
  return node_->hash;
}
bool Expr::is(Function function) const {
  return node_ != nullptr && node_->kind == ExprKind::call && node_->function == function;
}

Expr Expr::literal(const Scalar::Value& value, DType dtype) {
  return make({.dtype = dtype, .value = converted(value, dtype)});
}
Expr Expr::axis(size_t number) { return make({.kind = ExprKind::axis, .number = number}); }
Expr Expr::load(size_t operand, DType dtype, std::vector<Expr> indices) {
  for (Expr& index : indices) {
    index = with_dtype(std::move(index), DType::int64);
    COMPOSIT_ASSERT(category(index.dtype()) == DTypeCategory::integer, "an index is an integer");
  }
  return make(
      {.kind = ExprKind::load, .dtype = dtype, .number = operand, .arguments = std::move(indices)});
}
Expr Expr::accumulator(size_t number, DType dtype) {
  return make({.kind = ExprKind::accumulator, .dtype = dtype, .number = number});
}
Expr Expr::left(size_t number, DType dtype) {
  return make({.kind = ExprKind::left, .dtype = dtype, .number = number});
}
Expr Expr::right(size_t number, DType dtype) {
  return make({.kind = ExprKind::right, .dtype = dtype, .number = number});
}
Expr Expr::parameter(size_t number, DType dtype) {
  return make({.kind = ExprKind::parameter, .dtype = dtype, .number = number});
}

Expr Expr::call(Function function, std::vector<Expr> arguments) {
  const FunctionInfo& info = info_of(function);
  COMPOSIT_ASSERT(arguments.size() == info.arity && function != Function::cast,
                  std::string(info.name) + " has another number of arguments");
  DType result;
  if (function == Function::select) {
    arguments[0] = cast(arguments[0], DType::bool_);
    result = common_dtype(arguments, 1);
    for (size_t i = 1; i < 3; ++i) arguments[i] = cast(arguments[i], result);
  } else {
    const bool both_weak =
        std::all_of(arguments.begin(), arguments.end(), [](const Expr& x) { return x.weak(); });
    DType operand;
    std::tie(operand, result) = dtypes_of(info, common_dtype(arguments, 0));
    if (both_weak) {  // the result is rounded when it meets a dtype, and not before
      std::vector<Expr> wide;
      for (const Expr& argument : arguments) wide.push_back(cast(argument, widest(operand)));
      if (const Expr folded = fold(function, wide, widest(result)); folded.defined())
        return make({.dtype = result, .weak = true, .value = folded.value()});
    }
    for (Expr& argument : arguments) argument = cast(std::move(argument), operand);
  }
  if (Expr known = fold(function, arguments, result); known.defined()) return known;
  return make({.kind = ExprKind::call,
               .function = function,
               .dtype = result,
               .arguments = std::move(arguments)});
}

Expr cast(Expr x, DType dtype) {
  if (x.dtype() == dtype && !x.weak()) return x;
  if (x.kind() == ExprKind::literal) return Expr::literal(x.value(), dtype);
  return Expr::make_cast(std::move(x), dtype);
}

Expr Expr::make_cast(Expr x, DType dtype) {
  return make({.kind = ExprKind::call,
               .function = Function::cast,
               .dtype = dtype,
               .arguments = std::vector{std::move(x)}});
}

Expr with_dtype(Expr x, DType dtype) { return x.weak() ? cast(std::move(x), dtype) : x; }

Expr operator-(Expr x) { return Expr::call(Function::neg, {std::move(x)}); }
Expr operator!(Expr x) { return Expr::call(Function::logical_not, {std::move(x)}); }
Expr select(Expr condition, Expr x, Expr y) {
  return Expr::call(Function::select, {std::move(condition), std::move(x), std::move(y)});
}
#define COMPOSIT_OPERATOR(name, function) \
  Expr name(Expr x, Expr y) { return Expr::call(Function::function, {std::move(x), std::move(y)}); }
COMPOSIT_OPERATOR(operator+, add)
COMPOSIT_OPERATOR(operator-, sub)
COMPOSIT_OPERATOR(operator*, mul)
COMPOSIT_OPERATOR(operator/, div)
COMPOSIT_OPERATOR(operator<, lt)
COMPOSIT_OPERATOR(operator<=, le)
COMPOSIT_OPERATOR(operator>, gt)
COMPOSIT_OPERATOR(operator>=, ge)
COMPOSIT_OPERATOR(operator&&, logical_and)
COMPOSIT_OPERATOR(operator||, logical_or)
COMPOSIT_OPERATOR(eq, eq)
COMPOSIT_OPERATOR(ne, ne)
#undef COMPOSIT_OPERATOR

namespace {

// Hashes of the parts of an expression. Most have few, which are found faster one by one.
class Seen {
 public:
  bool contains(const Hash& hash) const {
    return std::find(few_.begin(), few_.end(), hash) != few_.end() || more_.contains(hash);
  }
  bool insert(const Hash& hash) {
    if (contains(hash)) return false;
    if (few_.size() < kFew)
      few_.push_back(hash);
    else
      more_.insert(hash, {});
    return true;
  }

 private:
  static constexpr size_t kFew = 24;
  std::vector<Hash> few_;
  FlatMap<Hash, std::monostate> more_;
};

}  // namespace

std::vector<Expr> parts_of(const std::vector<Expr>& roots) {
  std::vector<const Expr*> order;
  Seen seen;
  // A part, and how many of its arguments were seen.
  std::vector<std::pair<const Expr*, size_t>> stack;
  for (const Expr& root : roots) {
    if (root.defined() && !seen.contains(root.hash())) stack.emplace_back(&root, 0);
    while (!stack.empty()) {
      auto& [part, next] = stack.back();
      if (next < part->arguments().size()) {
        const Expr& argument = part->arguments()[next++];
        if (!seen.contains(argument.hash())) stack.emplace_back(&argument, 0);
        continue;
      }
      if (seen.insert(part->hash())) order.push_back(part);
      stack.pop_back();
    }
  }
  std::vector<Expr> parts;
  parts.reserve(order.size());
  for (const Expr* part : order) parts.push_back(*part);
  return parts;
}

std::vector<Expr> replace(const std::vector<Expr>& roots, const ReplaceExpr& replace) {
  FlatMap<Hash, Expr> now;
  for (const Expr& part : parts_of(roots)) {
    std::vector<Expr> arguments;
    bool changed = false;
    for (const Expr& argument : part.arguments()) {
      arguments.push_back(*now.find(argument.hash()));
      changed = changed || !arguments.back().same(argument);
    }
    Expr rebuilt = changed ? part.with_arguments(std::move(arguments)) : part;
    // Folding may reduce a call to one of its arguments, which has been replaced already.
    const bool folded = part.kind() == ExprKind::call && rebuilt.kind() != ExprKind::call;
    Expr replaced = folded ? Expr() : replace(rebuilt);
    now.insert(part.hash(), replaced.defined() ? std::move(replaced) : std::move(rebuilt));
  }
  std::vector<Expr> results;
  for (const Expr& root : roots) results.push_back(root.defined() ? *now.find(root.hash()) : root);
  return results;
}

Expr replace(const Expr& x, const ReplaceExpr& with) { return replace(std::vector{x}, with)[0]; }

Expr Expr::with_arguments(std::vector<Expr> arguments) const {
  switch (kind()) {
    case ExprKind::call:
      return is(Function::cast) ? cast(std::move(arguments[0]), dtype())
                                : call(function(), std::move(arguments));
    case ExprKind::load:
      return load(number(), dtype(), std::move(arguments));
    default:
      return *this;
  }
}

bool depends_on(const Expr& x, ExprKind kind, size_t number) {
  const auto parts = parts_of({x});
  return std::any_of(parts.begin(), parts.end(), [&](const Expr& part) {
    return part.kind() == kind && part.number() == number;
  });
}

bool is_literal(const Expr& x, double value) {
  if (!x.defined() || x.kind() != ExprKind::literal) return false;
  if (const auto* integer = std::get_if<int64_t>(&x.value()))
    return static_cast<double>(*integer) == value;
  const auto* number = std::get_if<double>(&x.value());
  return number != nullptr && *number == value;
}

}  // namespace composit
