#include "tests/agreement.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <sstream>
#include <vector>

#include "composit/op/compute_type.h"
#include "composit/ops/native.h"

namespace composit::test {
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

template <class T>
std::string element_text(size_t i, const T& ours, const T& expected) {
  std::ostringstream text;
  text.precision(17);
  text << "elem " << i << ": expected " << expected << ", received " << ours;
  return text.str();
}

std::string unequal_integers(const Array& ours, const Array& expected) {
  const auto a = elements<int64_t>(ours), b = elements<int64_t>(expected);
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return element_text(i, a[i], b[i]);
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

std::string difference(const Array& ours, const Array& expected, Tolerance tolerance) {
  if (type_text(ours.type()) != type_text(expected.type()))
    return "expected " + type_text(expected.type()) + ", received " + type_text(ours.type());
  const DType dtype = expected.type().dtype;
  if (!is_floating_point(dtype) && !is_complex(dtype)) return unequal_integers(ours, expected);
  const auto a = numbers(ours), b = numbers(expected);
  double largest = 1;
  for (const Number& x : b)
    if (std::isfinite(std::abs(x))) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < a.size(); ++i) {
    const double size = std::isfinite(std::abs(b[i])) ? std::abs(b[i]) : 0;
    const double allowed = tolerance.relative * size + tolerance.absolute * largest;
    if (near(a[i].real(), b[i].real(), allowed) && near(a[i].imag(), b[i].imag(), allowed))
      continue;
    return is_complex(dtype) ? element_text(i, a[i], b[i])
                             : element_text(i, a[i].real(), b[i].real());
  }
  return "";
}

std::string difference(const Array& ours, const Array& expected, double times) {
  const auto [relative, absolute] = tolerance_of(expected.type().dtype);
  return difference(ours, expected, {times * relative, times * absolute});
}

std::string differences(const std::vector<Array>& ours, const std::vector<Array>& expected,
                        double times) {
  if (ours.size() != expected.size())
    return "expected " + std::to_string(expected.size()) + " results, received " +
           std::to_string(ours.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string found = difference(ours[i], expected[i], times);
    if (!found.empty()) return "result " + std::to_string(i) + ": " + found;
  }
  return "";
}

std::string type_text(const Type& type) {
  std::string sizes;
  for (int64_t size : type.sizes) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  return std::string(name(type.dtype)) + "[" + sizes + "]";
}

}  // namespace composit::test
