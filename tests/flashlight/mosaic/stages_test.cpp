// The stages that mosaic adds to those of loops: text in, text out, and the same results.
#include <gtest/gtest.h>

#include <random>

#include "composit/ops/native.h"
#include "flashlight/loops/interpret.h"
#include "flashlight/loops/program_text.h"
#include "flashlight/loops/verify.h"
#include "flashlight/mosaic/copy_windows.h"
#include "flashlight/mosaic/integer_products.h"
#include "flashlight/mosaic/reductions.h"
#include "flashlight/mosaic/split_axes.h"
#include "flashlight/mosaic/split_phases.h"
#include "flashlight/mosaic/tilize.h"
#include "flashlight/mosaic/weight_order.h"
#include "tests/agreement.h"

namespace flashlight::mosaic {
namespace {

using composit::Array;
using loops::Program;

std::vector<Array> random_inputs(const Program& program) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> number(-1, 1);
  const loops::Routine& function = program.functions.back();
  std::vector<Array> inputs;
  for (const ValueId input : function.inputs) {
    const composit::Type& type = function.values[input].type;
    const double scale = composit::is_floating_point(type.dtype) ? 1 : 120;
    std::vector<double> numbers(static_cast<size_t>(type.numel()));
    for (double& one : numbers) one = scale * number(random);
    inputs.push_back(composit::array_of(type, numbers));
  }
  return inputs;
}

// Expects that `stage` makes `expected` of the program `text`, that both are sound, and that they
// compute the same, but for the order of sums.
template <class Stage>
void expect_after(Stage stage, const char* text, const char* expected) {
  Program program = loops::parse_program(text);
  ASSERT_EQ(loops::fault_of(program), std::nullopt);
  const std::vector<Array> inputs = random_inputs(program),
                           before = loops::interpret(program, inputs);
  program = stage(std::move(program));
  EXPECT_EQ(loops::fault_of(program), std::nullopt);
  EXPECT_EQ(loops::print(program), expected);
  const std::vector<Array> after = loops::interpret(program, inputs);
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(composit::test::difference(after[i], before[i]), "");
}

const auto kNothing = [](ValueId) { return false; };

TEST(SplitPhases, AStrideLeavesNoCondition) {
  expect_after([](Program program) { return split_phases(std::move(program)); },
               R"(function "f" {inputs=[0, 1], results=[2]}
  %0: float32[8, 16] = argument "x" {}
  %1: float32[8, 8, 4] = weight "w" {}
  %2: float32[8, 32] = result "y" {}
  nest %0 %1 to %2 {operation="aten::conv_transpose1d"}
    loops(x0: float32[8, 16], x1: float32[8, 8, 4]) -> (y0: float32[8, 32]) {
      for c < 8, i < 32 {
        var s0: float32 = 0
        reduce o < 8, k < 4 {
          where remainder(i + k - 3, 2) == 0 && i + k - 3 >= 0 && i + k - 3 < 31
          s0 += x0[o, floor_divide(i + k - 3, 2)] * x1[o, c, k]
        }
        y0[c, i] = s0
      }
    }
end
)",
               R"(function "f" {inputs=[0, 1], results=[2]}
  %0: float32[8, 16] = argument "x" {}
  %1: float32[8, 8, 4] = weight "w" {}
  %2: float32[8, 32] = result "y" {}
  nest %0 %1 to %2 {operation="aten::conv_transpose1d"}
    loops(x0: float32[8, 16], x1: float32[8, 8, 4]) -> (y0: float32[8, 32]) {
      for c < 8, i < 16 {
        var s0: float32 = 0
        reduce o < 8, k < 2 {
          let t0 = k * 2
          where i * 2 + t0 - 2 >= 0
          s0 += x0[o, i + k - 1] * x1[o, c, t0]
        }
        y0[c, i * 2 + 1] = s0
      }
    }
  nest %0 %1 to %2 {operation="aten::conv_transpose1d"}
    loops(x0: float32[8, 16], x1: float32[8, 8, 4]) -> (y0: float32[8, 32]) {
      for c < 8, i < 16 {
        var s0: float32 = 0
        reduce o < 8, k < 2 {
          let t0 = k * 2
          where i * 2 + t0 - 2 >= 0
          s0 += x0[o, i + k - 1] * x1[o, c, t0 + 1]
        }
        y0[c, i * 2] = s0
      }
    }
end
)");
}

