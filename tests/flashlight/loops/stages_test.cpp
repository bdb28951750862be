// Stages of the program of loops, text in, text out.
#include <gtest/gtest.h>

#include "flashlight/loops/fuse.h"
#include "flashlight/loops/program_text.h"
#include "flashlight/loops/recompute.h"
#include "flashlight/loops/signed_zero.h"
#include "flashlight/loops/tile.h"
#include "flashlight/loops/verify.h"
#include "flashlight/loops/widen.h"

namespace flashlight::loops {
namespace {

// Expects that `stage` makes `expected` of the program `text`; both are sound.
template <class Stage>
void expect_after(Stage stage, const char* text, const char* expected) {
  Program program = parse_program(text);
  ASSERT_EQ(fault_of(program), std::nullopt);
  program = stage(std::move(program));
  EXPECT_EQ(fault_of(program), std::nullopt);
  EXPECT_EQ(print(program), expected);
}

const auto kFuse = [](Program program) { return fuse(std::move(program)); };

TEST(Fuse, ElementsMoveToWhereTheyAreRead) {
  expect_after(kFuse, R"(function "f" {inputs=[0, 1], results=[3]}
  %0: float32[2, 3] = argument "x" {}
  %1: float32[3] = weight "w" {}
  %2: float32[2, 3] = temporary "mul" {}
  %3: float32[2, 3] = result "relu" {}
  nest %0 %1 to %2 {operation="aten::mul.Tensor"}
    loops(x0: float32[2, 3], x1: float32[3]) -> (y0: float32[2, 3]) {
      for i < 2, j < 3 {
        y0[i, j] = x0[i, j] * x1[j]
      }
    }
  nest %2 to %3 {operation="aten::relu"}
    loops(x0: float32[2, 3]) -> (y0: float32[2, 3]) {
      for i < 2, j < 3 {
        y0[i, j] = max(x0[i, j], 0)
      }
    }
end
)",
               R"(function "f" {inputs=[0, 1], results=[3]}
  %0: float32[2, 3] = argument "x" {}
  %1: float32[3] = weight "w" {}
  %2: float32[2, 3] = temporary "mul" {}
  %3: float32[2, 3] = result "relu" {}
  nest %0 %1 to %3 {operation="aten::relu", fused=["aten::mul.Tensor", "", ""]}
    loops(x0: float32[2, 3], x1: float32[3]) -> (y0: float32[2, 3]) {
      for i < 2, j < 3 {
        y0[i, j] = max(x0[i, j] * x1[j], 0)
      }
    }
end
)");
}

TEST(Fuse, WhatFollowsASumMovesIntoIt) {
  expect_after(kFuse, R"(function "f" {inputs=[0], results=[2]}
  %0: float32[2, 64] = argument "x" {}
  %1: float32[2] = temporary "sum" {}
  %2: float32[2] = result "sqrt" {}
  nest %0 to %1 {operation="aten::sum"}
    loops(x0: float32[2, 64]) -> (y0: float32[2]) {
      for i < 2 {
        var s0: float32 = 0
        reduce r < 64 {
          s0 += x0[i, r]
        }
        y0[i] = s0
      }
    }
  nest %1 to %2 {operation="aten::sqrt"}
    loops(x0: float32[2]) -> (y0: float32[2]) {
      for i < 2 {
        y0[i] = sqrt(x0[i])
      }
    }
end
)",
               R"(function "f" {inputs=[0], results=[2]}
  %0: float32[2, 64] = argument "x" {}
  %1: float32[2] = temporary "sum" {}
  %2: float32[2] = result "sqrt" {}
  nest %0 to %2 {operation="aten::sqrt", fused=["aten::sum", "", ""]}
    loops(x0: float32[2, 64]) -> (y0: float32[2]) {
      for i < 2 {
        var s0: float32 = 0
        reduce r < 64 {
          s0 += x0[i, r]
        }
        y0[i] = sqrt(s0)
      }
    }
end
)");
}

// It would be computed anew for each element of the result.
TEST(Fuse, ASumThatIsReadInAnotherOrderIsKept) {
  expect_after(kFuse, R"(function "f" {inputs=[0], results=[2]}
  %0: float32[2, 64] = argument "x" {}
  %1: float32[2] = temporary "sum" {}
  %2: float32[2, 2] = result "outer" {}
  nest %0 to %1 {operation="aten::sum"}
    loops(x0: float32[2, 64]) -> (y0: float32[2]) {
      for i < 2 {
        var s0: float32 = 0
        reduce r < 64 {
          s0 += x0[i, r]
        }
        y0[i] = s0
      }
    }
  nest %1 to %2 {operation="aten::outer"}
    loops(x0: float32[2]) -> (y0: float32[2, 2]) {
      for i < 2, j < 2 {
        y0[i, j] = x0[i] * x0[j]
      }
    }
end
)",
               R"(function "f" {inputs=[0], results=[2]}
  %0: float32[2, 64] = argument "x" {}
  %1: float32[2] = temporary "sum" {}
  %2: float32[2, 2] = result "outer" {}
  kept %1 "is read in part, or in another order, by outer"
  nest %0 to %1 {operation="aten::sum"}
    loops(x0: float32[2, 64]) -> (y0: float32[2]) {
      for i < 2 {
        var s0: float32 = 0
        reduce r < 64 {
          s0 += x0[i, r]
        }
        y0[i] = s0
      }
    }
  nest %1 to %2 {operation="aten::outer"}
    loops(x0: float32[2]) -> (y0: float32[2, 2]) {
      for i < 2, j < 2 {
        y0[i, j] = x0[i] * x0[j]
      }
    }
end
)");
}

