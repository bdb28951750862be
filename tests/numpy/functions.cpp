// The call here for each function of NumPy that the cases call.
#include <map>

#include "tests/numpy/case.h"

namespace composit::numpy::test {
namespace {

using Table = std::map<std::string, Function>;

NdArrays both(std::pair<NdArray, NdArray> pair) { return {pair.first, pair.second}; }
DType dtype_or_float64(const Case& c) { return c.dtype().value_or(DType::float64); }
SumOptions sum_options(const Case& c) { return {c.dtype(), c.get("keepdims", false)}; }
KeepOptions keep(const Case& c) { return {c.get("keepdims", false)}; }
VarianceOptions variance(const Case& c) {
  return {c.dtype(), c.get("ddof", 0.0), c.get("keepdims", false)};
}
Tolerance tolerance(const Case& c) {
  return {c.get("rtol", 1e-5), c.get("atol", 1e-8), c.get("equal_nan", false)};
}

// clang-format off
#define ADD(name, call) table[#name] = [](const Case& c) -> NdArrays { return {call}; };
#define ADD_UNARY(name) ADD(name, name(c.array(0)))
#define ADD_BINARY(name) ADD(name, detail::name(c.operand(0), c.operand(1)))
#define ADD_SUM(name) ADD(name, name(c.array(0), c.axis(), sum_options(c)))
#define ADD_EXTREMUM(name) ADD(name, name(c.array(0), c.axis(), keep(c)))
#define ADD_VARIANCE(name) ADD(name, name(c.array(0), c.axis(), variance(c)))

void add_elementwise(Table& table) {
  COMPOSIT_NUMPY_UNARY(ADD_UNARY)
  COMPOSIT_NUMPY_BINARY(ADD_BINARY)
  ADD(where, detail::where(c.array(0), c.operand(1), c.operand(2)))
  ADD(clip, clip(c.array(0), c.operand(1), c.operand(2)))
  ADD(round, round(c.array(0), c.get("decimals", 0)))
  table["modf"] = [](const Case& c) { return both(modf(c.array(0))); };
  ADD(isclose, isclose(c.array(0), c.array(1), tolerance(c)))
  ADD(allclose, allclose(c.array(0), c.array(1), tolerance(c)))
  ADD(array_equal, array_equal(c.array(0), c.array(1)))
  table["nan_to_num"] = [](const Case& c) -> NdArrays {
    NanToNum options{.nan = c.get("nan", 0.0)};
    if (c.named.contains("posinf")) options.posinf = c.get("posinf", 0.0);
    if (c.named.contains("neginf")) options.neginf = c.get("neginf", 0.0);
    return {nan_to_num(c.array(0), options)};
  };
}

void add_reductions(Table& table) {
  COMPOSIT_NUMPY_SUMS(ADD_SUM)
  COMPOSIT_NUMPY_EXTREMA(ADD_EXTREMUM)
  ADD_VARIANCE(var) ADD_VARIANCE(std) ADD_VARIANCE(nanvar) ADD_VARIANCE(nanstd)
  ADD_EXTREMUM(median)
  ADD(quantile, quantile(c.array(0), c.args[1].get<double>(), c.axis(), keep(c)))
  ADD(percentile, percentile(c.array(0), c.args[1].get<double>(), c.axis(), keep(c)))
  ADD(cov, cov(c.array(0), c.get("ddof", 1.0)))
  ADD_UNARY(corrcoef)
  ADD(digitize, digitize(c.array(0), c.array(1), c.get("right", false)))
  ADD(convolve, convolve(c.array(0), c.array(1), c.get<std::string>("mode", "full")))
  ADD(trapezoid, trapezoid(c.array(0), c.get("dx", 1.0), c.get("axis", -1)))
  ADD(interp, interp(c.array(0), c.array(1), c.array(2)))
  ADD(nancumsum, nancumsum(c.array(0), c.one_axis({})))
  ADD(nancumprod, nancumprod(c.array(0), c.one_axis({})))
  ADD(nanargmax, nanargmax(c.array(0), c.one_axis({}), keep(c)))
  ADD(nanargmin, nanargmin(c.array(0), c.one_axis({}), keep(c)))
  ADD(argmax, argmax(c.array(0), c.one_axis({}), keep(c)))
  ADD(argmin, argmin(c.array(0), c.one_axis({}), keep(c)))
  ADD(cumsum, cumsum(c.array(0), c.one_axis({})))
  ADD(cumprod, cumprod(c.array(0), c.one_axis({})))
  ADD(diff, diff(c.array(0), c.get("n", 1), c.get("axis", -1)))
  table["average"] = [](const Case& c) -> NdArrays {
    AverageOptions options;
    if (c.named.contains("weights")) options.weights = Case::array_of(c.at("weights"));
    return {average(c.array(0), c.axis(), options)};
  };
}

void add_shapes(Table& table) {
  ADD(reshape, reshape(c.array(0), c.ints(1)))
  ADD_UNARY(ravel)
  ADD(transpose, transpose(c.array(0), c.count() > 1 ? c.ints(1) : Ints{}))
  ADD(swapaxes, swapaxes(c.array(0), c.integer(1), c.integer(2)))
  ADD(moveaxis, moveaxis(c.array(0), c.axes(1), c.axes(2)))
  ADD(squeeze, squeeze(c.array(0), c.axis()))
  ADD(expand_dims, expand_dims(c.array(0), c.axes(1)))
  ADD(broadcast_to, broadcast_to(c.array(0), c.ints(1)))
  ADD(concatenate, concatenate(c.arrays(0), c.one_axis(0)))
  ADD(stack, stack(c.arrays(0), *c.one_axis(0)))
  ADD(hstack, hstack(c.arrays(0)))
  ADD(vstack, vstack(c.arrays(0)))
  ADD(dstack, dstack(c.arrays(0)))
  ADD(column_stack, column_stack(c.arrays(0)))
  table["split"] = [](const Case& c) {
    return c.is_list(1) ? split(c.array(0), c.ints(1), c.get("axis", 0))
                        : split(c.array(0), c.integer(1), c.get("axis", 0));
  };
  table["array_split"] = [](const Case& c) {
    return array_split(c.array(0), c.integer(1), c.get("axis", 0));
  };
  table["hsplit"] = [](const Case& c) { return hsplit(c.array(0), c.integer(1)); };
  table["vsplit"] = [](const Case& c) { return vsplit(c.array(0), c.integer(1)); };
  ADD(append, append(c.array(0), c.array(1), c.one_axis({})))
  ADD(delete, delete_(c.array(0), c.ints(1), c.one_axis({})))
  ADD(insert, insert(c.array(0), c.integer(1), c.operand(2), c.one_axis({})))
  ADD(tile, tile(c.array(0), c.ints(1)))
  ADD(repeat, c.is_list(1) ? repeat(c.array(0), c.ints(1), c.one_axis({}))
                           : repeat(c.array(0), c.integer(1), c.one_axis({})))
  ADD(flip, flip(c.array(0), c.axis()))
  table["rot90"] = [](const Case& c) -> NdArrays {
    const auto axes = c.get("axes", Ints{0, 1});
    return {rot90(c.array(0), c.get("k", 1), {axes[0], axes[1]})};
  };
  ADD(roll, c.is_list(1) ? roll(c.array(0), c.ints(1), c.axis())
                         : roll(c.array(0), c.integer(1), c.axis()))
  table["pad"] = [](const Case& c) -> NdArrays {
    const auto mode = c.get<std::string>("mode", "constant");
    const Operand value = Case::operand_of(c.named.value("constant_values", Json(0)));
    if (!c.is_list(1)) return {pad(c.array(0), c.integer(1), mode, value)};
    return {pad(c.array(0), c.args.at(1).get<PadWidth>(), mode, value)};
  };
  table["astype"] = [](const Case& c) -> NdArrays {
    return {c.array(0).astype(*dtype_from_name(c.args.at(1).get<std::string>()))};
  };
}

void add_indices(Table& table) {
  ADD(get_item, c.array(0)[c.indices(1)])
  ADD(set_item, set_item(c.array(0), c.indices(1), c.operand(2)))
  ADD(take, take(c.array(0), c.array(1), c.one_axis({}), c.get<std::string>("mode", "raise")))
  ADD(take_along_axis, take_along_axis(c.array(0), c.array(1), c.args.at(2).is_null() ? std::nullopt : std::optional(c.integer(2))))
  ADD(put_along_axis, put_along_axis(c.array(0), c.array(1), c.operand(2), c.integer(3)))
  ADD(choose, choose(c.array(0), c.arrays(1)))
  table["nonzero"] = [](const Case& c) { return nonzero(c.array(0)); };
  ADD_UNARY(unique)
}

void add_products(Table& table) {
  ADD(matmul, matmul(c.array(0), c.array(1), c.dtype()))
  ADD(dot, dot(c.array(0), c.array(1)))
  ADD(inner, inner(c.array(0), c.array(1)))
  ADD(outer, outer(c.array(0), c.array(1)))
  ADD(vdot, vdot(c.array(0), c.array(1)))
  ADD(kron, kron(c.array(0), c.array(1)))
  ADD(cross, cross(c.array(0), c.array(1)))
  ADD(tensordot, c.is_list(2) ? tensordot(c.array(0), c.array(1), c.args.at(2).get<std::pair<Ints, Ints>>())
                              : tensordot(c.array(0), c.array(1), c.integer(2)))
  table["einsum"] = [](const Case& c) -> NdArrays {
    NdArrays operands;
    for (size_t i = 1; i < c.count(); ++i) operands.push_back(c.array(i));
    return {einsum(c.args.at(0).get<std::string>(), operands)};
  };
  ADD(diagonal, diagonal(c.array(0), c.integer(1), c.integer(2), c.integer(3)))
  ADD(trace, trace(c.array(0), c.integer(1), c.integer(2), c.integer(3)))
  ADD(diag, diag(c.array(0), c.get("k", 0)))
  ADD(tril, tril(c.array(0), c.get("k", 0)))
  ADD(triu, triu(c.array(0), c.get("k", 0)))
  table["linalg.norm"] = [](const Case& c) -> NdArrays {
    linalg::NormOptions options{.keepdims = c.get("keepdims", false)};
    const Json& order = c.at("ord");
    if (order.is_number()) options.ord = order.get<double>();
    if (order.is_string()) options.ord = std::stod(order.get<std::string>());
    return {linalg::norm(c.array(0), c.axis(), options)};
  };
  table["linalg.matrix_power"] = [](const Case& c) -> NdArrays {
    return {linalg::matrix_power(c.array(0), c.integer(1))};
  };
  ADD(sort, sort(c.array(0), c.one_axis(-1)))
  ADD(argsort, argsort(c.array(0), c.one_axis(-1)))
  ADD(searchsorted, searchsorted(c.array(0), c.operand(1), c.get<std::string>("side", "left")))
}

void add_creation(Table& table) {
  ADD(zeros, zeros(c.ints(0), dtype_or_float64(c)))
  ADD(ones, ones(c.ints(0), dtype_or_float64(c)))
  ADD(full, full(c.ints(0), c.operand(1), c.dtype()))
  ADD_UNARY(zeros_like)
  ADD_UNARY(ones_like)
  ADD(full_like, full_like(c.array(0), c.operand(1)))
  ADD(eye, eye(c.integer(0), c.count() > 1 ? std::optional(c.integer(1)) : std::nullopt, c.get("k", 0), dtype_or_float64(c)))
  ADD(geomspace, geomspace(c.args[0].get<double>(), c.args[1].get<double>(), c.integer(2)))
  ADD(tri, tri(c.integer(0), c.integer(1), c.get("k", 0), dtype_or_float64(c)))
  ADD(identity, identity(c.integer(0)))
  ADD(arange, c.count() == 1 ? arange(c.operand(0), c.dtype())
                             : arange(c.operand(0), c.operand(1), c.count() > 2 ? c.operand(2) : 1, c.dtype()))
  table["linspace"] = [](const Case& c) -> NdArrays {
    const int64_t num = c.count() > 2 ? c.integer(2) : c.get("num", 50);
    return {linspace(c.args[0].get<double>(), c.args[1].get<double>(), num, c.get("endpoint", true), c.dtype())};
  };
  ADD(logspace, logspace(c.args[0].get<double>(), c.args[1].get<double>(), c.integer(2)))
  ADD(indices, indices(c.ints(0)))
  table["meshgrid"] = [](const Case& c) {
    return meshgrid({c.array(0), c.array(1)}, c.get<std::string>("indexing", "xy"));
  };
}
// clang-format on

NdArray drawn(random::Generator& rng, const Json& call) {
  const auto name = call[0].get<std::string>();
  if (name == "random")
    return rng.random(call[1].get<Ints>(), *dtype_from_name(call[2].get<std::string>()));
  if (name == "uniform")
    return rng.uniform(call[1].get<double>(), call[2].get<double>(), call[3].get<Ints>());
  if (name == "permutation") return rng.permutation(call[1].get<int64_t>());
  return rng.integers(call[1].get<int64_t>(), call[2].get<int64_t>(), call[3].get<Ints>());
}

void add_random(Table& table) {
  table["random"] = [](const Case& c) {
    random::Generator rng = random::default_rng(std::stoull(c.args.at(0).get<std::string>()));
    NdArrays results;
    for (const Json& call : c.args.at(1)) results.push_back(drawn(rng, call));
    return results;
  };
}

}  // namespace

Function find_function(const std::string& name) {
  static const Table table = [] {
    Table all;
    for (auto add : {add_elementwise, add_reductions, add_shapes, add_indices, add_products,
                     add_creation, add_random})
      add(all);
    return all;
  }();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace composit::numpy::test
