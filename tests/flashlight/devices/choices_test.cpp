#include "flashlight/devices/choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/user_error.h"

namespace flashlight::devices {
namespace {

using composit::user_error;
using testing::HasSubstr;
using testing::Optional;

auto refused(const char* text) {
  return user_error([&] { parse_choices(text); });
}

TEST(Choices, HaveDevicesAndLines) {
  const Choices choices = parse_choices(
      "\xEF\xBB\xBF# who does what\n"
      "device small: mosaic, threads 1, winograd false, memory far\n"
      "\n"
      "encoder.layer.3: on small   # a module\n"
      "*:\ton\tcpp\r\n");
  ASSERT_EQ(choices.devices.size(), 1U);
  EXPECT_EQ(choices.devices[0].name, "small");
  EXPECT_EQ(choices.devices[0].backend.name, "mosaic");
  EXPECT_EQ(choices.devices[0].memory, "far");
  EXPECT_EQ(std::get<int64_t>(choices.devices[0].backend.options.at("threads")), 1);
  EXPECT_EQ(describe(choices.devices[0]), "mosaic, threads 1, winograd false, memory far");
  ASSERT_EQ(choices.lines.size(), 2U);
  EXPECT_EQ(choices.lines[0].what, "encoder.layer.3");
  EXPECT_EQ(choices.lines[0].device, "small");
  EXPECT_EQ(choices.lines[1].what, "*");
  EXPECT_EQ(choices.lines[1].number, 5U);
}

TEST(Choices, AreRefusedWithTheirLine) {
  EXPECT_THAT(refused("*: on mosaic\nrelu mosaic"),
              Optional(HasSubstr("choices, line 2: expected 'NAME: on DEVICE' or 'device NAME: "
                                 "BACKEND, OPTION VALUE', received 'relu mosaic'")));
  EXPECT_THAT(refused("relu: mosaic"),
              Optional(HasSubstr("line 1: expected 'on DEVICE', received 'mosaic'")));
  EXPECT_THAT(refused("relu: on"), Optional(HasSubstr("expected 'on DEVICE', received 'on'")));
  EXPECT_THAT(refused("relu: on cpp\nrelu: on mosaic"),
              Optional(HasSubstr("line 2: expected one line for 'relu', received another")));
  // `meeting` and `stack` are backends of other tests here (foreign_test.cpp).
  EXPECT_THAT(refused("relu: on gpu"),
              Optional(HasSubstr("line 1: expected a device, one of cpp, meeting, mosaic, "
                                 "reference, stack, received 'gpu'")));
  EXPECT_THAT(refused("relu: on devices"), Optional(HasSubstr("received 'devices'")));
}

TEST(Choices, OfDevicesAreRefusedWithTheirLine) {
  EXPECT_THAT(refused("device a: gpu"), Optional(HasSubstr("line 1: expected a device, one of")));
  EXPECT_THAT(
      refused("device a: cpp\ndevice a: mosaic"),
      Optional(HasSubstr("line 2: expected a name that no other device has, received 'a'")));
  EXPECT_THAT(refused("device a: mosaic, threads 1, threads 2"),
              Optional(HasSubstr("line 1: 'threads' is given twice")));
  EXPECT_THAT(refused("device a: mosaic, threads"),
              Optional(HasSubstr("expected 'memory NAME' or 'OPTION VALUE', received 'threads'")));
  EXPECT_THAT(refused("device a: mosaic, threads many"),
              Optional(AllOf(HasSubstr("[mosaic] option 'threads': expected an integer"),
                             HasSubstr("line 1"))));
  EXPECT_THAT(refused("\ndevice a: mosaic, speed 3"),
              Optional(AllOf(HasSubstr("threads, winograd"), HasSubstr("line 2"))));
}

}  // namespace
}  // namespace flashlight::devices
