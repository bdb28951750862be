#include "composit/numpy/random.h"

#include <random>

#include "composit/ir/error.h"
#include "composit/numpy/creation.h"
#include "composit/numpy/math.h"
#include "composit/numpy/result_type.h"
#include "composit/ops/pcg64.h"

namespace composit::numpy::random {

NdArray Generator::random(const Ints& size, DType dtype) {
  const NdArray drawn =
      call_as("random.random", "composit::random", {seed_, position_, half_, size, dtype});
  Pcg64 end(seed_, position_, half_);
  end.skip(drawn.size(), dtype);
  position_ = end.position();
  half_ = end.half();
  return drawn;
}

NdArray Generator::uniform(double low, double high, const Ints& size) {
  if (!(low <= high)) refuse("random.uniform", "expected low to be at most high");
  return low + (high - low) * random(size, DType::float64);
}

NdArray Generator::integers(int64_t low, int64_t high, const Ints& size) {
  if (low >= high)
    refuse("random.integers", "expected low below high, received " + std::to_string(low) + " and " +
                                  std::to_string(high));
  const Type type = tensor_type(DType::int64, size);
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) - 1;
  Pcg64 numbers(seed_, position_, half_);
  std::vector<int64_t> values(static_cast<size_t>(type.numel()));
  for (int64_t& value : values)
    value = static_cast<int64_t>(static_cast<uint64_t>(low) + numbers.below_or_at(range));
  position_ = numbers.position();
  half_ = numbers.half();
  return asarray(Array::copy_of(type, values.data()));
}

// Fisher and Yates' shuffle.
NdArray Generator::permutation(int64_t n) {
  if (n < 0)
    refuse("random.permutation", "expected n of at least 0, received " + std::to_string(n));
  std::vector<int64_t> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i);
  Pcg64 numbers(seed_, position_, half_);
  for (size_t i = values.size(); i-- > 1;)
    std::swap(values[i], values[numbers.below_or_at_by_mask(i)]);
  position_ = numbers.position();
  half_ = numbers.half();
  return asarray(values);
}

Generator default_rng(uint64_t seed) {
  Ints words{static_cast<int64_t>(seed & 0xffffffff)};
  if (seed >> 32 != 0) words.push_back(static_cast<int64_t>(seed >> 32));
  return Generator(std::move(words));
}

Generator default_rng() {
  std::random_device device;
  Ints words;
  for (int i = 0; i < 4; ++i) words.push_back(static_cast<int64_t>(uint32_t{device()}));
  return Generator(std::move(words));
}

NdArray random(const Ints& size, DType dtype) { return default_rng().random(size, dtype); }

}  // namespace composit::numpy::random
