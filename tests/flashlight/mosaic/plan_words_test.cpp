// Plans as words, read back as a written program reads them; sizes of results as text.
#include "flashlight/mosaic/plan_words.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>

#include "flashlight/package/size_text.h"
#include "flashlight/runtime/steps.hpp"

namespace flashlight::mosaic {
namespace {

// A step that writes its first number, plus what its second place holds, to its first place.
void add(const fl::Team& team, void* const* at, std::byte* /*arena*/, fl::Generator* /*generator*/,
         const int64_t* numbers) {
  if (team.thread() == 0)
    *static_cast<int64_t*>(at[0]) = *static_cast<const int64_t*>(at[1]) + numbers[0];
}
// And one that multiplies.
void multiply(const fl::Team& team, void* const* at, std::byte* /*arena*/,
              fl::Generator* /*generator*/, const int64_t* numbers) {
  if (team.thread() == 0)
    *static_cast<int64_t*>(at[0]) = *static_cast<const int64_t*>(at[1]) * numbers[0] * numbers[1];
}

int64_t place(fl::StepMemory memory, int64_t there) {
  return there << fl::kStepMemoryBits | static_cast<int64_t>(memory);
}

// result = (argument + a) * b * c, by way of the arena at `offset`.
std::vector<int64_t> sum_and_product(int64_t a, int64_t b, int64_t c, int64_t offset) {
  using fl::StepMemory;
  return {offset + 8,
          0,
          2,
          0,
          3,
          2,
          1,
          1,
          3,
          2,
          2,
          place(StepMemory::arena, offset),
          place(StepMemory::argument, 0),
          place(StepMemory::result, 0),
          place(StepMemory::arena, offset),
          a,
          b,
          c};
}

int64_t run(const fl::StepPlan& plan, int64_t x) {
  static constexpr fl::StepEntry* kSteps[] = {add, multiply};
  std::vector<std::byte> arena(static_cast<size_t>(plan.arena_bytes()));
  int64_t y = 0;
  const void* const arguments[] = {&x};
  void* const results[] = {&y};
  plan.run({arguments, nullptr, results, nullptr, arena.data(), nullptr}, kSteps, 2, nullptr);
  return y;
}

TEST(PlanWords, are_read_back_at_all_sizes) {
  std::mt19937 random(7);
  const std::vector<composit::SizeRange> ranges = {{"batch", 2, 5}, {"tokens", 8, 40, 8}};
  PlanWords plans;
  std::vector<std::vector<int64_t>> numbers;
  for (int64_t i = 0; i < 4 * 5; ++i) {
    const auto next = [&] { return static_cast<int64_t>(random() % 100); };
    numbers.push_back({next(), 3, next(), 8 * (next() % 9)});
    plans.add(sum_and_product(numbers[i][0], numbers[i][1], numbers[i][2], numbers[i][3]));
  }
  const composit::Array words = plans.words(ranges);
  const auto* const first = reinterpret_cast<const int64_t*>(words.data());
  for (int64_t batch = 2, i = 0; batch <= 5; ++batch)
    for (int64_t tokens = 8; tokens <= 40; tokens += 8, ++i)
      EXPECT_EQ(run(fl::StepPlan(first, {batch, tokens}), 11),
                (11 + numbers[i][0]) * numbers[i][1] * numbers[i][2])
          << batch << " x " << tokens;
}

TEST(PlanWords, sizes_without_a_plan_are_refused) {
  PlanWords plans;
  plans.add(sum_and_product(1, 2, 3, 0));
  plans.add_none();
  EXPECT_FALSE(plans.empty());
  const composit::Array words = plans.words({{"tokens", 8, 16, 8}});
  const auto* const first = reinterpret_cast<const int64_t*>(words.data());
  EXPECT_EQ(run(fl::StepPlan(first, {8}), 1), 12);
  for (const int64_t size : {16, 0, 24, 9, -8})
    EXPECT_THROW(fl::StepPlan(first, {size}), std::runtime_error) << size;
  EXPECT_THROW(fl::StepPlan(first, {8, 8}), std::runtime_error);
}

TEST(PlanWords, a_new_value_is_written_over_a_copy_of_its_argument) {
  std::vector<int64_t> plan = sum_and_product(1, 2, 3, 0);
  plan[1] = 1;
  plan.insert(plan.begin() + 2, {1, 0, 8});  // result 1 begins as argument 0
  PlanWords plans;
  plans.add(plan);
  const composit::Array words = plans.words({});
  const fl::StepPlan read(reinterpret_cast<const int64_t*>(words.data()), {});
  int64_t x = 5, y = 0, z = 0;
  std::vector<std::byte> arena(static_cast<size_t>(read.arena_bytes()));
  const void* const arguments[] = {&x};
  void* const results[] = {&y, &z};
  static constexpr fl::StepEntry* kSteps[] = {add, multiply};
  read.run({arguments, nullptr, results, nullptr, arena.data(), nullptr}, kSteps, 1, nullptr);
  EXPECT_EQ(y, 36);
  EXPECT_EQ(z, 5);
}

// Of each byte that changes.
TEST(PlanWords, damage_is_seen) {
  PlanWords plans;
  for (int64_t i = 0; i < 3; ++i) plans.add(sum_and_product(i, 2, 3, 0));
  const composit::Array words = plans.words({{"n", 1, 3}});
  std::vector<int64_t> copy(static_cast<size_t>(words.type().numel()));
  std::memcpy(copy.data(), words.data(), copy.size() * sizeof(int64_t));
  const auto count = static_cast<int64_t>(copy.size());
  const uint64_t hash = fl::hash_of_words(copy.data(), count);
  EXPECT_NO_THROW(fl::check_plans(copy.data(), count, hash));
  for (size_t byte = 0; byte < copy.size() * sizeof(int64_t); ++byte) {
    auto* const bytes = reinterpret_cast<unsigned char*>(copy.data());
    bytes[byte] ^= 0x80;
    EXPECT_THROW(fl::check_plans(copy.data(), count, hash), std::runtime_error) << byte;
    bytes[byte] ^= 0x80;
  }
}

// ---- sizes as text ------------------------------------------------------------------------------

std::optional<std::string> text_of(const std::function<int64_t(int64_t, int64_t)>& size) {
  std::vector<std::vector<int64_t>> calls;
  std::vector<int64_t> numbers;
  for (int64_t a = 2; a <= 9; ++a)
    for (int64_t b = 30; b <= 90; ++b) {
      calls.push_back({a, b});
      numbers.push_back(size(a, b));
    }
  return package::size_text({"a", "b"}, calls, numbers);
}

TEST(SizeText, says_what_a_size_follows_from) {
  EXPECT_EQ(text_of([](auto, auto) { return 768; }), "768");
  EXPECT_EQ(text_of([](auto, auto) { return 0; }), "0");
  EXPECT_EQ(text_of([](auto, auto b) { return b; }), "b");
  EXPECT_EQ(text_of([](auto a, auto b) { return 2 * b - a + 3; }), "-a + 2 * b + 3");
  EXPECT_EQ(text_of([](auto a, auto b) { return a * b; }), "a * b");
  EXPECT_EQ(text_of([](auto a, auto b) { return 12 * a * b; }), "12 * a * b");
  EXPECT_EQ(text_of([](auto a, auto) { return (a + 1) / 2; }), "(a + 1) / 2");
  EXPECT_EQ(text_of([](auto, auto b) { return (b - 7) / 32; }), "(b - 7) / 32");
  EXPECT_EQ(text_of([](auto a, auto) { return a / 3; }), "a / 3");
}

TEST(SizeText, says_nothing_where_no_form_fits) {
  EXPECT_EQ(text_of([](auto a, auto b) { return a * a + b; }), std::nullopt);
  EXPECT_EQ(text_of([](auto a, auto b) { return a == 5 && b == 60 ? 1 : 0; }), std::nullopt);
}

}  // namespace
}  // namespace flashlight::mosaic
