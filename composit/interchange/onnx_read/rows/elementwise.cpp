#include "composit/interchange/onnx_read/rows.h"
#include "composit/ir/error.h"
#include "composit/ops/native.h"

namespace composit::onnx_read {
namespace {

// An operator of one operand, or of two, that ATen has under another name.
template <const char* name>
LazyTensors unary(const OperatorCall& call) {
  return {op(name, {call.operand(0)})};
}

// Two operands of one dtype: ONNX promotes nothing.
void expect_same_dtype(const LazyTensor& x, const LazyTensor& y) {
  if (x.dtype() != y.dtype())
    throw UserError("operands of one dtype are expected, received " + std::string(name(x.dtype())) +
                    " and " + std::string(name(y.dtype())));
}

// The second operand. Before version 7 it broadcasts where an attribute says so, from an axis on.
LazyTensor right_of(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), &y = call.operand(1);
  if (call.version() >= 7) return y;
  if (!call.flag("broadcast")) {
    if (x.sizes() != y.sizes()) call.refuse("its operands differ in sizes");
    return y;
  }
  if (!call.has("axis")) return y;
  const int64_t behind = x.rank() - call.axis("axis", {}, x) - y.rank();
  if (behind < 0) call.refuse("its second operand has too many axes");
  Dims sizes = y.sizes();
  sizes.insert(sizes.end(), static_cast<size_t>(behind), 1);
  return reshape(y, sizes);
}

template <const char* name>
LazyTensors binary(const OperatorCall& call) {
  expect_same_dtype(call.operand(0), call.operand(1));
  return {op(name, {call.operand(0), right_of(call)})};
}

// Of integers, towards 0.
LazyTensors div(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), y = right_of(call);
  expect_same_dtype(x, y);
  if (is_floating_point(x.dtype())) return {x / y};
  return {op("aten::div.Tensor_mode", {x, y, "trunc"})};
}

// The result has the dtype of the base.
LazyTensors power(const OperatorCall& call) {
  const LazyTensor &x = call.operand(0), y = right_of(call);
  if (y.numel() == 1 && y.rank() <= x.rank() && is_floating_point(x.dtype()))
    if (const auto exponent = call.find_value(1)) {
      const double value = elements<double>(*exponent).at(0);
      LazyTensor result = pow(x, value);
      return {cast(result, x.dtype())};
    }
  if (x.dtype() == y.dtype()) return {pow(x, y)};
  const bool real = is_floating_point(x.dtype()) || is_floating_point(y.dtype());
  const DType wide = real ? DType::float64 : DType::int64;
  return {cast(pow(cast(x, wide), cast(y, wide)), x.dtype())};
}

// fmod is C's; else the sign is that of the divisor.
LazyTensors mod(const OperatorCall& call) {
  expect_same_dtype(call.operand(0), call.operand(1));
  return {op(call.flag("fmod") ? "aten::fmod.Tensor" : "aten::remainder.Tensor",
             {call.operand(0), call.operand(1)})};
}

LazyTensors bit_shift(const OperatorCall& call) {
  const std::string direction = call.text("direction");
  expect_one_of("direction", direction, {"LEFT", "RIGHT"});
  expect_same_dtype(call.operand(0), call.operand(1));
  return {op(
      direction == "LEFT" ? "aten::bitwise_left_shift.Tensor" : "aten::bitwise_right_shift.Tensor",
      {call.operand(0), call.operand(1)})};
}

// One operand or more, folded from the left.
LazyTensor folded(const OperatorCall& call, const char* name) {
  LazyTensor result = call.operand(0);
  for (size_t i = 1; i < call.size(); ++i) {
    expect_same_dtype(result, call.operand(i));
    result = op(name, {result, call.operand(i)});
  }
  return result;
}

template <const char* name>
LazyTensors variadic(const OperatorCall& call) {
  return {folded(call, name)};
}

constexpr char kAdd[] = "aten::add.Tensor", kSub[] = "aten::sub.Tensor",
               kMul[] = "aten::mul.Tensor", kMax[] = "aten::maximum", kMin[] = "aten::minimum",
               kEqual[] = "aten::eq.Tensor", kLess[] = "aten::lt.Tensor",
               kLessEqual[] = "aten::le.Tensor", kGreater[] = "aten::gt.Tensor",
               kGreaterEqual[] = "aten::ge.Tensor", kAnd[] = "aten::logical_and",
               kOr[] = "aten::logical_or", kXor[] = "aten::logical_xor",
               kNot[] = "aten::logical_not", kBitAnd[] = "aten::bitwise_and.Tensor",
               kBitOr[] = "aten::bitwise_or.Tensor", kBitXor[] = "aten::bitwise_xor.Tensor",
               kBitNot[] = "aten::bitwise_not", kAbs[] = "aten::abs", kNeg[] = "aten::neg",
               kExp[] = "aten::exp", kLog[] = "aten::log", kSqrt[] = "aten::sqrt",
               kReciprocal[] = "aten::reciprocal", kErf[] = "aten::erf", kSin[] = "aten::sin",
               kCos[] = "aten::cos", kTan[] = "aten::tan", kAsin[] = "aten::asin",
               kAcos[] = "aten::acos", kAtan[] = "aten::atan", kSinh[] = "aten::sinh",
               kCosh[] = "aten::cosh", kTanh[] = "aten::tanh", kAsinh[] = "aten::asinh",
               kAcosh[] = "aten::acosh", kAtanh[] = "aten::atanh", kFloor[] = "aten::floor",
               kCeil[] = "aten::ceil", kRound[] = "aten::round", kIsNan[] = "aten::isnan";

