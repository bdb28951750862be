#include "tests/ops/torch_accuracy.h"

namespace composit::test {
namespace {

struct Looser {
  What what;
  std::string_view op;  // part of its name
  DType dtype;
  Tolerance tolerance;
  std::string_view why;
};
constexpr DType kFloat = DType::float32, kDouble = DType::float64;
constexpr Looser kLooser[] = {
    {What::value, "polygamma", kFloat, {3e-5, 1e-6}, "torch's is not as accurate near its poles"},
    {What::value, "polygamma", kDouble, {1e-6, 1e-6}, "torch's is accurate to about 1e-8"},
    {What::derivative, "gamma", kDouble, {1e-6, 1e-6}, "made of torch's polygamma"},
    {What::value, "bessel_", kDouble, {1e-5, 1e-6}, "torch's to about 1e-7; glibc has ours"},
    {What::value, "airy", kDouble, {1e-6, 1e-6}, "torch's is accurate to about 1e-7"},
    {What::value, "attention", kFloat, {5e-5, 1e-5}, "scores of 200 lose digits, in torch too"},
    {What::value, "hardsigmoid_backward", kDouble, {1e-7, 1e-7}, "torch has 1 / 6 in float32"},
    {What::derivative, "hardsigmoid", kDouble, {1e-7, 1e-7}, "torch has 1 / 6 in float32"},
    {What::derivative,
     "binary_cross_entropy",
     kDouble,
     {1e-8, 1e-9},
     "torch's least denominator is 1e-12 in float32"},
};

}  // namespace

Tolerance torch_tolerance(std::string_view op, What what, DType dtype) {
  for (const Looser& row : kLooser)
    if (row.what == what && row.dtype == dtype && op.find(row.op) != std::string_view::npos)
      return row.tolerance;
  return tolerance_of(dtype);
}

}  // namespace composit::test
