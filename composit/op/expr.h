// A scalar expression: what an operation does to one element.
//
//   Expr sigmoid(Expr x) { return 1 / (1 + exp(-x)); }
//   Expr relu6(Expr x) { return select(x < 0, 0, min(x, 6)); }
//
// Immutable, and typed when it is made. Expressions share their parts: they are a DAG, and equal
// hash stands for equal expression, so every walk visits a part once.
//
// Meaning
//   * Arithmetic is that of C++ in `dtype()`, float16 and bfloat16 being computed in float32 and
//     rounded where they are stored or cast. Integers wrap. Comparisons give bool.
//   * A literal is weak: it takes the dtype of what it is combined with, unless its category (bool,
//     integer, float, complex) is higher. Operands of two other dtypes are promoted as torch does.
//   * `select` evaluates only the branch it takes: loads in the other may be out of range.
//   * `min` and `max` give NaN when an operand is NaN. Integer `floor_divide` and `remainder` round
//     towards minus infinity, `trunc_divide` and `fmod` towards zero.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "composit/ir/attribute.h"
#include "composit/ir/dtype.h"
#include "composit/ir/hash.h"
#include "composit/op/scalar_function.h"

namespace composit {

// The leaves and inner parts of expressions.
enum class ExprKind : uint8_t {
  literal,      // `value`
  axis,         // `number`: of the statement's axes; its index, int64
  load,         // `number`: of the operands, `arguments`: an index per axis of it
  accumulator,  // `number`: its value where the reduction has ended, or in a scan: so far
  left,
  right,      // `number`: in `combine`, the accumulator and what is combined with it
  parameter,  // `number`: of a scalar program
  call        // `function` of `arguments`
};

class Expr {
 public:
  Expr() = default;                    // absent
  Expr(bool value);                    // NOLINT: literals are expressions
  Expr(int value);                     // NOLINT
  Expr(int64_t value);                 // NOLINT
  Expr(double value);                  // NOLINT
  Expr(std::complex<double> value);    // NOLINT
  explicit Expr(const Scalar& value);  // a literal, weak as the others

  bool defined() const { return node_ != nullptr; }  // false: default-constructed
  // `if (x < 0)` asks for a number there is none of yet: use `select`.
  explicit operator bool() const = delete;

  // Parts of the expression; it has to be there.
  ExprKind kind() const;
  DType dtype() const;
  bool weak() const;                           // a literal that has met nothing of a dtype
  Function function() const;                   // the function of a call
  size_t number() const;                       // the number of a leaf: see ExprKind
  const Scalar::Value& value() const;          // value of a literal, in its dtype's kind
  const std::vector<Expr>& arguments() const;  // arguments of a call; indices of a load
  const Expr& operator[](size_t i) const { return arguments()[i]; }  // argument i
  const Hash& hash() const;  // equal hash stands for equal expression
  // The same expression; not the comparison of scalars, which is `eq`.
  bool same(const Expr& other) const { return hash() == other.hash(); }
  bool is(Function function) const;  // a call of this function

  static Expr literal(const Scalar::Value& value, DType dtype);  // not weak
  // Leaves: see ExprKind.
  static Expr axis(size_t number);
  static Expr load(size_t operand, DType dtype, std::vector<Expr> indices);
  static Expr accumulator(size_t number, DType dtype);
  static Expr left(size_t number, DType dtype);
  static Expr right(size_t number, DType dtype);
  static Expr parameter(size_t number, DType dtype);
  // InternalError where the arguments are too many or too few; UserError where there is no such
  // function of their dtype ("[floor] expected a real number, received complex64").
  static Expr call(Function function, std::vector<Expr> arguments);
  // The same leaf or function of other arguments.
  Expr with_arguments(std::vector<Expr> arguments) const;

 private:
  friend Expr cast(Expr x, DType dtype);
  struct Node;
  explicit Expr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  static Expr make(Node node);
  static Expr make_cast(Expr x, DType dtype);
  std::shared_ptr<const Node> node_;
};

// The same value in another dtype; a literal is converted at once.
Expr cast(Expr x, DType dtype);
// `dtype` for a literal that is weak, x else.
Expr with_dtype(Expr x, DType dtype);

// Arithmetic, in the common dtype of the operands. UserError where there is none for the dtype.
Expr operator-(Expr x);
Expr operator+(Expr x, Expr y);
Expr operator-(Expr x, Expr y);
Expr operator*(Expr x, Expr y);
Expr operator/(Expr x, Expr y);  // true division: integers are divided as floats
// Comparisons give bool; those of an order refuse complex numbers.
Expr operator<(Expr x, Expr y);
Expr operator<=(Expr x, Expr y);
Expr operator>(Expr x, Expr y);
Expr operator>=(Expr x, Expr y);
Expr operator&&(Expr x, Expr y);  // logical; both are evaluated
Expr operator||(Expr x, Expr y);
Expr operator!(Expr x);
// Comparisons of any dtype; give bool.
Expr eq(Expr x, Expr y);
Expr ne(Expr x, Expr y);
// x where `condition`, a bool, holds, y elsewhere.
Expr select(Expr condition, Expr x, Expr y);

// clang-format off
#define COMPOSIT_UNARY(name) inline Expr name(Expr x) { return Expr::call(Function::name, {std::move(x)}); }
#define COMPOSIT_BINARY(name) \
  inline Expr name(Expr x, Expr y) { return Expr::call(Function::name, {std::move(x), std::move(y)}); }
// The functions of scalar_function.h by their name. UserError where there is none for the dtype.
COMPOSIT_FOR_EACH_NAMED_FUNCTION(COMPOSIT_UNARY, COMPOSIT_BINARY)
#undef COMPOSIT_UNARY
#undef COMPOSIT_BINARY
// clang-format on

// All distinct parts of `roots`, arguments before users. Iterative.
std::vector<Expr> parts_of(const std::vector<Expr>& roots);
// `x` with every part that `replace` gives an expression for replaced by it; `replace` gets the
// part with its arguments replaced already, and an absent Expr keeps it.
using ReplaceExpr = std::function<Expr(const Expr&)>;
Expr replace(const Expr& x, const ReplaceExpr& replace);
std::vector<Expr> replace(const std::vector<Expr>& roots, const ReplaceExpr& replace);
// True if x contains a leaf of that kind and number.
bool depends_on(const Expr& x, ExprKind kind, size_t number);
// The value of a literal; nothing for other expressions.
bool is_literal(const Expr& x, double value);

}  // namespace composit

template <>
struct std::hash<composit::Expr> {
  size_t operator()(const composit::Expr& x) const noexcept { return x.hash().low; }
};
