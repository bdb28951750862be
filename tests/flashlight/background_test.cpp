// Work in the background: one piece after another, and what nobody waits for last.
#include "flashlight/background.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

namespace flashlight {
namespace {

TEST(Background, IdlePiecesRunWhileThereAreNoOthers) {
  Background background;
  std::promise<void> go, done;
  std::string order;
  background.add([&] {
    go.get_future().wait();
    order += "a";
  });
  background.add_idle([&] {
    order += "i";
    done.set_value();
  });
  background.add([&] { order += "b"; });
  go.set_value();
  done.get_future().wait();
  EXPECT_EQ(order, "abi");
}

TEST(Background, NobodyWaitsForIdlePieces) {
  std::promise<void> go;
  Background background;
  background.add_idle([&] { go.get_future().wait(); });
  background.wait();
  std::promise<void> done;
  background.add([&] { done.set_value(); });
  go.set_value();
  background.wait();
  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(0)), std::future_status::ready);
}

}  // namespace
}  // namespace flashlight
