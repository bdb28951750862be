// Families of programs whose integers follow from sizes in all the ways that may mislead.
#include "composit/family/unify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/family/bind.h"
#include "composit/ir/compare.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/ops/functions.h"
#include "tests/family/programs.h"
#include "tests/user_error.h"

namespace composit {
namespace {

using test::call;
using test::captured;
using test::ints;
using test::kExamples;
using test::Program;
using test::Sizes;
using testing::HasSubstr;
using testing::StartsWith;

Family family_of(const Program& program, const std::vector<Sizes>& examples) {
  std::vector<Graph> graphs;
  for (const Sizes& sizes : examples) graphs.push_back(captured(program, sizes));
  return unify(graphs, {.names = {"batch", "tokens"}});
}
std::string error_of(const Program& program, const std::vector<Sizes>& examples) {
  return user_error([&] { family_of(program, examples); }).value_or("");
}

// Binds to sizes that no example has, and compares with the program there.
void expect_right(const Program& program, const std::vector<Sizes>& examples,
                  const std::vector<Sizes>& elsewhere) {
  const Family family = family_of(program, examples);
  for (const Sizes& sizes : elsewhere) {
    const Graph bound = bind(family, {{"batch", sizes.batch}, {"tokens", sizes.tokens}});
    verify(bound);
    EXPECT_EQ(print(bound), print(captured(program, sizes)));
  }
}

const std::vector<Sizes> kElsewhere = {{4, 21}, {2, 13}, {5, 23}};

LazyTensor attention(const LazyTensor& x, int64_t batch, int64_t tokens) {
  const LazyTensor heads =
      call("aten::transpose.int", {call("aten::view", {x, ints({batch, tokens, 2, 4})}), 1, 2});
  const LazyTensor scores =
      call("aten::matmul", {heads, call("aten::transpose.int", {heads, 2, 3})});
  const LazyTensor mixed = call("aten::matmul", {call("aten::softmax.int", {scores, -1}), heads});
  return call("aten::reshape",
              {call("aten::transpose.int", {mixed, 1, 2}), ints({batch, tokens, 8})});
}

TEST(Unify, AttentionIsRightAtSizesNobodyShowed) {
  expect_right(attention, kExamples, kElsewhere);
  const std::string text = print(family_of(attention, kExamples));
  EXPECT_THAT(text, HasSubstr("%view: float32[2, 16, 2, 4] = aten::view(%x, size=[size(%x, 0), "
                              "size(%x, 1), 2, 4])"));
  EXPECT_THAT(text, HasSubstr("sizes(\n  batch = size(%x, 0) shown [2, 3, 5],\n"
                              "  tokens = size(%x, 1) shown [16, 23, 12]\n)\n"));
  EXPECT_EQ(print(parse_family(text)), text);
}

TEST(Unify, FormsOfFormulas) {
  const auto expect_formula = [](const Program& program, const std::string& formula) {
    expect_right(program, kExamples, kElsewhere);
    EXPECT_THAT(print(family_of(program, kExamples)), HasSubstr(formula));
  };
  const auto filled = [](std::function<Ints(int64_t, int64_t)> sizes) {
    return [sizes](const LazyTensor& x, int64_t batch, int64_t tokens) {
      return call("aten::new_full", {x, sizes(batch, tokens), Scalar(1.0)});
    };
  };
  expect_formula(filled([](int64_t, int64_t t) { return ints({t + 1}); }), "size(%x, 1) + 1");
  expect_formula(filled([](int64_t b, int64_t) { return ints({4 * b}); }), "4 * size(%x, 0)");
  expect_formula(filled([](int64_t b, int64_t t) { return ints({b * t}); }),
                 "size(%x, 0) * size(%x, 1)");
  expect_formula(filled([](int64_t b, int64_t t) { return ints({b + t}); }),
                 "size(%x, 0) + size(%x, 1)");
  expect_formula(filled([](int64_t, int64_t t) { return ints({2 * t + 1}); }),
                 "2 * size(%x, 1) + 1");
  expect_formula(filled([](int64_t, int64_t t) { return ints({t / 3}); }), "div(size(%x, 1), 3)");
  expect_formula(filled([](int64_t, int64_t t) {
                   return ints({t, (8 - t % 8) % 8});
                 }),
                 "mod(0 - size(%x, 1), 8)");
}

// ---- where guessing is wrong --------------------------------------------------------------------

LazyTensor filled(const LazyTensor& x, int64_t size) {
  return call("aten::new_full", {x, ints({size}), Scalar(1.0)});
}

TEST(Unify, ALiteralThatIsASizeInEveryExampleButOne) {
  const Program program = [](const LazyTensor& x, int64_t, int64_t) { return filled(x, 16); };
  expect_right(program, {{2, 16}, {3, 16}, {5, 12}, {7, 19}}, {{4, 17}, {2, 13}});
  EXPECT_EQ(family_of(program, {{2, 16}, {3, 16}, {5, 12}, {7, 19}}).formula_count(), 0U);
}

TEST(Unify, TwoSizesThatAreEqualInOneExample) {
  expect_right(attention, {{12, 12}, {3, 23}, {5, 14}}, {{4, 21}, {7, 13}});
}

TEST(Unify, APieceThatAnExampleShowsIsRefused) {
  const Program program = [](const LazyTensor& x, int64_t batch, int64_t) {
    return filled(x, std::max<int64_t>(batch, 3));
  };
  EXPECT_EQ(error_of(program, {{2, 16}, {4, 23}, {5, 12}}),
            "[unify] %new_full = aten::new_full: expected an expression of sizes for 'size', "
            "received 3, 4, 5 for batch 2, 4, 5; tokens 16, 23, 12");
  // Nobody showed it: within what was shown the family is right, and outside it is refused.
  const Family family = family_of(program, {{4, 16}, {6, 23}, {7, 12}});
  EXPECT_EQ(user_error([&] {
              bind(family, {{"batch", 2}, {"tokens", 16}});
            }).value_or(""),
            "[bind] batch = 2: shown from 4 to 7; add an example there");
}

TEST(Unify, AFormulaThatCouldBeAnotherAsksForAnExample) {
  // Of the batches 2, 3, 5 the program takes size / 2 of 8, 10, 14, which is batch + 2 as well.
  const Program program = [](const LazyTensor& x, int64_t, int64_t tokens) {
    return filled(x, tokens / 2);
  };
  EXPECT_THAT(error_of(program, {{2, 8}, {3, 10}, {5, 14}}),
              StartsWith("[unify] %new_full = aten::new_full: 'size' may be size(%x, 0) + 2 or "
                         "exact_div(size(%x, 1), 2), which differ at batch = "));
  expect_right(program, {{2, 8}, {3, 10}, {5, 14}, {4, 11}}, {{2, 11}, {5, 9}});
}

TEST(Unify, FormulasThatDifferAtOneSizeAskForIt) {
  // Of 12, 16 and 23 the quotients by 4, and by 5 rounded up, are equal; of 20 they are not.
  const Program program = [](const LazyTensor& x, int64_t, int64_t tokens) {
    return filled(x, (tokens + 4) / 5);
  };
  EXPECT_EQ(error_of(program, kExamples),
            "[unify] %new_full = aten::new_full: 'size' may be div(size(%x, 1), 4) or "
            "ceil_div(size(%x, 1), 5), which differ where size(%x, 1) is 20: add an example there");
  expect_right(program, {{2, 16}, {3, 23}, {5, 12}, {4, 20}}, kElsewhere);
}

TEST(Unify, ARemainderMayLookLikeAQuotient) {
  const Program program = [](const LazyTensor& x, int64_t, int64_t tokens) {
    return filled(x, tokens % 2);
  };
  EXPECT_EQ(error_of(program, {{2, 8}, {5, 10}, {3, 11}}),
            "[unify] %new_full = aten::new_full: 'size' may be div(size(%x, 1), 11) or "
            "mod(size(%x, 1), 2), which differ where size(%x, 1) is 9: add an example there");
  expect_right(program, {{2, 8}, {5, 10}, {3, 11}, {4, 9}}, {{2, 9}, {4, 10}, {3, 8}});
}

TEST(Unify, NobodyKnowsHowEvenExamplesRound) {
  const Program program = [](const LazyTensor& x, int64_t, int64_t tokens) {
    return filled(x, (tokens + 1) / 2);
  };
  // In steps of 2 the quotient is exact, and other sizes are refused.
  const std::vector<Sizes> even = {{2, 16}, {3, 24}, {7, 10}};
  expect_right(program, even, {{4, 20}, {6, 12}});
  const Family family = family_of(program, even);
  EXPECT_EQ(user_error([&] {
              bind(family, {{"batch", 2}, {"tokens", 13}});
            }).value_or(""),
            "[bind] tokens = 13: all examples are 10 and a multiple of 2; add an example between");
}

TEST(Unify, AnotherPathIsAnotherStructure) {
  const Program program = [](const LazyTensor& x, int64_t, int64_t tokens) {
    return tokens % 8 == 0
               ? x
               : call("aten::constant_pad_nd", {x, ints({0, 0, 0, 8 - tokens % 8}), Scalar(0.0)});
  };
  EXPECT_THAT(error_of(program, kExamples),
              HasSubstr("[unify] examples 1 and 2 differ in structure: 1 and 2 nodes"));
}

TEST(Unify, AFloatOfASizeIsRefused) {
  const Program program = [](const LazyTensor& x, int64_t, int64_t tokens) {
    return call("aten::div.Scalar", {x, Scalar(std::sqrt(static_cast<double>(tokens)))});
  };
  EXPECT_THAT(error_of(program, kExamples),
              HasSubstr("expected 'other' to differ in integers only, received scalar(4.0) in "
                        "example 1 and scalar(4.79"));
}

TEST(Unify, MinusOneInAViewStays) {
  const Program program = [](const LazyTensor& x, int64_t batch, int64_t) {
    return call("aten::view", {x, ints({batch, -1})});
  };
  expect_right(program, kExamples, kElsewhere);
}

TEST(Unify, ASizeOfOneIsNoExample) {
  EXPECT_EQ(error_of(attention, {{1, 16}, {3, 23}, {5, 12}}),
            "[unify] batch = 1 in an example: a program may take another path there; show sizes "
            "from 2 on, and check the family at this one");
}

TEST(Unify, ThreeExamplesAreTheLeast) {
  EXPECT_EQ(error_of(attention, {{2, 16}, {3, 23}}),
            "[unify] expected at least 3 examples whose sizes differ, received 2");
  EXPECT_EQ(error_of(attention, {{2, 16}, {3, 23}, {3, 12}}),
            "[unify] expected at least 3 different numbers for batch, received 2, 3, 3: add an "
            "example with another one");
}

TEST(Unify, RowsThatDependOnValuesAreSizesOfTheirOwn) {
  const auto at = [](int64_t batch, int64_t tokens, int64_t rows) {
    const LazyTensor x = input("x", tensor_type(DType::float32, {batch, tokens}));
    const LazyTensor chosen = NodeSpec("aten::nonzero")
                                  .tensor(call("aten::gt.Scalar", {x, Scalar(0.0)}))
                                  .run("effect", 0)
                                  .output(tensor_type(DType::int64, {rows, 2}))
                                  .make();
    const LazyTensor first = call("aten::select.int", {chosen, 1, 0});
    const LazyTensor twice = call("aten::new_full", {x, ints({2 * rows, batch}), Scalar(1.0)});
    return Graph({.inputs = {x}, .outputs = {first, twice}, .effects = {chosen.node}});
  };
  const Family family =
      unify({at(2, 16, 15), at(3, 23, 43), at(5, 12, 32)}, {.names = {"batch", "tokens"}});
  ASSERT_EQ(family.value_sizes.size(), 1U);
  const std::string name = family.value_sizes[0].name;
  EXPECT_EQ(name, "nonzero_0");
  EXPECT_EQ(print(bind(family, {{"batch", 4}, {"tokens", 20}, {name, 37}})),
            print(without_incidentals(at(4, 20, 37))));
  EXPECT_EQ(user_error([&] {
              bind(family, {{"batch", 4}, {"tokens", 20}});
            }).value_or(""),
            "[bind] expected a number for the size 'nonzero_0' of aten::nonzero, which depends on "
            "values");
  EXPECT_EQ(print(parse_family(print(family))), print(family));
}

TEST(Unify, StridesFollowViewsAndTheOrderOfAxes) {
  const Program program = [](const LazyTensor& x, int64_t batch, int64_t tokens) {
    const LazyTensor turned = call("aten::permute", {x, ints({2, 0, 1})});
    Type type = turned.type();
    type.strides = {1, tokens * 8, 8};
    // As LibTorch has it: a permutation shows the same memory, relu keeps the order of axes.
    const LazyTensor view = NodeSpec("aten::permute")
                                .tensor(x)
                                .attribute("dims", int_list({2, 0, 1}))
                                .output(type)
                                .make();
    const LazyTensor relu = NodeSpec("aten::relu").tensor(view).output(type).make();
    Type part = type;
    part.sizes = {8, batch, tokens / 2};
    return NodeSpec("aten::slice.Tensor")
        .tensor(relu)
        .attribute("dim", 2)
        .attribute("start", 0)
        .attribute("end", tokens / 2)
        .attribute("step", 1)
        .output(part)
        .make();
  };
  expect_right(program, kExamples, kElsewhere);
}

// ---- wrong use ----------------------------------------------------------------------------------

// A family of one input with these sizes.
Family read_sizes(const std::string& sizes) {
  const LazyTensor x = input("x", tensor_type(DType::float32, {2, 3}));
  return composit::family_of(Graph({.inputs = {x}, .outputs = {x}}), {}, sizes);
}

TEST(Bind, WindowsThatOverlapHaveTheirStrides) {
  const Program program = [](const LazyTensor& x, int64_t batch, int64_t tokens) {
    const LazyTensor rows = call("aten::contiguous", {x});
    return call("aten::as_strided", {rows, ints({batch, tokens - 1, 2, 8}),
                                     ints({tokens * 8, 8, 8, 1}), ArgumentValue()});
  };
  expect_right(program, kExamples, kElsewhere);
}

TEST(Bind, SizesAreNamed) {
  const Family family = family_of(attention, kExamples);
  const auto error = [&](const SizeValues& sizes) {
    return user_error([&] { bind(family, sizes); }).value_or("");
  };
  EXPECT_EQ(error({{"batch", 2}}), "[bind] expected a number for the size 'tokens'");
  EXPECT_EQ(error({{"batch", 2}, {"token", 16}}),
            "[bind] expected one of the sizes batch, tokens, received 'token'");
  EXPECT_EQ(error({{"batch", 2}, {"tokens", 600}}),
            "[bind] tokens = 600: shown from 12 to 23; add an example there");
}

TEST(Bind, SizesOfInputsHaveToAgree) {
  const auto program = [](int64_t batch, int64_t tokens) {
    const LazyTensor x = input("x", tensor_type(DType::float32, {batch, tokens}));
    const LazyTensor y = input("y", tensor_type(DType::float32, {tokens, 3}));
    return Graph({.inputs = {x, y}, .outputs = {call("aten::mm", {x, y})}});
  };
  const Family family =
      unify({program(2, 16), program(3, 23), program(5, 12)}, {.names = {"batch", "tokens"}});
  const auto types = [](Dims x, Dims y) {
    return std::vector<Type>{tensor_type(DType::float32, x), tensor_type(DType::float32, y)};
  };
  EXPECT_EQ(sizes_of_inputs(family, types({4, 20}, {20, 3})),
            (SizeValues{{"batch", 4}, {"tokens", 20}}));
  EXPECT_EQ(user_error([&] {
              sizes_of_inputs(family, types({4, 20}, {21, 3}));
            }).value_or(""),
            "[bind] input 'y', axis 0: expected tokens = 20 as elsewhere, received 21");
  EXPECT_EQ(user_error([&] {
              expect_inputs(family, {{"batch", 4}, {"tokens", 20}}, types({4, 20}, {20, 4}));
            }).value_or(""),
            "[bind] input 'y': expected float32[20, 3], received float32[20, 4]");
}

TEST(Bind, AWiderRangeIsText) {
  Family family = family_of(attention, kExamples);
  widen(family, {{"batch", 1}, {"tokens", 40}});
  const std::string text = print(family);
  EXPECT_THAT(text, HasSubstr("batch = size(%x, 0) shown [2, 3, 5] within [1, 5, 1]"));
  const Family again = parse_family(text);
  EXPECT_EQ(print(again), text);
  EXPECT_EQ(print(bind(again, {{"batch", 1}, {"tokens", 39}})),
            print(bind(family, {{"batch", 1}, {"tokens", 39}})));
  EXPECT_THAT(user_error([] {
                read_sizes("sizes(n = size(%x, 0) shown [2] within [3, 2, 1])");
              }).value_or(""),
              HasSubstr("expected the least number, the greatest, and the step between"));
}

TEST(Unify, NamesAreAsManyAsSizes) {
  EXPECT_EQ(user_error([&] {
              unify({captured(attention, {2, 16}), captured(attention, {3, 23}),
                     captured(attention, {5, 12})},
                    {.names = {"tokens"}});
            }).value_or(""),
            "[unify] expected a name for each of the 2 sizes that differ (x_0, x_1), received 1");
}

}  // namespace
}  // namespace composit
