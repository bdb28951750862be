// Numbers by the names of sizes that they follow from.
#include "flashlight/text/size_names.h"

#include <gtest/gtest.h>

#include "flashlight/text/open_numbers.h"

namespace flashlight::text {
namespace {

using Names = std::vector<std::string>;

SizeNames names_of_two() {
  SizeNames names;
  names.add({"batch", 61, {"batch"}});
  names.add({"pixels", 4 * 97, {"pixels"}});
  names.add({"pixels / 4", 97, {"pixels"}});
  names.add({"pixels + 3", 4 * 97 + 3, {"pixels"}});
  return names;
}

TEST(SizeNames, NumbersThatFollowFromSizes) {
  SizeNames names = names_of_two();
  EXPECT_EQ(names.text(61), "batch");
  EXPECT_EQ(names.text(12 * 61), "12 * batch");
  EXPECT_EQ(names.text(97), "pixels / 4");
  EXPECT_EQ(names.text(3 * 97), "3 * (pixels / 4)");
  EXPECT_EQ(names.text(2 * 61 * 97 * 97), "2 * batch * (pixels / 4) * (pixels / 4)");
  EXPECT_EQ(names.text(4 * 97 + 3), "pixels + 3");
  EXPECT_EQ(names.text(5 * (4 * 97 + 3)), "5 * (pixels + 3)");
  EXPECT_EQ(names.text(2 * 61 - 1), "2 * batch - 1");
  EXPECT_EQ(names.text(96), "(pixels / 4) - 1");
  EXPECT_EQ(names.text(4 * 97), "pixels");
}

TEST(SizeNames, ConstantsAreDigits) {
  SizeNames names = names_of_two();
  for (const int64_t constant : {0, 1, -61, 12, 768, 30522})
    EXPECT_EQ(names.text(constant), std::to_string(constant));
  EXPECT_TRUE(names.take_used().empty());
  EXPECT_FALSE(names.has(768));
  EXPECT_EQ(SizeNames().text(61), "61");
}

TEST(SizeNames, KnowWhichWereUsed) {
  SizeNames names = names_of_two();
  names.text(3 * 97);
  EXPECT_EQ(names.take_used(), Names{"pixels"});
  EXPECT_TRUE(names.take_used().empty());
  names.use({"pixels"});
  names.text(61);
  EXPECT_EQ(names.take_used(), (Names{"batch", "pixels"}));
  EXPECT_EQ(names.names(), (Names{"batch", "pixels"}));
}

TEST(SizeNames, MemoryOfTheSameSizes) {
  const SizeNames names = names_of_two();
  EXPECT_TRUE(names.same_sizes(61, 12 * 61));
  EXPECT_TRUE(names.same_sizes(768, 12));
  EXPECT_FALSE(names.same_sizes(61, 61 * 97));
  EXPECT_FALSE(names.same_sizes(61, 62));
}

TEST(SizeNames, AreWrittenInsteadOfNumbers) {
  SizeNames names = names_of_two();
  {
    const NamedNumbers named(names);
    EXPECT_EQ("i * " + open_number(2 * 61), "i * (2 * batch)");
    EXPECT_EQ("i < " + bare_number(2 * 61), "i < 2 * batch");
    EXPECT_EQ(open_number(61) + open_number(768), "batch768");
    EXPECT_TRUE(is_open_number(61));
    EXPECT_FALSE(is_open_number(768));
  }
  EXPECT_EQ(open_number(61), "61");
  EXPECT_EQ(current_names(), nullptr);
}

}  // namespace
}  // namespace flashlight::text