TEST(SplitAxes, WhatReadsThroughAReshapeBecomesAffine) {
  expect_after([](Program program) { return split_axes(std::move(program)); },
               R"(function "f" {inputs=[0], results=[1]}
  %0: float32[32, 8] = argument "x" {}
  %1: float32[256] = result "y" {}
  nest %0 to %1 {operation="aten::relu"}
    loops(x0: float32[32, 8]) -> (y0: float32[256]) {
      for i < 256 {
        y0[i] = max(x0[floor_divide(i, 8), remainder(i, 8)], 0)
      }
    }
end
)",
               R"(function "f" {inputs=[0], results=[1]}
  %0: float32[32, 8] = argument "x" {}
  %1: float32[256] = result "y" {}
  nest %0 to %1 {operation="aten::relu"}
    loops(x0: float32[32, 8]) -> (y0: float32[256]) {
      for i < 32, i_ < 8 {
        y0[i * 8 + i_] = max(x0[i, i_], 0)
      }
    }
end
)");
}

// The gradient by the weights of a convolution of a small image.
TEST(CopyWindows, TheColumnsOfAProductLieSideBySide) {
  expect_after([](Program program) { return copy_windows(std::move(program), kNothing).program; },
               R"(function "f" {inputs=[0, 1], results=[2]}
  %0: float32[16, 6] = argument "x" {}
  %1: float32[32, 4] = argument "dy" {}
  %2: float32[32, 16, 3] = result "dw" {}
  nest %0 %1 to %2 {operation="aten::convolution_backward"}
    loops(x0: float32[16, 6], x1: float32[32, 4]) -> (y0: float32[32, 16, 3]) {
      for o < 32, c < 16, k < 3 {
        var s0: float32 = 0
        reduce p < 4 {
          s0 += x0[c, p + k] * x1[o, p]
        }
        y0[o, c, k] = s0
      }
    }
end
)",
               R"(function "f" {inputs=[0, 1], results=[2]}
  %0: float32[16, 6] = argument "x" {}
  %1: float32[32, 4] = argument "dy" {}
  %2: float32[32, 16, 3] = result "dw" {}
  %3: float32[4, 16, 3] = temporary "windows" {}
  kept %3 "are the columns of a product, side by side"
  nest %0 to %3 {operation="windows"}
    loops(x0: float32[16, 6]) -> (y0: float32[4, 16, 3]) {
      for i0 < 4, i1 < 16, i2 < 3 {
        y0[i0, i1, i2] = x0[i1, i0 + i2]
      }
    }
  nest %3 %1 to %2 {operation="aten::convolution_backward"}
    loops(x0: float32[4, 16, 3], x1: float32[32, 4]) -> (y0: float32[32, 16, 3]) {
      for o < 32, c < 16, k < 3 {
        var s0: float32 = 0
        reduce p < 4 {
          s0 += x0[p, c, k] * x1[o, p]
        }
        y0[o, c, k] = s0
      }
    }
end
)");
}

// Weights that are known, of windows with three channels: what rows read is one run of terms.
TEST(OrderWeights, FewChannelsComeLast) {
  expect_after(
      [](Program program) {
        return order_weights(std::move(program), [](ValueId value) { return value == ValueId(1); });
      },
      R"(function "f" {inputs=[0, 1], results=[2]}
  %0: float32[67, 3] = argument "x" {}
  %1: float32[8, 3, 4] = argument "w" {}
  %2: float32[64, 8] = result "y" {}
  nest %0 %1 to %2 {operation="aten::convolution"}
    loops(x0: float32[67, 3], x1: float32[8, 3, 4]) -> (y0: float32[64, 8]) {
      for p < 64, o < 8 {
        var s0: float32 = 0
        reduce c < 3, k < 4 {
          s0 += x0[p + k, c] * x1[o, c, k]
        }
        y0[p, o] = s0
      }
    }
end
)",
      R"(function "f" {inputs=[0, 1], results=[2]}
  %0: float32[67, 3] = argument "x" {}
  %1: float32[8, 3, 4] = argument "w" {}
  %2: float32[64, 8] = result "y" {}
  %3: float32[8, 4, 3] = temporary "w.ordered" {}
  nest %1 to %3 {operation="w.ordered"}
    loops(x0: float32[8, 3, 4]) -> (y0: float32[8, 4, 3]) {
      for i0 < 8, i1 < 4, i2 < 3 {
        y0[i0, i1, i2] = x0[i0, i2, i1]
      }
    }
  nest %0 %3 to %2 {operation="aten::convolution"}
    loops(x0: float32[67, 3], x1: float32[8, 4, 3]) -> (y0: float32[64, 8]) {
      for p < 64, o < 8 {
        var s0: float32 = 0
        reduce c < 3, k < 4 {
          s0 += x0[p + k, c] * x1[o, k, c]
        }
        y0[p, o] = s0
      }
    }
end
)");
}

