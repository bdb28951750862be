#include "examples/objectives/uniform.h"

#include <cmath>

namespace objectives {
namespace {

using composit::Array;
using composit::DType;

template <class T, class Element>
Array filled(DType dtype, const std::vector<int64_t>& sizes, const Element& element) {
  const composit::Type type =
      composit::tensor_type(dtype, composit::Dims(sizes.begin(), sizes.end()));
  std::vector<T> elements(static_cast<size_t>(type.numel()));
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<T>(element(i));
  return Array::copy_of(type, elements.data());
}

}  // namespace

uint64_t splitmix64(uint64_t seed, uint64_t i) {
  uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Array uniform(const Uniform& uniform, DType dtype) {
  const auto element = [&](uint64_t i) {
    const double unit = std::ldexp(static_cast<double>(splitmix64(uniform.seed, i) >> 11), -53);
    return uniform.low + (uniform.high - uniform.low) * unit;
  };
  return dtype == DType::float32 ? filled<float>(dtype, uniform.sizes, element)
                                 : filled<double>(DType::float64, uniform.sizes, element);
}

Array integers(const std::vector<int64_t>& sizes, uint64_t seed, int64_t limit) {
  return filled<int64_t>(DType::int64, sizes, [&](uint64_t i) {
    return splitmix64(seed, i) % static_cast<uint64_t>(limit);
  });
}

}  // namespace objectives
