#include "composit/nn/initializer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "composit/ops/native.h"

namespace composit::nn {
namespace {

// Fan-in and fan-out: how many numbers one result is computed from, and how many results use one
// number.
struct Fans {
  double in, out;
};
Fans fans(const std::string& name, const Ints& sizes) {
  if (sizes.size() < 2)
    throw UserError("[Initializer] '" + name +
                    "': expected a weight of 2 axes at least, received " + str(sizes));
  double window = 1;
  for (size_t axis = 2; axis < sizes.size(); ++axis) window *= static_cast<double>(sizes[axis]);
  return {window * static_cast<double>(sizes[1]), window * static_cast<double>(sizes[0])};
}

Type type_of(DType dtype, const Ints& sizes) {
  return tensor_type(dtype, {sizes.begin(), sizes.end()});
}

}  // namespace

Initializer::Initializer(uint64_t seed, DType dtype) : random_(seed), dtype_(dtype) {
  if (!is_floating_point(dtype))
    throw UserError("[Initializer] expected a floating point dtype, received " +
                    std::string(composit::name(dtype)));
}

// std's distributions differ between standard libraries; these do not.
double Initializer::draw() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

double Initializer::draw_normal() {  // Box and Muller 1958
  const double radius = std::sqrt(-2 * std::log(1 - draw()));
  return radius * std::cos(2 * std::numbers::pi * draw());
}

template <class F>
LazyTensor Initializer::add(const std::string& name, const Ints& sizes, F next) {
  for (const LazyTensor& parameter : parameters_)
    if (input_name(*parameter.node) == name)
      throw UserError("[Initializer] there is a parameter '" + name + "' already");
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; }))
    throw UserError("[Initializer] '" + name + "': expected sizes of at least 0, received " +
                    str(sizes));
  const Type type = type_of(dtype_, sizes);
  std::vector<double> values(static_cast<size_t>(type.numel()));
  std::generate(values.begin(), values.end(), next);
  parameters_.push_back(held_input(name, array_of(type, values), InputKind::parameter));
  return parameters_.back();
}

LazyTensor Initializer::full(const std::string& name, const Ints& sizes, double value) {
  return add(name, sizes, [&] { return value; });
}
LazyTensor Initializer::uniform(const std::string& name, const Ints& sizes, double low,
                                double high) {
  return add(name, sizes, [&] { return low + (high - low) * draw(); });
}
LazyTensor Initializer::normal(const std::string& name, const Ints& sizes, double mean,
                               double deviation) {
  return add(name, sizes, [&] { return mean + deviation * draw_normal(); });
}

// Numbers from -b to b have the variance b^2 / 3.
LazyTensor Initializer::kaiming_uniform(const std::string& name, const Ints& sizes, double gain) {
  const double bound = gain * std::sqrt(3 / fans(name, sizes).in);
  return uniform(name, sizes, -bound, bound);
}
LazyTensor Initializer::kaiming_normal(const std::string& name, const Ints& sizes, double gain) {
  return normal(name, sizes, 0, gain / std::sqrt(fans(name, sizes).in));
}
LazyTensor Initializer::xavier_uniform(const std::string& name, const Ints& sizes, double gain) {
  const Fans f = fans(name, sizes);
  const double bound = gain * std::sqrt(6 / (f.in + f.out));
  return uniform(name, sizes, -bound, bound);
}
LazyTensor Initializer::xavier_normal(const std::string& name, const Ints& sizes, double gain) {
  const Fans f = fans(name, sizes);
  return normal(name, sizes, 0, gain * std::sqrt(2 / (f.in + f.out)));
}

}  // namespace composit::nn