// The sum is one of whole numbers, and what it is multiplied with goes behind it; padding is the
// zero point. What made floats of the bytes has no readers any more.
TEST(IntegerProducts, AConvolutionOfWhatIsQuantized) {
  expect_after(
      [](Program program) {
        return integer_products(std::move(program), [](ValueId value) { return value < 3; });
      },
      R"(function "f" {inputs=[0, 1, 2, 3], results=[7]}
  %0: int8[8, 8, 3] = weight "w" {}
  %1: float32[8] = weight "scales" {}
  %2: float32[8] = weight "b" {}
  %3: float32[8, 24] = argument "x" {}
  %4: int8[8, 24] = temporary "q" {}
  %5: float32[8, 24] = temporary "x_of_q" {}
  %6: float32[8, 8, 3] = temporary "w_of_q" {}
  %7: float32[8, 24] = result "y" {}
  nest %3 to %4 {operation="quantize"}
    loops(x0: float32[8, 24]) -> (y0: int8[8, 24]) {
      for c < 8, i < 24 {
        y0[c, i] = max(min(round(x0[c, i] * 100) + 5, 127), -128)
      }
    }
  nest %4 to %5 {operation="dequantize"}
    loops(x0: int8[8, 24]) -> (y0: float32[8, 24]) {
      for c < 8, i < 24 {
        y0[c, i] = (float32(x0[c, i]) - 5) * 0.01
      }
    }
  nest %0 %1 to %6 {operation="dequantize"}
    loops(x0: int8[8, 8, 3], x1: float32[8]) -> (y0: float32[8, 8, 3]) {
      for o < 8, c < 8, k < 3 {
        y0[o, c, k] = float32(x0[o, c, k]) * x1[o]
      }
    }
  nest %5 %6 %2 to %7 {operation="aten::convolution"}
    loops(x0: float32[8, 24], x1: float32[8, 8, 3], x2: float32[8]) -> (y0: float32[8, 24]) {
      for o < 8, i < 24 {
        var s0: float32 = 0
        reduce c < 8, k < 3 {
          where i + k - 1 >= 0 && i + k - 1 < 24
          s0 += x0[c, i + k - 1] * x1[o, c, k]
        }
        y0[o, i] = s0 + x2[o]
      }
    }
end
)",
      R"(function "f" {inputs=[0, 1, 2, 3], results=[7]}
  %0: int8[8, 8, 3] = weight "w" {}
  %1: float32[8] = weight "scales" {}
  %2: float32[8] = weight "b" {}
  %3: float32[8, 24] = argument "x" {}
  %4: int8[8, 24] = temporary "q" {}
  %5: float32[8, 24] = temporary "x_of_q" {}
  %6: float32[8, 8, 3] = temporary "w_of_q" {}
  %7: float32[8, 24] = result "y" {}
  %8: uint8[8, 24] = temporary "q" {}
  nest %3 to %4 {operation="quantize"}
    loops(x0: float32[8, 24]) -> (y0: int8[8, 24]) {
      for c < 8, i < 24 {
        y0[c, i] = max(min(round(x0[c, i] * 100) + 5, 127), -128)
      }
    }
  nest %4 to %8 {operation="quantize"}
    loops(x0: int8[8, 24]) -> (y0: uint8[8, 24]) {
      for i0 < 8, i1 < 24 {
        y0[i0, i1] = uint8(x0[i0, i1]) ^ 128
      }
    }
  nest %8 %0 %1 %2 to %7 {operation="aten::convolution"}
    loops(x0: uint8[8, 24], x1: int8[8, 8, 3], x2: float32[8], x3: float32[8]) -> (y0: float32[8, 24]) {
      for o < 8, i < 24 {
        var s0: int32 = 0
        reduce c < 8, k < 3 {
          let t0 = i + k - 1
          where t0 >= 0 && t0 < 24
          s0 += (int32(x0[c, t0]) - 133) * int32(x1[o, c, k])
        }
        y0[o, i] = float32(s0) * (0.01 * x2[o]) + x3[o]
      }
    }
end
)");
}

