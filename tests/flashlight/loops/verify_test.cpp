// Every rule of programs, broken once.
#include "flashlight/loops/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "composit/ir/error.h"
#include "flashlight/loops/contraction.h"
#include "flashlight/loops/program_text.h"

namespace flashlight::loops {
namespace {

using ::testing::HasSubstr;

// Before the first program is checked: release builds check on demand.
const bool kVerifies = setenv("FLASHLIGHT_VERIFY", "on", /*overwrite=*/0) == 0;

constexpr const char* kSound = R"(function "body" {inputs=[0], results=[1]}
  %0: float32[3] = argument "x" {}
  %1: float32[3] = result "y" {}
  nest %0 to %1 {}
    loops(x0: float32[3]) -> (y0: float32[3]) {
      for i < 3 {
        y0[i] = -x0[i]
      }
    }
end
function "program" {inputs=[0, 1], results=[3]}
  %0: float32[3] = argument "x" {}
  %1: float32[3] = weight "w" {}
  %2: float32[3] = temporary "t" {}
  %3: float32[3] = result "y" {}
  %4: float32[2] = constant "half" {constant=array(float32[2], [0.5, 1.5])}
  overwrites %3 %0
  call 0 %0 to %2 {operation="aten::neg"}
  control "map" {functions=[0], sequences=[2], length=3, results=[3], operation="composit::map"}
end
)";

// The fault of the program with `old` replaced.
std::string fault(std::string_view old, std::string_view text) {
  std::string program = kSound;
  const size_t at = program.rfind(old);
  EXPECT_NE(at, std::string::npos) << old;
  program.replace(at, old.size(), text);
  return fault_of(parse_program(program)).value_or("none");
}

TEST(Verify, ASoundProgramHasNoFault) {
  EXPECT_EQ(fault_of(parse_program(kSound)), std::nullopt);
  EXPECT_EQ(print(checked("lower", parse_program(kSound))), kSound);
}

TEST(Verify, NumbersExist) {
  EXPECT_EQ(fault("results=[3]}", "results=[9]}"),
            "function 'program': there is no value %9, there are 5");
  EXPECT_THAT(fault("call 0 %0 to %2", "call 0 %7 to %2"), HasSubstr("there is no value %7"));
  EXPECT_THAT(fault("sequences=[2]", "sequences=[8]"), HasSubstr("there is no value %8"));
  EXPECT_THAT(fault("overwrites %3", "overwrites %6"), HasSubstr("there is no value %6"));
}

TEST(Verify, WhatWasRecognisedIsOfTheStatement) {
  Program program = parse_program(kSound);
  program.functions.pop_back();
  program = with_products(std::move(program),
                          [](const Statement&) { return std::optional<Contraction>(); });
  EXPECT_EQ(fault_of(program), std::nullopt);
  auto& nest = std::get<Nest>(program.functions.back().steps[StepId()]);
  EXPECT_TRUE(is_recognised(nest));
  nest.statement.stores[0].value = -nest.statement.stores[0].value;
  EXPECT_THAT(fault_of(program).value_or("none"),
              HasSubstr("it keeps what was recognised of another statement"));
}

// Only statements that changed are looked at again.
TEST(Recognised, OncePerStatement) {
  static int looks = 0;
  const auto look = [](const Statement&) {
    ++looks;
    return std::optional<Contraction>();
  };
  Program program = parse_program(kSound);
  program.functions.pop_back();
  program = with_products(with_products(std::move(program), look), look);
  EXPECT_EQ(looks, 1);
  std::get<Nest>(program.functions.back().steps[StepId()]).statement.axes[0].extent = 2;
  program = with_products(std::move(program), look);
  EXPECT_EQ(looks, 2);
}

TEST(Verify, CalleesStandBeforeTheirCallers) {
  EXPECT_EQ(fault("call 0 %0", "call 1 %0"),
            "function 'program': step 0 (aten::neg): it calls function 1, which does not stand "
            "before its caller");
  EXPECT_THAT(fault("functions=[0]", "functions=[5]"), HasSubstr("it calls function 5"));
}

TEST(Verify, InputsAndResults) {
  EXPECT_THAT(fault("inputs=[0, 1]", "inputs=[0, 2]"),
              HasSubstr("input %2 \"t\" is neither an argument nor a weight"));
  EXPECT_THAT(fault("inputs=[0, 1]", "inputs=[0, 0]"), HasSubstr("stands there twice"));
  EXPECT_THAT(fault("results=[3]}", "results=[3, 3]}"), HasSubstr("stands there twice"));
  EXPECT_THAT(fault("results=[3]}", "results=[0]}"), HasSubstr("is an input"));
}

TEST(Verify, ConstantsHaveAConstant) {
  EXPECT_THAT(fault(R"({constant=array(float32[2], [0.5, 1.5])})", "{}"),
              HasSubstr("constant %4 \"half\" has no constant of its type"));
  EXPECT_THAT(fault("%4: float32[2]", "%4: float64[2]"), HasSubstr("has no constant of its type"));
}

TEST(Verify, ValuesAreWrittenBeforeTheyAreRead) {
  EXPECT_THAT(fault("call 0 %0 to %2", "call 0 %3 to %2"),
              HasSubstr("step 0 (aten::neg): %3 \"y\" is read before it is written"));
  EXPECT_THAT(fault("length=3, results=[3]", "length=3, results=[2]"),
              HasSubstr("result %3 \"y\" is never written"));
}

TEST(Verify, NobodyWritesWhatIsGiven) {
  EXPECT_THAT(fault("call 0 %0 to %2", "call 0 %0 to %1"),
              HasSubstr("%1 \"w\" is written, and is no result or temporary"));
}

TEST(Verify, NestsAreSound) {
  std::string program = kSound;
  const std::string type = "%0: float32[3] = argument \"x\" {}\n  %1: float32[3] = result";
  program.replace(program.find(type), type.size(),
                  "%0: float64[3] = argument \"x\" {}\n  %1: float32[3] = result");
  EXPECT_THAT(fault_of(parse_program(program)).value_or("none"),
              HasSubstr("function 'body': step 0"));
}

TEST(Verify, CallsFitTheirCallees) {
  EXPECT_THAT(fault("call 0 %0 to %2", "call 0 %0 %1 to %2"),
              HasSubstr("it has 2 arguments, and 'body' 1"));
  EXPECT_THAT(fault("%2: float32[3]", "%2: float32[4]"),
              HasSubstr("of its results %2 \"t\" is float32[4], and 'body' expects float32[3]"));
}

TEST(Verify, ControlHasItsFunctions) {
  EXPECT_THAT(fault("\"map\" {functions=[0]", "\"map\" {functions=[0, 0]"),
              HasSubstr("it has 2 functions"));
  EXPECT_THAT(fault("\"map\" {functions=[0]", "\"branch\" {functions=[0, 0]"),
              HasSubstr("a branch without a predicate"));
  EXPECT_THAT(fault("\"map\" {functions=[0]", "\"blocks\" {functions=[0]"),
              HasSubstr("its blocks have no size"));
}

TEST(Verify, WhatIsOverwrittenHasTheType) {
  EXPECT_THAT(fault("overwrites %3 %0", "overwrites %3 %4"),
              HasSubstr("result %3 \"y\" overwrites %4 \"half\" of another type"));
}

constexpr const char* kOpen = R"(size rows = 3 {least=2, most=5}
size half = 6 {of=[0], factor=4, divisor=2}
function "open" {inputs=[0], results=[1]}
  %0: float32[rows, 2] = argument "x" {}
  %1: float32[half] = result "y" {}
  %2: float32[3] = constant "c" {constant=array(float32[3], [0.5, 1.5, 2.5])}
  nest %0 to %1 {}
    loops(x0: float32[rows, 2]) -> (y0: float32[half]) {
      for i < rows, j < 2 {
        y0[i * 2 + j] = x0[i, j] + x0[rows - 1 - i, j]
      }
    }
end
)";

