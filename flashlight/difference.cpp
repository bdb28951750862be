#include "flashlight/difference.h"

#include <ATen/ops/view_as_real.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "composit/ir/error.h"
#include "tracer/convert.h"

namespace flashlight {
namespace {

// Maps floats to integers that have the same order.
int64_t ordered(double value) {
  const auto bits = std::bit_cast<int64_t>(value);
  return bits >= 0 ? bits : std::numeric_limits<int64_t>::min() - bits;
}
int64_t ordered(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits >= 0 ? bits : int64_t{std::numeric_limits<int32_t>::min()} - bits;
}

template <class T>
void measure(const at::Tensor& actual, const at::Tensor& expected, Distance& result) {
  const T* a = actual.const_data_ptr<T>();
  const T* b = expected.const_data_ptr<T>();
  double largest = 0;
  for (int64_t i = 0; i < actual.numel(); ++i) {
    if (std::isfinite(b[i])) largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    if (std::bit_cast<std::array<char, sizeof(T)>>(a[i]) ==
        std::bit_cast<std::array<char, sizeof(T)>>(b[i]))
      continue;
    result.equal = false;
    const double gap =
        a[i] == b[i] ? 0 : std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    const bool not_a_number = std::isnan(a[i]) != std::isnan(b[i]);
    result.absolute = std::max(result.absolute, std::isnan(gap) && !not_a_number ? 0
                                                : not_a_number                   ? HUGE_VAL
                                                                                 : gap);
    if (!std::isnan(a[i]) && !std::isnan(b[i]))
      result.ulp =
          std::max(result.ulp, static_cast<uint64_t>(std::abs(ordered(a[i]) - ordered(b[i]))));
  }
  result.relative = largest > 0 ? result.absolute / largest : result.absolute;
}

}  // namespace

Distance distance(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.sizes() != expected.sizes() || actual.scalar_type() != expected.scalar_type())
    throw composit::UserError(c10::str("[check] expected ", expected.scalar_type(), " ",
                                       expected.sizes(), ", received ", actual.scalar_type(), " ",
                                       actual.sizes()));
  const auto plain = [](const at::Tensor& tensor) {
    const at::Tensor host = tracer::on_host(tensor.detach());
    if (!host.defined())
      throw composit::UserError("[check] expected a tensor whose elements can be read, received " +
                                tensor.toString());
    const at::Tensor dense = host.resolve_conj().resolve_neg();
    return (dense.is_complex() ? at::view_as_real(dense) : dense).contiguous();
  };
  const at::Tensor a = plain(actual), b = plain(expected);
  Distance result;
  if (a.scalar_type() == c10::kFloat) {
    measure<float>(a, b, result);
  } else if (a.scalar_type() == c10::kDouble) {
    measure<double>(a, b, result);
  } else {
    result.equal = digest(a) == digest(b);
    if (!result.equal) measure<double>(a.to(c10::kDouble), b.to(c10::kDouble), result);
    result.ulp = 0;  // it is that of double, not of the dtype
  }
  return result;
}

composit::Hash digest(const at::Tensor& tensor) {
  const at::Tensor host = tracer::on_host(tensor);
  return host.defined() ? tracer::to_array(host).content_hash() : composit::Hash();
}

}  // namespace flashlight