// The value that one convolution hands to another.
TEST(Tilize, TermsLieInnermostAndPaddingIsMemory) {
  expect_after([](Program program) { return tilize(std::move(program), kNothing).program; },
               R"(function "f" {inputs=[0, 1, 2], results=[4]}
  %0: float32[32, 66] = argument "x" {}
  %1: float32[32, 32, 3] = weight "v" {}
  %2: float32[32, 32, 3] = weight "w" {}
  %3: float32[32, 64] = temporary "conv" {}
  %4: float32[32, 64] = result "y" {}
  nest %0 %1 to %3 {operation="aten::convolution"}
    loops(x0: float32[32, 66], x1: float32[32, 32, 3]) -> (y0: float32[32, 64]) {
      for o < 32, i < 64 {
        var s0: float32 = 0
        reduce c < 32, k < 3 {
          s0 += x0[c, i + k] * x1[o, c, k]
        }
        y0[o, i] = s0
      }
    }
  nest %3 %2 to %4 {operation="aten::convolution"}
    loops(x0: float32[32, 64], x1: float32[32, 32, 3]) -> (y0: float32[32, 64]) {
      for o < 32, i < 64 {
        var s0: float32 = 0
        reduce c < 32, k < 3 {
          where i + k - 1 >= 0 && i + k - 1 < 64
          s0 += x0[c, i + k - 1] * x1[o, c, k]
        }
        y0[o, i] = s0
      }
    }
end
)",
               R"(function "f" {inputs=[0, 1, 2], results=[4]}
  %0: float32[32, 66] = argument "x" {}
  %1: float32[32, 32, 3] = weight "v" {}
  %2: float32[32, 32, 3] = weight "w" {}
  %3: float32[66, 32] = temporary "conv" {}
  %4: float32[32, 64] = result "y" {}
  nest %0 %1 to %3 {operation="aten::convolution"}
    loops(x0: float32[32, 66], x1: float32[32, 32, 3]) -> (y0: float32[66, 32]) {
      for o < 32, i < 64 {
        var s0: float32 = 0
        reduce c < 32, k < 3 {
          s0 += x0[c, i + k] * x1[o, c, k]
        }
        y0[i + 1, o] = s0
      }
    }
  nest %3 %2 to %4 {operation="aten::convolution"}
    loops(x0: float32[66, 32], x1: float32[32, 32, 3]) -> (y0: float32[32, 64]) {
      for o < 32, i < 64 {
        var s0: float32 = 0
        reduce c < 32, k < 3 {
          s0 += x0[i + k, c] * x1[o, c, k]
        }
        y0[o, i] = s0
      }
    }
end
)");
}

TEST(SplitReductions, RowsAreSummedFirst) {
  expect_after([](Program program) { return split_reductions(std::move(program)); },
               R"(function "f" {inputs=[0], results=[1]}
  %0: float32[2, 64, 4, 16] = argument "x" {}
  %1: float32[2, 4] = result "sum" {}
  nest %0 to %1 {operation="aten::sum"}
    loops(x0: float32[2, 64, 4, 16]) -> (y0: float32[2, 4]) {
      for n < 2, g < 4 {
        var s0: float32 = 0
        reduce p < 64, c < 16 {
          s0 += x0[n, p, g, c]
        }
        y0[n, g] = s0
      }
    }
end
)",
               R"(function "f" {inputs=[0], results=[1]}
  %0: float32[2, 64, 4, 16] = argument "x" {}
  %1: float32[2, 4] = result "sum" {}
  %2: float32[2, 4, 16] = temporary "row_sums" {}
  kept %2 "are sums of rows, in the order of memory, that are summed up behind it"
  nest %0 to %2 {operation="aten::sum"}
    loops(x0: float32[2, 64, 4, 16]) -> (y0: float32[2, 4, 16]) {
      for n < 2, g < 4, c < 16 {
        var s0: float32 = 0
        reduce p < 64 {
          s0 += x0[n, p, g, c]
        }
        y0[n, g, c] = s0
      }
    }
  nest %2 to %1 {operation="aten::sum"}
    loops(x0: float32[2, 4, 16]) -> (y0: float32[2, 4]) {
      for n < 2, g < 4 {
        var s0: float32 = 0
        reduce c < 16 {
          s0 += x0[n, g, c]
        }
        y0[n, g] = s0
      }
    }
end
)");
}

}  // namespace
}  // namespace flashlight::mosaic
