#include "tests/ops/known_differences.h"

namespace composit::test {
namespace {

constexpr Difference kDifferences[] = {
    {{}, "dropout", "draws random", Verdict::differs, "definitions are told of no generator"},
    {{}, "rrelu", "draws random", Verdict::differs, "definitions are told of no generator"},
    {{}, "attention", "draws random", Verdict::differs, "definitions are told of no generator"},
    {{}, "", "depend on values", Verdict::differs, "sizes are part of a type"},
    {What::value, "empty", "", Verdict::right, "torch leaves the content open"},
    {What::value, "kthvalue", "result 1", Verdict::right, "which of equal elements is open"},
    {{}, "logcumsumexp", "real number", Verdict::differs, "complex numbers have no row yet"},
    {What::type, "embedding_bag", "on Meta", Verdict::right, "on a CPU it has other sizes"},
    {What::value, "nanmedian", "result 1", Verdict::right, "which of equal elements is open"},
    {What::derivative, "nanmedian", "", Verdict::right, "which of equal elements is open"},
    {What::value, "_linalg_solve_ex", "result 1", Verdict::right,
     "torch factors the matrix or its transpose, by its strides"},
    {What::value, "_linalg_solve_ex", "result 2", Verdict::right, "and exchanges its rows"},
    {What::derivative, "cholesky_solve", "", Verdict::right,
     "torch lets the gradient into the triangle that is not read, for upper=True"},
    {What::derivative, "cholesky_inverse", "", Verdict::right,
     "torch lets the gradient into the triangle that is not read, for upper=True"},
    {What::value, "_linalg_svd", "result 0", Verdict::right,
     "singular vectors are open up to a factor of size 1"},
    {What::value, "_linalg_eigh", "result 1", Verdict::right,
     "eigenvectors are open up to a factor of size 1"},
    {What::derivative, "_linalg_eigh", "tensor 0", Verdict::right,
     "eigenvectors are open up to a factor of size 1"},
    {What::value, "linalg_pinv.atol_rtol_tensor", "result 0", Verdict::right,
     "the smaller eigenvalues, which count most, have the rounding errors of the largest: LAPACK's "
     "differ from processor to processor"},
    {What::value, "topk", "result 1", Verdict::right, "which of equal elements is open"},
    {What::derivative, "native_batch_norm_backward", "", Verdict::right,
     "torch takes the saved statistics for functions of the input; they are arguments"},
    {What::derivative, "_weight_norm_interface", "second derivative", Verdict::right,
     "torch takes the norms for constants in the second derivative, which fails its gradgradcheck"},
    {What::derivative, "as_strided_scatter", "", Verdict::right,
     "torch lets the gradient through where the source overwrote it, and nowhere else"},
    {{},
     "as_strided",
     "",
     Verdict::differs,
     "recorded tensors are whole, not views of more memory"},
    {{},
     "batch_norm",
     "2 axes at least",
     Verdict::differs,
     "torch takes no samples without channels"},
    {What::derivative, "prod.dim_int", "nan", Verdict::right,
     "torch divides the product by the element, and NaN by NaN is not the others' product"},
    {What::derivative, "div.Tensor", "nan, received inf", Verdict::right,
     "second derivatives where the divisor is 0 add infinities of both signs, which we factor out"},
    {What::derivative, "cross_entropy_loss", "tensor 2", Verdict::differs,
     "torch differentiates by the weights of classes only where targets are probabilities"},
};

}  // namespace

const Difference* known_difference(std::string_view op, What what, const std::string& wrong) {
  for (const Difference& row : kDifferences)
    if (row.what.value_or(what) == what && op.find(row.op) != op.npos &&
        wrong.find(row.wrong) != std::string::npos)
      return &row;
  return nullptr;
}

Verdict verdict(std::string_view op, What what, const std::string& wrong) {
  const Difference* known = known_difference(op, what, wrong);
  return known == nullptr ? Verdict::fails : known->verdict;
}

}  // namespace composit::test
