// In test programs about replays: calls of captures never run the program again, and none did.
#include <gtest/gtest.h>

#include <cstdlib>

#include "flashlight/capture.h"

namespace {

class NoLooks : public ::testing::Environment {
 public:
  void SetUp() override { setenv("FLASHLIGHT_SEEN_ONCE", "1", 1); }
  void TearDown() override {
    EXPECT_EQ(flashlight::looks_taken(), 0u) << "a test of replays ran the program instead";
  }
};

const auto* const registered = ::testing::AddGlobalTestEnvironment(new NoLooks);

}  // namespace