// The fault of the open program after `change`.
template <class Change>
std::string open_fault(Change change) {
  Program program = parse_program(kOpen);
  change(program);
  return fault_of(program).value_or("none");
}
std::string open_fault_of_text(std::string_view old, std::string_view text) {
  std::string program = kOpen;
  const size_t at = program.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  program.replace(at, old.size(), text);
  return fault_of(parse_program(program)).value_or("none");
}

TEST(Verify, ASoundProgramWithNamedSizesHasNoFault) {
  EXPECT_EQ(fault_of(parse_program(kOpen)), std::nullopt);
  EXPECT_EQ(print(parse_program(kOpen)), kOpen);
}

TEST(Verify, NamedSizesAreSound) {
  EXPECT_EQ(open_fault([](Program& one) { one.sizes[SizeId(1)].name = "rows"; }),
            "two sizes are called rows");
  EXPECT_EQ(open_fault([](Program& one) { one.sizes[SizeId(1)].name = "for"; }),
            "'for' is no name of a size");
  EXPECT_EQ(open_fault_of_text("of=[0]", "of=[1]"),
            "size half follows from one that stands behind it");
  EXPECT_EQ(open_fault_of_text("divisor=2", "divisor=0"), "size half is divided by 0");
  EXPECT_EQ(open_fault_of_text("size half = 6", "size half = 7"),
            "size half is 7, and follows as 6");
  EXPECT_THAT(open_fault_of_text("least=2, most=5", "least=4, most=5"),
              HasSubstr("expected 'rows' from 4 to 5, as was shown, received 3"));
}

