// Programs as text: what is printed reads back as it was, and what is no program is refused with
// its place.
#include "flashlight/loops/program_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/ir/error.h"
#include "flashlight/loops/fuse.h"
#include "flashlight/loops/lower.h"
#include "flashlight/loops/verify.h"
#include "tests/passes/computable_graph.h"

namespace flashlight::loops {
namespace {

using composit::UserError;
using ::testing::HasSubstr;

// Every kind of line, and every field.
constexpr const char* kEverything =
    R"(function "body" {inputs=[0], results=[1], is_part=true, is_loop_body=true, most_steps_in_loop=7}
  %0: float32[3] = argument "x" {}
  %1: float32[3] = result "y" {}
  nest %0 to %1 {}
    loops(x0: float32[3]) -> (y0: float32[3]) {
      for i < 3 {
        y0[i] = -x0[i]
      }
    }
end
function "program" {inputs=[0, 1], results=[3, 4], in_parts=true}
  %0: float32[2, 3] = argument "x" {model_sizes=[2, 1, 3]}
  %1: float32[3] = weight "fc.\"w\"" {}
  %2: float32[2, 3] = temporary "mul" {}
  %3: float32[2, 3] = result "sorted" {}
  %4: int64[2, 3] = result "indices" {}
  %5: float32[2] = constant "half" {constant=array(float32[2], [0.5, nan])}
  %6: int64[2, 3] = temporary "counts" {}
  %7: float32[2, 3] = temporary "scanned" {}
  %8: float32[3] = temporary "carried" {}
  kept %2 "is read by 2: mean, sub"
  overwrites %3 %0
  nest %0 %1 %5 to %2 {operation="aten::mul.Tensor", module="encoder.0", source="model.cpp:12", fused=["aten::add", "", "model.cpp:11"]}
    loops(x0: float32[2, 3], x1: float32[3], x2: float32[2]) -> (y0: float32[2, 3]) {
      for i < 2, j < 3 {
        y0[i, j] = x0[i, j] * x1[j] + x2[i]
      }
    }
  call 0 %1 to %8 {operation="aten::neg"}
  control "scan" {functions=[0], carried=[8], sequences=[2], outside=[1], trips=4, length=2, limit=9, reverse=true, results=[7], next=[8], block=5, along=[0, -1], operation="composit::scan"}
  runtime "order::sort" %7 to %3 %6 (lines=[2, 3, 1], descending=false) {operation="aten::sort"}
  runtime "random::draw_uniform" to %2 (low=0.0, high=1.0) {draws=true, effect=true}
  runtime "guards::expect" %5 to (expected=scalar(0.5), place="aten::item") {effect=true, on_numbers=true}
  runtime "aten::bincount" %6 to %4 (self=[0, 6], weights=none, minlength=0) {schema="aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor"}
end
)";

TEST(ProgramText, ReadsBackWhatItPrints) {
  EXPECT_EQ(print(parse_program(kEverything)), kEverything);
}

TEST(ProgramText, HasEveryField) {
  const Program program = parse_program(kEverything);
  ASSERT_EQ(program.functions.size(), 2u);
  const Routine& function = program.functions[FunctionId(1)];
  EXPECT_TRUE(function.in_parts);
  EXPECT_EQ(function.values[ValueId(1)].name, "fc.\"w\"");
  EXPECT_EQ(function.values[ValueId(0)].model_sizes.size(), 3u);
  EXPECT_EQ(function.overwrites.at(ValueId(3)), ValueId(0));
  const auto& nest = std::get<Nest>(function.steps[StepId(0)]);
  EXPECT_EQ(nest.fused.at(0).source, "model.cpp:11");
  EXPECT_EQ(reads(nest), (ValueIds{ValueId(0), ValueId(1), ValueId(5)}));
  const auto& scan = std::get<Control>(function.steps[StepId(2)]);
  EXPECT_EQ(scan.along, (std::vector<std::optional<size_t>>{0, std::nullopt}));
  EXPECT_EQ(scan.limit, 9);
  const auto& draw = std::get<RuntimeCall>(function.steps[StepId(4)]);
  EXPECT_TRUE(draw.draws && draw.effect && !draw.on_numbers);
  EXPECT_EQ(std::get<RuntimeCall>(function.steps[StepId(6)]).schema->arguments.size(), 3u);
}

TEST(ProgramText, OfRandomGraphs) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = fuse(lower(composit::test::ComputableGraph(seed).make()));
    const std::string text = print(program);
    EXPECT_EQ(print(parse_program(text)), text);
    EXPECT_EQ(fault_of(parse_program(text)), std::nullopt);
  }
}

TEST(ProgramText, SaysWhatItExpected) {
  const auto error = [](const std::string& text) -> std::string {
    try {
      parse_program(text);
      return "no error";
    } catch (const UserError& caught) {
      return caught.what();
    }
  };
  EXPECT_THAT(error("functoin \"f\" {}\nend\n"), HasSubstr("1:1: expected 'function'"));
  EXPECT_THAT(error("function \"f\" {}\n"), HasSubstr("expected 'end'"));
  EXPECT_THAT(error("function \"f\" {}\n  %1: float32[] = argument \"x\" {}\nend\n"),
              HasSubstr("2:3: expected value %0"));
  EXPECT_THAT(error("function \"f\" {}\n  %0: float32[] = argumnet \"x\" {}\nend\n"),
              HasSubstr("expected one of argument, constant, result, temporary, weight"));
  EXPECT_THAT(error("function \"f\" {}\n  control \"while\" {}\nend\n"),
              HasSubstr("expected one of blocks, branch, map, repeat, scan"));
  EXPECT_THAT(error("function \"f\" {}\n  nest to {}\n    loops() -> () {\n    }\nend\n"),
              HasSubstr("expected loops of one statement"));
  EXPECT_THAT(error("function \"f\" {}\n  nest to {}\n    loops(y) {\n    }\nend\n"),
              HasSubstr("in the loops from line 3 on"));
  EXPECT_THAT(error("function \"f\" {}\n  call 0 to {} more\nend\n"),
              HasSubstr("expected the end of the line"));
}

}  // namespace
}  // namespace flashlight::loops
