#include <cmath>
#include <complex>

#include "composit/interchange/scalar_rows.h"
#include "composit/interchange/stablehlo/loops.h"
#include "composit/interchange/stablehlo/rows.h"
#include "composit/interchange/stablehlo/scalars.h"
#include "composit/ir/graph.h"
#include "composit/ops/native.h"

namespace composit::stablehlo {
namespace {

using F = Function;
using Types = std::vector<Type>;

// Of any dtype: what is not 0 is true.
template <const char* op>
LazyTensors of_truths(const Call& call, const Types&) {
  const LazyTensor x = truth(call.tensors().at(0));
  if (call.tensors().size() == 1) return {unary(op, x)};
  return {binary(op, x, truth(call.tensors().at(1)))};
}

constexpr char kNot[] = "not", kAnd[] = "and", kOr[] = "or", kXor[] = "xor";

LazyTensors rounded_quotient(const Call& call, const Types& results) {
  const ArgumentValue& mode = call["rounding_mode"];
  if (mode.is_none()) return {};
  const bool floors = mode.data().as<std::string>() == "floor";
  return interchange::applied_to_two(
      call, results, floors ? Function::floor_divide : Function::trunc_divide, apply);
}

LazyTensors chosen(const Call& call, const Types& results) {
  const LazyTensor x = interchange::beside(call.tensors().at(1), call.tensors().at(2));
  const LazyTensor y = interchange::beside(call.tensors().at(2), call.tensors().at(1));
  if (x.dtype() != results[0].dtype || y.dtype() != results[0].dtype) return {};
  return {select(truth(call.tensors().at(0)), x, y)};
}

LazyTensors converted(const Call& call, const Types& results) {
  const LazyTensor& x = call.tensors().at(0);
  if (results[0].dtype == DType::bool_) return {truth(x)};
  return {cast_to(x, results[0].dtype)};
}

LazyTensors clamped(const Call& call, const Types& results) {
  LazyTensor x = tensor_of(call, "self");
  if (x.dtype() != results[0].dtype || x.dtype() == DType::bool_) return {};
  const auto bound = [&](std::string_view name) { return number(real_of(call, name), x.dtype()); };
  if (!call["min"].is_none()) x = binary("maximum", x, bound("min"));
  if (!call["max"].is_none()) x = binary("minimum", x, bound("max"));
  return {x};
}

// The sum of (q + k)^-s for k = 0, 1, …: term by term until q is above 0, which XLA's operator asks
// for.
LazyTensor zeta_of(const LazyTensor& s, const LazyTensor& q) {
  const Dims sizes = broadcast(s.sizes(), q.sizes());
  const LazyTensor order = broadcast_to(s, sizes);
  const auto is_low = [](const LazyTensor& x) { return compare("LE", x, like(0, x)); };
  const LazyTensors end = while_loop(
      {broadcast_to(q, sizes), filled(0, q.dtype(), sizes)}, {order},
      [&](const LazyTensors& in) { return over_all("or", is_low(in[0]), number(0, DType::bool_)); },
      [&](const LazyTensors& in) {
        const LazyTensor low = is_low(in[0]);
        const LazyTensor term = binary("power", in[0], unary("negate", in[2]));
        return LazyTensors{select(low, binary("add", in[0], like(1, in[0])), in[0]),
                           select(low, binary("add", in[1], term), in[1])};
      });
  return binary("add", end[1], binary("zeta", order, end[0]));
}

LazyTensors polygamma(const Call& call, const Types& results) {
  const LazyTensor& x = tensor_of(call, "self");
  const auto order = static_cast<double>(int_of(call, "n"));
  if (x.dtype() != results[0].dtype) return {};
  if (order == 0) return {unary("digamma", x)};
  // (-1)^(n + 1) n! zeta(n + 1, x)
  const double factor = std::tgamma(order + 1) * (std::fmod(order, 2) == 0 ? -1 : 1);
  return {binary("multiply", like(factor, x), zeta_of(like(order + 1, x), x))};
}

LazyTensors zeta(const Call& call, const Types& results) {
  const LazyTensor &x = call.tensors().at(0), &q = call.tensors().at(1);
  if (x.dtype() != results[0].dtype || q.dtype() != x.dtype()) return {};
  return {zeta_of(x, q)};
}

// Euclid's algorithm on all pairs at once.
LazyTensors gcd(const Call& call, const Types& results) {
  const LazyTensor &a = call.tensors().at(0), &b = call.tensors().at(1);
  if (a.dtype() != results[0].dtype || b.dtype() != a.dtype()) return {};
  const Dims& sizes = results[0].sizes;
  const auto size = [&](const LazyTensor& x) {
    return apply(F::abs, {broadcast_to(x, sizes)}, x.dtype());
  };
  const LazyTensors end = while_loop(
      {size(a), size(b)}, {},
      [&](const LazyTensors& in) { return over_all("or", truth(in[1]), number(0, DType::bool_)); },
      [&](const LazyTensors& in) {
        const LazyTensor more = truth(in[1]);
        const LazyTensor divisor = select(more, in[1], like(1, in[1]));
        return LazyTensors{select(more, in[1], in[0]),
                           select(more, binary("remainder", in[0], divisor), in[1])};
      });
  return {end[0]};
}

}  // namespace

void add_elementwise_rows(std::vector<Row>& rows) {
  interchange::add_scalar_rows(rows, apply, {Function::zeta});
  rows.insert(rows.end(), {{"aten::polygamma", polygamma},
                           {"composit::gcd", gcd},
                           {"aten::special_zeta", zeta},
                           {"aten::div.Tensor_mode", rounded_quotient},
                           {"aten::logical_not", of_truths<kNot>},
                           {"aten::logical_and", of_truths<kAnd>},
                           {"aten::logical_or", of_truths<kOr>},
                           {"aten::logical_xor", of_truths<kXor>},
                           {"aten::where.self", chosen},
                           {"aten::clamp", clamped},
                           {"aten::_to_copy", converted},
                           {"aten::to.dtype", converted}});
}

}  // namespace composit::stablehlo