LazyTensors mean(const OperatorCall& call) {
  return {folded(call, kAdd) / Number(static_cast<double>(call.size()))};
}

// Of what is not a number torch's sign is 0, ONNX's runtimes differ; a number is what torch says.
LazyTensors sign(const OperatorCall& call) { return {op("aten::sign", {call.operand(0)})}; }

LazyTensors is_infinite(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  const bool up = call.flag("detect_positive", true), down = call.flag("detect_negative", true);
  if (up && down) return {op("aten::isinf", {x})};
  if (up) return {op("aten::isposinf", {x})};
  if (down) return {op("aten::isneginf", {x})};
  return {full(x.sizes(), 0, DType::bool_)};
}

LazyTensors where_row(const OperatorCall& call) {
  expect_same_dtype(call.operand(1), call.operand(2));
  return {where(call.operand(0), call.operand(1), call.operand(2))};
}

LazyTensors clip(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  LazyTensor low, high;
  if (call.version() < 11) {
    if (call.has("min")) low = number_like(call.real("min"), x.dtype());
    if (call.has("max")) high = number_like(call.real("max"), x.dtype());
  } else {
    low = call.optional(1);
    high = call.optional(2);
  }
  // The upper bound counts where the bounds are in the wrong order, as in torch.
  LazyTensor result = x;
  if (low) result = maximum(result, reshape(low, {}));
  if (high) result = minimum(result, reshape(high, {}));
  return {result};
}

LazyTensors cast_row(const OperatorCall& call) {
  call.pass_over({"saturate", "round_mode"});  // of floating point of 8 bits
  const DType dtype = call.dtype("to");
  const LazyTensor& x = call.operand(0);
  if (!is_computable(dtype) || !is_computable(x.dtype()))
    call.refuse("floating point numbers of 8 bits are not converted here");
  return {cast(x, dtype)};
}

LazyTensors cast_like(const OperatorCall& call) {
  call.pass_over({"saturate", "round_mode"});
  const DType dtype = call.operand(1).dtype();
  if (!is_computable(dtype) || !is_computable(call.operand(0).dtype()))
    call.refuse("floating point numbers of 8 bits are not converted here");
  return {cast(call.operand(0), dtype)};
}

LazyTensors identity(const OperatorCall& call) { return {call.operand(0)}; }

// For inference: training_mode, where it is there, has to be known and false.
LazyTensors dropout(const OperatorCall& call) {
  const LazyTensor& x = call.operand(0);
  call.pass_over({"ratio", "seed"}, 2);
  if (call.version() < 7 && !call.flag("is_test"))
    call.refuse("dropout in training draws numbers, which are not read");
  if (call.version() >= 12 && call.optional(2) && call.known_int(2) != 0)
    if (!call.optional(1) || call.known_real(1) != 0)
      call.refuse("dropout in training draws numbers, which are not read");
  const DType mask = call.version() < 10 ? x.dtype() : DType::bool_;
  return {x, call.wants(1) ? full(x.sizes(), 1, mask) : LazyTensor()};
}

}  // namespace

void add_elementwise_rows(std::vector<Row>& rows) {
  rows.insert(rows.end(), {{"Abs", unary<kAbs>},
                           {"Acos", unary<kAcos>},
                           {"Acosh", unary<kAcosh>},
                           {"Add", binary<kAdd>},
                           {"And", binary<kAnd>},
                           {"Asin", unary<kAsin>},
                           {"Asinh", unary<kAsinh>},
                           {"Atan", unary<kAtan>},
                           {"Atanh", unary<kAtanh>},
                           {"BitShift", bit_shift},
                           {"BitwiseAnd", binary<kBitAnd>},
                           {"BitwiseNot", unary<kBitNot>},
                           {"BitwiseOr", binary<kBitOr>},
                           {"BitwiseXor", binary<kBitXor>},
                           {"Cast", cast_row},
                           {"CastLike", cast_like},
                           {"Ceil", unary<kCeil>},
                           {"Clip", clip},
                           {"Cos", unary<kCos>},
                           {"Cosh", unary<kCosh>},
                           {"Div", div},
                           {"Dropout", dropout},
                           {"Equal", binary<kEqual>},
                           {"Erf", unary<kErf>},
                           {"Exp", unary<kExp>},
                           {"Floor", unary<kFloor>},
                           {"Greater", binary<kGreater>},
                           {"GreaterOrEqual", binary<kGreaterEqual>},
                           {"Identity", identity},
                           {"IsInf", is_infinite},
                           {"IsNaN", unary<kIsNan>},
                           {"Less", binary<kLess>},
                           {"LessOrEqual", binary<kLessEqual>},
                           {"Log", unary<kLog>},
                           {"Max", variadic<kMax>},
                           {"Mean", mean},
                           {"Min", variadic<kMin>},
                           {"Mod", mod},
                           {"Mul", binary<kMul>},
                           {"Neg", unary<kNeg>},
                           {"Not", unary<kNot>},
                           {"Or", binary<kOr>},
                           {"Pow", power},
                           {"Reciprocal", unary<kReciprocal>},
                           {"Round", unary<kRound>},
                           {"Sign", sign},
                           {"Sin", unary<kSin>},
                           {"Sinh", unary<kSinh>},
                           {"Sqrt", unary<kSqrt>},
                           {"Sub", binary<kSub>},
                           {"Sum", variadic<kAdd>},
                           {"Tan", unary<kTan>},
                           {"Tanh", unary<kTanh>},
                           {"Where", where_row},
                           {"Xor", binary<kXor>}});
}

}  // namespace composit::onnx_read
