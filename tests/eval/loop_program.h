// Statements by hand, for tests of the interpreter.
//
//   Program twice{{f32_type({3})}, {{.axes = {{"i", 3}}, .stores = {{0, {kI}, f32(0, {kI}) *
//   2}}}}}; values<float>(twice({x})[0]);
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "composit/eval/loops.h"
#include "composit/ir/error.h"
#include "tests/eval/arrays.h"
#include "tests/user_error.h"

namespace composit {

inline constexpr AxisKind kReduction = AxisKind::reduction, kScan = AxisKind::scan;
inline const Expr kI = Expr::axis(0), kJ = Expr::axis(1), kK = Expr::axis(2);

// A statement, what it gives, and what it is given.
struct Program {
  std::vector<Type> results;
  std::vector<Statement> statements;

  std::vector<Array> operator()(const std::vector<Array>& operands) const {
    Loops loops{.operands = {}, .results = results, .statements = statements};
    for (const Array& operand : operands)
      loops.operands.push_back(tensor_type(operand.type().dtype, operand.type().sizes));
    verify(loops);
    return evaluate(loops, operands);
  }
};

// Element of operand `number`.
inline Expr load(size_t number, DType dtype, std::vector<Expr> at) {
  return Expr::load(number, dtype, std::move(at));
}
inline Expr f32(size_t number, std::vector<Expr> at) { return load(number, DType::float32, at); }
inline Expr i64(size_t number, std::vector<Expr> at) { return load(number, DType::int64, at); }

inline Type f32_type(const std::vector<int64_t>& sizes) {
  return tensor_type(DType::float32, dims(sizes));
}

// One accumulator that starts with `init`, and is stored at `at` where the reduction has ended.
inline Statement reduction(std::vector<Axis> axes, Expr init, Expr body, Function combine,
                           std::vector<Expr> at) {
  const DType dtype = body.dtype();
  return {.axes = std::move(axes),
          .init = {std::move(init)},
          .body = {std::move(body)},
          .combine = {Expr::call(combine, {Expr::left(0, dtype), Expr::right(0, dtype)})},
          .stores = {{0, std::move(at), Expr::accumulator(0, dtype)}}};
}

inline std::string error_of(const Program& program, const std::vector<Array>& operands) {
  return user_error([&] { program(operands); }).value_or("nothing was thrown");
}

}  // namespace composit
