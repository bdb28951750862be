// The memory that a function needs of its caller, and the places of its temporaries in it.
#include "flashlight/loops/scheduled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flashlight/loops/program_text.h"

namespace flashlight::loops {
namespace {

using ::testing::ElementsAre;

// The bytes of `t` in the arena: 50 x 60 float32, up to the next multiple of 64 bytes.
constexpr int64_t kBytes = (50 * 60 * 4 + 63) / 64 * 64;

// Rows of `t` and its columns: two loops, and memory between them. `s` is small.
constexpr const char* kProgram = R"(function "body" {inputs=[0], results=[3]}
  %0: float32[50, 60] = argument "x" {}
  %1: float32[50, 60] = temporary "t" {}
  %2: float32[60] = temporary "s" {}
  %3: float32[60] = result "y" {}
  nest %0 to %1 {}
    loops(x0: float32[50, 60]) -> (y0: float32[50, 60]) {
      for i < 50, j < 60 {
        y0[i, j] = exp(x0[i, j])
      }
    }
  nest %1 to %2 {}
    loops(x0: float32[50, 60]) -> (y0: float32[60]) {
      for j < 60 {
        var s0: float32 = 0
        reduce i < 50 {
          s0 += x0[i, j]
        }
        y0[j] = s0
      }
    }
  nest %2 to %3 {}
    loops(x0: float32[60]) -> (y0: float32[60]) {
      for j < 60 {
        y0[j] = exp(x0[j])
      }
    }
end
function "program" {inputs=[0], results=[1]}
  %0: float32[50, 60] = argument "x" {}
  %1: float32[60] = result "y" {}
  call 0 %0 to %1 {}
end
)";

Table<FunctionId, ScheduledRoutine> scheduled(const Program& program) {
  Table<FunctionId, ScheduledRoutine> all;
  for (const Routine& function : program.functions)
    all.push_back(scheduled_routine(function, program.functions, all));
  return all;
}

TEST(Scheduled, TemporariesLieOnTheStackOrInTheArena) {
  const ScheduledRoutine body = scheduled(parse_program(kProgram))[FunctionId(0)];
  EXPECT_THAT(body.is_local, ElementsAre(false, false, true, false));
  EXPECT_EQ(body.own_bytes, kBytes);
  EXPECT_EQ(body.offsets[ValueId(1)], 0);
}

TEST(Scheduled, CallersGiveWhatCalleesNeed) {
  const ScheduledRoutine caller = scheduled(parse_program(kProgram))[FunctionId(1)];
  EXPECT_EQ(caller.own_bytes, 0);
  EXPECT_TRUE(caller.needs.has_arena);
  EXPECT_EQ(caller.needs.arena_bytes, kBytes);
  EXPECT_FALSE(caller.needs.has_generator);
}

// A schedule runs each step once; here in the order in which they stand.
TEST(Scheduled, StepsRunInTheOrderOfTheLoops) {
  const Program program = parse_program(kProgram);
  EXPECT_THAT(order_of_steps(schedule_of(program.functions[FunctionId(0)])),
              ElementsAre(StepId(0), StepId(1), StepId(2)));
}

}  // namespace
}  // namespace flashlight::loops