TEST(Verify, TheCallGivesNamedSizes) {
  EXPECT_EQ(open_fault_of_text("%0: float32[rows, 2]", "%0: float32[3, 2]"),
            "size rows is none of an argument");
}

TEST(Verify, NamesStandForTheirExamples) {
  const auto value = [](Program& one, size_t i) -> Value& {
    return one.functions.back().values[ValueId(i)];
  };
  const auto nest = [](Program& one) -> Nest& {
    return std::get<Nest>(one.functions.back().steps[StepId(0)]);
  };
  EXPECT_EQ(open_fault([&](Program& one) { value(one, 1).named = {SizeId(0)}; }),
            "function 'open': value %1 \"y\": 6 is called rows, which is 3");
  EXPECT_EQ(open_fault([&](Program& one) { value(one, 1).named = {SizeId(7)}; }),
            "function 'open': value %1 \"y\": there is no size 7");
  EXPECT_EQ(open_fault([&](Program& one) { value(one, 2).named = {SizeId(0)}; }),
            "function 'open': constant %2 \"c\" has named sizes");
  EXPECT_THAT(open_fault([&](Program& one) { nest(one).named = {SizeId(0)}; }),
              HasSubstr("1 names for 2 numbers"));
  EXPECT_THAT(open_fault([&](Program& one) { nest(one).named[0] = SizeId(1); }),
              HasSubstr("3 is called half, which is 6"));
}

TEST(Verify, ParametersAreNamedSizes) {
  const auto with = [](const Expr& parameter) {
    return open_fault([&](Program& one) {
      std::get<Nest>(one.functions.back().steps[StepId(0)]).statement.stores[0].at[0] = parameter;
    });
  };
  EXPECT_THAT(with(Expr::parameter(9, composit::DType::int64)), HasSubstr("has a parameter"));
  EXPECT_THAT(with(Expr::parameter(0, composit::DType::int32)),
              HasSubstr("size rows is not read as int64"));
}

// A number that holds for the example's sizes alone is a fault, too: 6 here.
TEST(Verify, HoldsForAllSizesThatWereShown) {
  EXPECT_THAT(open_fault([](Program& one) {
                Routine caller = one.functions.back();
                caller.values[ValueId(1)].named = {};
                caller.steps = {Invocation{FunctionId(0), {ValueId(0)}, {ValueId(1)}, {}}};
                one.functions.push_back(caller);
              }),
              HasSubstr("and 'open' expects float32[4], at the least sizes"));
  EXPECT_THAT(open_fault([](Program& one) {
                NamedSize& half = one.sizes[SizeId(1)];
                half.factor = 1;
                half.divisor = 3;
                half.added = 5;
              }),
              HasSubstr("expected an integer for 'half'"));
}

TEST(Verify, SaysAfterWhichStage) {
  ASSERT_TRUE(kVerifies);
  std::string program = kSound;
  program.replace(program.rfind("results=[3]}"), 12, "results=[9]}");
  try {
    checked("fuse", parse_program(program));
    ADD_FAILURE() << "it was accepted";
  } catch (const composit::InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("after fuse, function 'program': there is no value %9"));
    EXPECT_THAT(error.what(), HasSubstr("function \"body\" {"));
  }
}

}  // namespace
}  // namespace flashlight::loops
