// Operations on lists of tensors, one after the other: what optimizers and clipping call.
#include <string>

#include "composit/ops/functions.h"

namespace composit {

static void expect_equal_length(const LazyTensors& xs, const LazyTensors& ys) {
  if (xs.size() == ys.size()) return;
  throw UserError("expected lists of equal length, received " + std::to_string(xs.size()) +
                  " and " + std::to_string(ys.size()) + " tensors");
}

static void expect_numbers(const LazyTensors& xs, const std::vector<Scalar>& numbers) {
  if (xs.size() == numbers.size()) return;
  throw UserError("expected a number for each of " + std::to_string(xs.size()) +
                  " tensors, received " + std::to_string(numbers.size()));
}

// The operation `name` of each tensor and what all of them share.
static LazyTensors of_each(std::string_view name, const LazyTensors& xs,
                           const std::vector<ArgumentValue>& shared = {}) {
  LazyTensors results;
  for (const LazyTensor& x : xs) {
    std::vector<ArgumentValue> arguments = {x};
    arguments.insert(arguments.end(), shared.begin(), shared.end());
    results.push_back(apply_one(name, std::move(arguments)));
  }
  return results;
}

// The same of each pair.
static LazyTensors of_pairs(std::string_view name, const LazyTensors& xs, const LazyTensors& ys,
                            const std::vector<ArgumentValue>& shared = {}) {
  expect_equal_length(xs, ys);
  LazyTensors results;
  for (size_t i = 0; i < xs.size(); ++i) {
    std::vector<ArgumentValue> arguments = {xs[i], ys[i]};
    arguments.insert(arguments.end(), shared.begin(), shared.end());
    results.push_back(apply_one(name, std::move(arguments)));
  }
  return results;
}

// With a number of its own for each.
static LazyTensors of_triples(std::string_view name, const LazyTensors& xs, const LazyTensors& ys,
                              const LazyTensors& zs, const std::vector<Scalar>& values) {
  expect_equal_length(xs, ys);
  expect_equal_length(xs, zs);
  expect_numbers(xs, values);
  LazyTensors results;
  for (size_t i = 0; i < xs.size(); ++i)
    results.push_back(apply_one(name, {xs[i], ys[i], zs[i], values[i]}));
  return results;
}

// clang-format off
#define COMPOSIT_FOREACH_FUNCTIONS(f)                                                              \
  f(abs) f(acos) f(asin) f(atan) f(ceil) f(cos) f(cosh) f(erf) f(erfc) f(exp) f(expm1) f(floor)    \
  f(frac) f(log) f(log10) f(log1p) f(log2) f(neg) f(reciprocal) f(round) f(rsqrt) f(sigmoid)       \
  f(sign) f(sin) f(sinh) f(sqrt) f(tan) f(tanh) f(trunc)
// clang-format on

static void add_foreach_functions(OperationTable& rows) {
#define COMPOSIT_FOREACH(name)                                                       \
  rows.add({.schema = "aten::_foreach_" #name "(Tensor[] self) -> Tensor[]",         \
            .decompose = [](LazyTensors xs) { return of_each("aten::" #name, xs); }, \
            .samples = "[f32[2,3],f32[4]]"});
  COMPOSIT_FOREACH_FUNCTIONS(COMPOSIT_FOREACH)
#undef COMPOSIT_FOREACH
}

static void add_foreach_arithmetic(OperationTable& rows) {
#define COMPOSIT_FOREACH(name)                                                                \
  rows.add({.schema = "aten::_foreach_" #name ".Scalar(Tensor[] self, Scalar scalar) -> "     \
                      "Tensor[]",                                                             \
            .decompose = [](LazyTensors xs,                                                   \
                            Scalar y) { return of_each("aten::" #name ".Scalar", xs, {y}); }, \
            .samples = "[f32[2,3],f32[4]] 0.5 | [f32[2]] 2"});                                \
  rows.add({.schema = "aten::_foreach_" #name ".ScalarList(Tensor[] self, Scalar[] scalars) " \
                      "-> Tensor[]",                                                          \
            .decompose =                                                                      \
                [](LazyTensors xs, std::vector<Scalar> ys) {                                  \
                  expect_numbers(xs, ys);                                                     \
                  LazyTensors results;                                                        \
                  for (size_t i = 0; i < xs.size(); ++i)                                      \
                    results.push_back(apply_one("aten::" #name ".Scalar", {xs[i], ys[i]}));   \
                  return results;                                                             \
                },                                                                            \
            .samples = "[f32[2,3],f32[4]] [0.5,2.0]",                                         \
            .bad = "[f32[2,3],f32[4]] [0.5]: a number for each"});
  COMPOSIT_FOREACH(add)
  COMPOSIT_FOREACH(sub)
  COMPOSIT_FOREACH(mul)
  COMPOSIT_FOREACH(div)
#undef COMPOSIT_FOREACH
// The factor is an integer in the sample: torch's autograd has no derivative by it.
#define COMPOSIT_FOREACH(name)                                                                    \
  rows.add({.schema = "aten::_foreach_" #name ".Tensor(Tensor[] self, Tensor other) -> Tensor[]", \
            .decompose = [](LazyTensors xs,                                                       \
                            LazyTensor y) { return of_each("aten::" #name ".Tensor", xs, {y}); }, \
            .samples = "[f32[2,3],f32[4]] i64[]"});                                               \
  rows.add(                                                                                       \
      {.schema = "aten::_foreach_" #name ".List(Tensor[] self, Tensor[] other) -> Tensor[]",      \
       .decompose = [](LazyTensors xs,                                                            \
                       LazyTensors ys) { return of_pairs("aten::" #name ".Tensor", xs, ys); },    \
       .samples = "[f32[2,3],f32[4]] [f32[2,3],f32[4]]",                                          \
       .bad = "[f32[2],f32[2]] [f32[2]]: equal length"});
  COMPOSIT_FOREACH(mul)
  COMPOSIT_FOREACH(div)
#undef COMPOSIT_FOREACH
#define COMPOSIT_FOREACH(name)                                                               \
  rows.add({.schema = "aten::_foreach_" #name                                                \
                      ".List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]", \
            .decompose =                                                                     \
                [](LazyTensors xs, LazyTensors ys, Scalar alpha) {                           \
                  return of_pairs("aten::" #name ".Tensor", xs, ys, {alpha});                \
                },                                                                           \
            .samples = "[f32[2,3],f32[4]] [f32[2,3],f32[4]] | [f32[2]] [f32[2]] -0.5",       \
            .bad = "[f32[2],f32[2]] [f32[2]]: equal length"});
  COMPOSIT_FOREACH(add)
  COMPOSIT_FOREACH(sub)
#undef COMPOSIT_FOREACH
}

static void add_foreach_of_lists(OperationTable& rows) {
  rows.add({.schema = "aten::_foreach_add.Tensor(Tensor[] self, Tensor other, *, Scalar alpha=1) "
                      "-> Tensor[]",
            .decompose =
                [](LazyTensors xs, LazyTensor y, Scalar alpha) {
                  return of_each("aten::add.Tensor", xs, {y, alpha});
                },
            .samples = "[f32[2,3],f32[4]] i64[] | [f32[2]] i64[] 2"});
  rows.add({.schema = "aten::_foreach_maximum.List(Tensor[] self, Tensor[] other) -> Tensor[]",
            .decompose = [](LazyTensors xs,
                            LazyTensors ys) { return of_pairs("aten::maximum", xs, ys); },
            .samples = "[f32[2,3],f32[4]] [f32[2,3],f32[4]]",
            .bad = "[f32[2],f32[2]] [f32[2]]: equal length"});
}

static void add_foreach_sums(OperationTable& rows) {
#define COMPOSIT_FOREACH(name)                                                                   \
  rows.add({.schema = "aten::_foreach_" #name                                                    \
                      ".Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar "       \
                      "value=1) -> Tensor[]",                                                    \
            .decompose =                                                                         \
                [](LazyTensors xs, LazyTensors ys, LazyTensors zs, Scalar value) {               \
                  return of_triples("aten::" #name, xs, ys, zs,                                  \
                                    std::vector<Scalar>(xs.size(), value));                      \
                },                                                                               \
            .samples = "[f32[2],f32[3]] [f32[2],f32[3]] [f32[2],f32[3]] | [f32[2]] [f32[2]] "    \
                       "[f32[2]] -0.25"});                                                       \
  rows.add({.schema = "aten::_foreach_" #name                                                    \
                      ".ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] " \
                      "scalars) -> Tensor[]",                                                    \
            .decompose =                                                                         \
                [](LazyTensors xs, LazyTensors ys, LazyTensors zs, std::vector<Scalar> values) { \
                  return of_triples("aten::" #name, xs, ys, zs, values);                         \
                },                                                                               \
            .samples = "[f32[2],f32[3]] [f32[2],f32[3]] [f32[2],f32[3]] [0.5,-0.25]"});
  COMPOSIT_FOREACH(addcmul)
  COMPOSIT_FOREACH(addcdiv)
#undef COMPOSIT_FOREACH
  rows.add(
      {.schema = "aten::_foreach_lerp.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight) "
                 "-> Tensor[]",
       .decompose = [](LazyTensors xs, LazyTensors ys,
                       Scalar weight) { return of_pairs("aten::lerp.Scalar", xs, ys, {weight}); },
       .samples = "[f32[2],f32[3]] [f32[2],f32[3]] 0.25"});
  rows.add({.schema = "aten::_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? "
                      "dtype=None) -> Tensor[]",
            .decompose =
                [](LazyTensors xs, Scalar p, std::optional<DType> dtype) {
                  if (dtype)
                    for (LazyTensor& x : xs) x = to(x, *dtype);
                  return of_each("aten::linalg_vector_norm", xs, {p});
                },
            .samples = "[f32[2,3],f32[4]] | [f32[4]] 1"});
}

void add_foreach_rows(OperationTable& rows) {
  add_foreach_functions(rows);
  add_foreach_arithmetic(rows);
  add_foreach_of_lists(rows);
  add_foreach_sums(rows);
}

}  // namespace composit
