// A library is silent about short work, unless it is asked.
#include "composit/io/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "composit/io/saved_capture.h"
#include "composit/io/visualize.h"
#include "tests/io/sample_capture.h"
#include "tests/io/temporary_folder.h"

namespace composit::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The text that `work` writes to the error stream while FLASHLIGHT_PROGRESS is `seconds`.
template <class Work>
std::string written(const char* seconds, Work work) {
  seconds == nullptr ? ::unsetenv("FLASHLIGHT_PROGRESS")
                     : ::setenv("FLASHLIGHT_PROGRESS", seconds, 1);
  ::testing::internal::CaptureStderr();
  work();
  ::unsetenv("FLASHLIGHT_PROGRESS");
  return ::testing::internal::GetCapturedStderr();
}

TEST(log, has_nothing_of_short_work) {
  const TemporaryFolder folder;
  const auto work = [&] {
    save(sample_capture(), folder / "model");
    visualize(load(folder / "model").graph, folder / "model.dot");
  };
  EXPECT_EQ(written("1000", work), "");
  EXPECT_THAT(written("0", work), AllOf(HasSubstr("saved " + (folder / "model").string()),
                                        HasSubstr("loaded " + (folder / "model").string()),
                                        HasSubstr("drew " + (folder / "model.dot").string())));
  EXPECT_THAT(message_of([&] { written("soon", work); }),
              HasSubstr("[FLASHLIGHT_PROGRESS] expected a number of seconds, received 'soon'"));
  ::testing::internal::GetCapturedStderr();
  ::unsetenv("FLASHLIGHT_PROGRESS");
}

TEST(log, has_long_work_once_a_second) {
  const auto work = [] {
    Progress progress("counting", 4);
    progress.advance(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    progress.advance(1);  // a second has passed
    progress.advance(1);
  };
  const std::string text = written("0", work);
  EXPECT_THAT(text, HasSubstr("counting: 50 %"));
  EXPECT_EQ(text.find("%"), text.rfind("%")) << text;
  EXPECT_EQ(written("1000", work), "");
}

TEST(log, is_silent_for_two_seconds_by_default) {
  ::unsetenv("FLASHLIGHT_PROGRESS");
  const Progress progress("counting", 1);
  EXPECT_FALSE(progress.is_long());
}

}  // namespace
}  // namespace composit::test
