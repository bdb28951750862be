#include "composit/ops/pcg64.h"

#include <bit>

#include "composit/ir/error.h"

namespace composit {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr Wide kMultiplier = Wide{0x2360ed051fc65da4} << 64 | 0x4385df649fccf645;

// numpy.random.SeedSequence: entropy mixed into a pool of four words.
class SeedSequence {
 public:
  explicit SeedSequence(const std::vector<int64_t>& entropy) {
    const auto word = [&](size_t i) {
      return i < entropy.size() ? static_cast<uint32_t>(entropy[i]) : 0;
    };
    for (size_t i = 0; i < pool_.size(); ++i) pool_[i] = hashed(word(i));
    for (size_t from = 0; from < pool_.size(); ++from)
      for (size_t to = 0; to < pool_.size(); ++to)
        if (from != to) pool_[to] = mixed(pool_[to], hashed(pool_[from]));
    for (size_t from = pool_.size(); from < entropy.size(); ++from)
      for (uint32_t& to : pool_) to = mixed(to, hashed(word(from)));
  }

  std::array<uint64_t, 4> words() const {
    uint32_t constant = 0x8b51f9dd;
    std::array<uint64_t, 4> result{};
    for (size_t i = 0; i < 2 * result.size(); ++i) {
      uint32_t value = pool_[i % pool_.size()] ^ constant;
      constant *= 0x58f38ded;
      value *= constant;
      value ^= value >> 16;
      result[i / 2] |= uint64_t{value} << (i % 2 == 0 ? 0 : 32);
    }
    return result;
  }

 private:
  uint32_t hashed(uint32_t value) {
    value ^= constant_;
    constant_ *= 0x931e8875;
    value *= constant_;
    return value ^ value >> 16;
  }
  static uint32_t mixed(uint32_t x, uint32_t y) {
    const uint32_t result = 0xca01f9dd * x - 0x4973f715 * y;
    return result ^ result >> 16;
  }

  std::array<uint32_t, 4> pool_{};
  uint32_t constant_ = 0x43b0d7e5;
};

}  // namespace

Pcg64::Pcg64(const std::vector<int64_t>& seed, int64_t position, int64_t half) {
  if (seed.empty() || position < 0 || half < -1 || half >= position)
    throw UserError("expected a seed, and a place in its sequence");
  this->seed(SeedSequence(seed).words());
  if (half >= 0) {
    const Pcg64 before = [&] {
      Pcg64 at(seed, half);
      at.next64();
      return at;
    }();
    upper_ = static_cast<uint32_t>(before.output() >> 32);
  }
  advance(static_cast<uint64_t>(position));
  position_ = position;
  half_ = half;
}

void Pcg64::seed(const std::array<uint64_t, 4>& words) {
  increment_ = (Wide{words[2]} << 64 | words[3]) << 1 | 1;
  state_ = increment_ + (Wide{words[0]} << 64 | words[1]);
  state_ = state_ * kMultiplier + increment_;
}

// F. Brown, "Random Number Generation with Arbitrary Stride" (1994).
void Pcg64::advance(uint64_t steps) {
  Wide multiplier = kMultiplier, increment = increment_;
  for (; steps > 0; steps /= 2) {
    if (steps % 2 != 0) state_ = state_ * multiplier + increment;
    increment *= multiplier + 1;
    multiplier *= multiplier;
  }
}

uint64_t Pcg64::output() const {
  const uint64_t folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
  const auto turn = static_cast<unsigned>(state_ >> 122);
  return folded >> turn | folded << (-turn & 63);
}

uint64_t Pcg64::next64() {
  state_ = state_ * kMultiplier + increment_;
  ++position_;
  return output();
}

uint32_t Pcg64::next32() {
  if (half_ >= 0) {
    half_ = -1;
    return upper_;
  }
  const uint64_t bits = next64();
  half_ = position_ - 1;
  upper_ = static_cast<uint32_t>(bits >> 32);
  return static_cast<uint32_t>(bits);
}

double Pcg64::next_double() { return static_cast<double>(next64() >> 11) * 0x1p-53; }
float Pcg64::next_float() { return static_cast<float>(next32() >> 8) * 0x1p-24F; }

// Lemire's multiplication, with as many bits as the limit needs.
uint64_t Pcg64::below_or_at(uint64_t limit) {
  if (limit == 0) return 0;
  if (limit == 0xffffffff) return next32();
  if (limit == ~uint64_t{0}) return next64();
  const uint64_t count = limit + 1;
  if (limit < 0xffffffff) {
    const auto narrow = static_cast<uint32_t>(count);
    const uint32_t threshold = -narrow % narrow;
    uint64_t product = uint64_t{next32()} * narrow;
    while (static_cast<uint32_t>(product) < threshold) product = uint64_t{next32()} * narrow;
    return product >> 32;
  }
  const uint64_t threshold = -count % count;
  Wide product = Wide{next64()} * count;
  while (static_cast<uint64_t>(product) < threshold) product = Wide{next64()} * count;
  return static_cast<uint64_t>(product >> 64);
}

uint64_t Pcg64::below_or_at_by_mask(uint64_t limit) {
  if (limit == 0) return 0;
  const uint64_t mask = ~uint64_t{0} >> std::countl_zero(limit);
  const auto draw = [&] { return mask & (limit <= 0xffffffff ? next32() : next64()); };
  uint64_t value = draw();
  while (value > limit) value = draw();
  return value;
}

void Pcg64::skip(int64_t count, DType dtype) {
  int64_t draws = count;
  if (dtype == DType::float32) {
    if (count > 0 && half_ >= 0) {
      half_ = -1;
      --count;
    }
    draws = (count + 1) / 2;
    if (count % 2 != 0) half_ = position_ + draws - 1;
  }
  advance(static_cast<uint64_t>(draws));
  position_ += draws;
  if (half_ >= 0 && half_ == position_ - 1) upper_ = static_cast<uint32_t>(output() >> 32);
}

}  // namespace composit
