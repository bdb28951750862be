// Rows of random draws: what compiled code does for them.
#include "composit/ops/draws.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "composit/ir/print.h"
#include "composit/op/samples.h"
#include "tests/user_error.h"

namespace composit {
namespace {

using testing::HasSubstr;
using testing::Optional;

const Draw& draw(std::string_view name) { return *find_draw(Symbol(name)); }

// The options of a call that `text` writes as a sample, as "low=0.0 high=1.0".
std::string options_of(std::string_view name, std::string_view text) {
  const SampleCall sample = parse_sample(draw(name).schema, text);
  std::string result;
  for (const NamedAttribute& option : draw(name).row.runtime_options({.call = &sample.call}))
    result += (result.empty() ? "" : " ") + option.name.str() + "=" + print(option.value);
  return result;
}

TEST(Draws, have_code_or_a_reason_why_not) {
  const std::map<std::string, std::string> reasons = {
      {"aten::randint_like.Tensor", "the end of its range is an element of a tensor"},
      {"aten::randint_like.Tensor_generator", "the end of its range is an element of a tensor"},
      {"aten::bernoulli.Tensor", "another tensor than that of the probabilities gives the dtype"},
      {"aten::poisson", "elements say how many numbers of the generator it takes"}};
  for (const Draw* one : all_draws()) {
    const std::string name = one->schema.name.str();
    const bool has_code = !one->row.runtime.empty() || one->row.opened;
    EXPECT_NE(has_code, reasons.contains(name)) << name;
  }
}

TEST(Draws, name_draws_that_there_are_for_memory_that_is_not_row_major) {
  size_t named = 0;
  for (const Draw* one : all_draws()) {
    if (one->row.not_row_major.empty()) continue;
    ++named;
    const Draw* other = find_draw(Symbol(one->row.not_row_major));
    ASSERT_NE(other, nullptr) << one->row.not_row_major;
    EXPECT_FALSE(other->row.runtime.empty());
  }
  EXPECT_EQ(named, 3U);  // normal_functional, randn_like with and without a generator
}

TEST(Draws, options_are_arguments_of_the_call) {
  EXPECT_EQ(options_of("aten::rand", "[2,3]"), "low=0.0 high=1.0");
  EXPECT_EQ(options_of("aten::uniform", "f32[4] -1.0 2.0"), "from=-1.0 to=2.0");
  EXPECT_EQ(options_of("aten::normal_functional", "f32[4]"), "mean=0.0 std=1.0");
  EXPECT_EQ(options_of("aten::log_normal", "f32[4]"), "mean=1.0 std=2.0");
  EXPECT_EQ(options_of("aten::geometric", "f32[4] 0.25"), "p=0.25");
  EXPECT_EQ(options_of("aten::randint.low", "-2 5 [4]"), "from=-2 to=5");
  EXPECT_EQ(options_of("aten::randint_like", "f32[4] 5"), "from=0 to=5");
  EXPECT_EQ(options_of("aten::multinomial", "f32[2,3]=0..1 7 True"), "batch=2 num_samples=7");
}

TEST(Draws, refuse_what_no_function_draws) {
  const auto message = [](std::string_view name, std::string_view text) {
    return user_error([&] { options_of(name, text); });
  };
  EXPECT_THAT(message("aten::bernoulli.p", "f32[4] 1.5"),
              Optional(HasSubstr("expected a probability from 0 to 1, received 1.5")));
  EXPECT_THAT(message("aten::random.from", "f32[4] 5 5"),
              Optional(HasSubstr("expected a range of numbers, received {5, 5}")));
  EXPECT_THAT(message("aten::random.from", "f32[4] 5 None"),
              Optional(HasSubstr("without an end of the range")));
  EXPECT_THAT(message("aten::multinomial", "f16[2,3]=0..1 7 True"),
              Optional(HasSubstr("by weights of float16")));
}

}  // namespace
}  // namespace composit
