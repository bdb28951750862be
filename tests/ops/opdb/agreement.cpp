#include "tests/ops/opdb/agreement.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <sstream>
#include <vector>

#include "composit/op/compute_type.h"
#include "composit/ops/native.h"
#include "tests/ops/opdb/recorded.h"

namespace composit::opdb {
namespace {

using Number = std::complex<double>;

std::vector<Number> numbers(const Array& array) {
  const Array plain = array.contiguous();
  return with_storage(plain.type().dtype, [&]<class S>(std::type_identity<S>) {
    const S* data = reinterpret_cast<const S*>(plain.data());
    std::vector<Number> found;
    for (int64_t i = 0; i < plain.type().numel(); ++i)
      found.push_back(convert<Number>(to_compute(data[i])));
    return found;
  });
}

bool near(double a, double b, double allowed) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= allowed;
}

std::string unequal_integers(const Array& ours, const Array& torch) {
  const auto a = elements<int64_t>(ours), b = elements<int64_t>(torch);
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i])
      return "elem " + std::to_string(i) + ": ours " + std::to_string(a[i]) + ", torch's " +
             std::to_string(b[i]);
  return "";
}

}  // namespace

Tolerance tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
    case DType::complex64:
      return {2e-6, 1e-6};
    case DType::float64:
    case DType::complex128:
      return {1e-11, 1e-12};
    case DType::float16:
      return {2e-3, 1e-3};
    case DType::bfloat16:
      return {2e-2, 1e-2};
    default:
      return {0, 0};
  }
}

std::string difference(const Array& ours, const Array& torch, Tolerance tolerance) {
  if (type_text(ours.type()) != type_text(torch.type()))
    return "ours is " + type_text(ours.type()) + ", torch's " + type_text(torch.type());
  const DType dtype = torch.type().dtype;
  if (!is_floating_point(dtype) && !is_complex(dtype)) return unequal_integers(ours, torch);
  const auto a = numbers(ours), b = numbers(torch);
  double largest = 1;
  for (const Number& x : b)
    if (std::isfinite(std::abs(x))) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < a.size(); ++i) {
    const double size = std::isfinite(std::abs(b[i])) ? std::abs(b[i]) : 0;
    const double allowed = tolerance.relative * size + tolerance.absolute * largest;
    if (near(a[i].real(), b[i].real(), allowed) && near(a[i].imag(), b[i].imag(), allowed))
      continue;
    std::ostringstream text;
    text.precision(17);
    text << "elem " << i << ": ours " << a[i] << ", torch's " << b[i];
    return text.str();
  }
  return "";
}

}  // namespace composit::opdb
