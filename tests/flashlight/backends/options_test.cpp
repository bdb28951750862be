// Options of backends: tables, values and their text, and what is refused.
#include "composit/op/options.h"

#include <gmock/gmock.h>

#include "flashlight/backends/cpp.h"
#include "flashlight/backends/mosaic.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using composit::BackendChoice;
using composit::complete;
using composit::Option;
using composit::Options;
using composit::OptionTable;
using composit::OptionValue;
using composit::parse_option;
using composit::user_error;
using testing::HasSubstr;
using testing::Optional;

const OptionTable& table() {
  static const OptionTable table = {
      {.name = "exact", .fallback = true},
      {.name = "depth", .fallback = 3},
      {.name = "scale", .fallback = 0.5},
      {.name = "label", .fallback = "none"},
      {.name = "target", .fallback = "here", .use = Option::Use::programs}};
  return table;
}
Options calls(const Options& given) { return complete(given, table(), Option::Use::calls, "mine"); }

TEST(Options, fallbacks_are_what_is_not_given) {
  EXPECT_EQ(calls({{"depth", 7}}),
            (Options{{"exact", true}, {"depth", 7}, {"scale", 0.5}, {"label", "none"}}));
  EXPECT_EQ(complete({}, table(), Option::Use::programs, "mine").at("target"), OptionValue("here"));
}

TEST(Options, an_integer_is_a_number) {
  EXPECT_EQ(calls({{"scale", 2}}).at("scale"), OptionValue(2.0));
  EXPECT_EQ(parse_option(table()[2], "2", "mine"), OptionValue(2.0));
}

TEST(Options, what_there_is_not_is_refused) {
  EXPECT_EQ(user_error([] {
              calls({{"deep", 1}});
            }),
            "[mine] expected one of the options exact, depth, scale, label, received 'deep'");
  EXPECT_EQ(user_error([] {
              calls({{"target", "there"}});
            }),
            "[mine] expected one of the options exact, depth, scale, label, received 'target', an "
            "option of programs that are built elsewhere");
  EXPECT_EQ(user_error([] {
              complete({{"x", 1}}, {}, Option::Use::both, "mine");
            }),
            "[mine] expected no option, received 'x'");
}

TEST(Options, other_types_are_refused) {
  const auto refusal = [](const std::string& name, const OptionValue& value) {
    return user_error([&] { calls({{name, value}}); });
  };
  EXPECT_EQ(refusal("exact", 1), "[mine] option 'exact': expected true or false, received 1");
  EXPECT_EQ(refusal("depth", 1.5), "[mine] option 'depth': expected an integer, received 1.5");
  EXPECT_EQ(refusal("scale", "x"), "[mine] option 'scale': expected a number, received 'x'");
  EXPECT_EQ(refusal("label", true), "[mine] option 'label': expected text, received true");
}

TEST(Options, are_read_from_text) {
  const auto read = [](size_t option, const std::string& text) {
    return parse_option(table()[option], text, "mine");
  };
  EXPECT_EQ(read(0, "false"), OptionValue(false));
  EXPECT_EQ(read(1, "-4"), OptionValue(-4));
  EXPECT_EQ(read(2, "1e-3"), OptionValue(1e-3));
  EXPECT_EQ(read(3, "12"), OptionValue("12"));
  EXPECT_EQ(user_error([&] { read(1, "4x"); }),
            "[mine] option 'depth': expected an integer, received '4x'");
  EXPECT_EQ(user_error([&] { read(1, ""); }),
            "[mine] option 'depth': expected an integer, received ''");
  EXPECT_EQ(user_error([&] { read(2, "one"); }),
            "[mine] option 'scale': expected a number, received 'one'");
  EXPECT_EQ(user_error([&] { read(0, "1"); }),
            "[mine] option 'exact': expected true or false, received '1'");
}

TEST(Options, of_a_type_of_their_own) {
  const BackendChoice mosaic = Mosaic{.threads = 2, .freeze = false};
  EXPECT_EQ(mosaic.name, "mosaic");
  EXPECT_EQ(mosaic.options, (Options{{"threads", 2}, {"freeze", false}}));
  const Options all =
      complete(mosaic.options, Mosaic::fields().table(), Option::Use::calls, "mosaic");
  const Mosaic read = Mosaic::fields().typed(all);
  EXPECT_EQ(read.threads, 2);
  EXPECT_FALSE(read.freeze);
  EXPECT_TRUE(read.winograd);
  EXPECT_EQ(BackendChoice(Cpp{}).options, Options());
  EXPECT_EQ(BackendChoice(Cpp{.link_aten = true}).options, (Options{{"link_aten", true}}));
}

}  // namespace
}  // namespace flashlight