// A product is -0 where a factor is, and the sum with 0 hides it: but not from a sum that begins
// with 0.
TEST(DropZeroTerms, InASumAreDropped) {
  expect_after([](Program program) { return drop_zero_terms(std::move(program)); },
               R"(function "f" {inputs=[0, 1], results=[2]}
  %0: float32[2, 64] = argument "x" {}
  %1: float32[64] = argument "y" {}
  %2: float32[2] = result "sum" {}
  nest %0 %1 to %2 {operation="aten::mv"}
    loops(x0: float32[2, 64], x1: float32[64]) -> (y0: float32[2]) {
      for i < 2 {
        var s0: float32 = 0
        reduce r < 64 {
          s0 += x0[i, r] * x1[r] + 0
        }
        y0[i] = s0
      }
    }
end
)",
               R"(function "f" {inputs=[0, 1], results=[2]}
  %0: float32[2, 64] = argument "x" {}
  %1: float32[64] = argument "y" {}
  %2: float32[2] = result "sum" {}
  nest %0 %1 to %2 {operation="aten::mv"}
    loops(x0: float32[2, 64], x1: float32[64]) -> (y0: float32[2]) {
      for i < 2 {
        var s0: float32 = 0
        reduce r < 64 {
          s0 += x0[i, r] * x1[r]
        }
        y0[i] = s0
      }
    }
end
)");
}

TEST(DropZeroTerms, WhoseSignIsSeenStay) {
  constexpr const char* kSeen = R"(function "f" {inputs=[0], results=[1]}
  %0: float32[2] = argument "x" {}
  %1: float32[2] = result "y" {}
  nest %0 to %1 {operation="aten::add.Tensor"}
    loops(x0: float32[2]) -> (y0: float32[2]) {
      for i < 2 {
        y0[i] = x0[i] + 0
      }
    }
end
)";
  expect_after([](Program program) { return drop_zero_terms(std::move(program)); }, kSeen, kSeen);
}

// 256 + 1 is no bfloat16.
TEST(WideSums, AreRoundedBehindTheLastTerm) {
  const auto widen = [](Program program) {
    for (Routine& function : program.functions) function = with_wide_sums(std::move(function));
    return program;
  };
  expect_after(widen, R"(function "f" {inputs=[0, 1], results=[2]}
  %0: bfloat16[5] = argument "x" {}
  %1: int64[5] = argument "index" {}
  %2: bfloat16[3] = result "sums" {}
  nest to %2 {operation="zeros"}
    loops() -> (y0: bfloat16[3]) {
      for i < 3 {
        y0[i] = 0
      }
    }
  nest %0 %1 to %2 {operation="aten::scatter_add"}
    loops(x0: bfloat16[5], x1: int64[5]) -> (y0: bfloat16[3]) {
      for i < 5 {
        y0[x1[i]] += x0[i]
      }
    }
end
)",
               R"(function "f" {inputs=[0, 1], results=[2]}
  %0: bfloat16[5] = argument "x" {}
  %1: int64[5] = argument "index" {}
  %2: bfloat16[3] = result "sums" {}
  %3: float32[3] = temporary "sum" {}
  nest to %3 {operation="zeros"}
    loops() -> (y0: float32[3]) {
      for i < 3 {
        y0[i] = 0
      }
    }
  nest %1 %0 to %3 {operation="aten::scatter_add"}
    loops(x0: int64[5], x1: bfloat16[5]) -> (y0: float32[3]) {
      for i < 5 {
        y0[x0[i]] += float32(x1[i])
      }
    }
  nest %3 to %2 {operation="aten::scatter_add"}
    loops(x0: float32[3]) -> (y0: bfloat16[3]) {
      for i0 < 3 {
        y0[i0] = bfloat16(x0[i0])
      }
    }
end
)");
}

// Small programs fit into the caches: nothing is computed twice, or in blocks.
TEST(RecomputeAndTile, LeaveSmallProgramsAlone) {
  constexpr const char* kSmall = R"(function "f" {inputs=[0, 1], results=[3]}
  %0: float32[8, 4] = argument "x" {}
  %1: float32[4, 8] = weight "w" {}
  %2: float32[8, 8] = temporary "mm" {}
  %3: float32[8] = result "sum" {}
  nest %0 %1 to %2 {operation="aten::mm"}
    loops(x0: float32[8, 4], x1: float32[4, 8]) -> (y0: float32[8, 8]) {
      for i < 8, j < 8 {
        var s0: float32 = 0
        reduce k < 4 {
          s0 += x0[i, k] * x1[k, j]
        }
        y0[i, j] = s0
      }
    }
  nest %2 to %3 {operation="aten::sum"}
    loops(x0: float32[8, 8]) -> (y0: float32[8]) {
      for i < 8 {
        var s0: float32 = 0
        reduce j < 8 {
          s0 += x0[i, j]
        }
        y0[i] = s0
      }
    }
end
)";
  expect_after([](Program program) { return recompute(std::move(program)); }, kSmall, kSmall);
  expect_after([](Program program) { return tile(std::move(program)); }, kSmall, kSmall);
}

}  // namespace
}  // namespace flashlight::loops
