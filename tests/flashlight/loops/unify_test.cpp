// Programs with named sizes: made of two programs of numbers, bound again, run as they are, and
// refused where they might be wrong.
#include "flashlight/loops/unify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "composit/eval/evaluate.h"
#include "composit/ir/parse.h"
#include "composit/ops/functions.h"
#include "flashlight/loops/arena.h"
#include "flashlight/loops/fuse.h"
#include "flashlight/loops/interpret.h"
#include "flashlight/loops/lower.h"
#include "flashlight/loops/program_text.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/loops/statement.h"
#include "flashlight/loops/verify.h"
#include "tests/agreement.h"
#include "tests/passes/computable_graph.h"
#include "tests/user_error.h"

namespace flashlight::loops {
namespace {

using composit::Dims;
using composit::DType;
using composit::Graph;
using composit::InputKind;
using composit::LazyTensor;
using ::testing::HasSubstr;

template <class Action>
std::string error_of(Action action) {
  return composit::user_error(action).value_or("none");
}

// ---- text in, text out --------------------------------------------------------------------------

// y[i, j] = x[tokens - 1 - i, j] over flattened pairs.
std::string reversed(const std::string& tokens, const std::string& last, const std::string& all) {
  return "function \"f\" {inputs=[0], results=[1]}\n"
         "  %0: float32[" +
         tokens +
         ", 8] = argument \"x\" {}\n"
         "  %1: float32[" +
         all + "] = result \"y\" {model_sizes=" +
         (tokens == "tokens" ? "any[1, \"" + all + "\"]" : "[1, " + all + "]") +
         "}\n"
         "  nest %0 to %1 {operation=\"aten::flip\"}\n"
         "    loops(x0: float32[" +
         tokens + ", 8]) -> (y0: float32[" + all +
         "]) {\n"
         "      for i < " +
         tokens +
         ", j < 8 {\n"
         "        y0[i * 8 + j] = x0[" +
         last +
         " - i, j]\n"
         "      }\n"
         "    }\n"
         "end\n";
}

const std::string kReversed =
    "size tokens = 17 {least=17, most=24}\n"
    "size x8_tokens = 136 {of=[0], factor=8}\n"
    "size tokens_minus_1 = 16 {of=[0], added=-1}\n" +
    reversed("tokens", "tokens_minus_1", "x8_tokens");

Program parsed(const std::string& text) {
  Program program = parse_program(text);
  EXPECT_EQ(fault_of(program), std::nullopt) << text;
  return program;
}

TEST(Unify, NumbersThatDifferBecomeNamesAndFormulas) {
  const Program program =
      unify({parsed(reversed("17", "16", "136")), parsed(reversed("24", "23", "192"))},
            {.names = {"tokens"}});
  EXPECT_EQ(print(program), kReversed);
  EXPECT_EQ(fault_of(program), std::nullopt);
}

TEST(Unify, NamesAreNoWordsOfTheText) {
  const std::vector<Program> two = {parsed(reversed("17", "16", "136")),
                                    parsed(reversed("24", "23", "192"))};
  EXPECT_EQ(unify(two, {.names = {"for"}}).sizes.front().name, "for_");
  EXPECT_EQ(unify(two, {.names = {"2 words"}}).sizes.front().name, "size_2_words");
}

TEST(Unify, ItsTextReadsBack) { EXPECT_EQ(print(parsed(kReversed)), kReversed); }

TEST(Bind, NamesBecomeNumbers) {
  EXPECT_EQ(print(bind_sizes(parsed(kReversed), {{"tokens", 20}})), reversed("20", "19", "160"));
}

TEST(Unify, ALengthOfALoopIsASize) {
  const auto text = [](const std::string& steps, const std::string& length) {
    return "function \"body\" {inputs=[0], results=[1]}\n"
           "  %0: float32[2] = argument \"x\" {}\n"
           "  %1: float32[2] = result \"y\" {}\n"
           "  nest %0 to %1 {}\n"
           "    loops(x0: float32[2]) -> (y0: float32[2]) {\n"
           "      for i < 2 {\n"
           "        y0[i] = -x0[i]\n"
           "      }\n"
           "    }\n"
           "end\n"
           "function \"f\" {inputs=[0], results=[1]}\n"
           "  %0: float32[" +
           steps +
           ", 2] = argument \"x\" {}\n"
           "  %1: float32[" +
           steps +
           ", 2] = result \"y\" {}\n"
           "  control \"map\" {functions=[0], sequences=[0], length=" +
           length +
           ", results=[1]}\n"
           "end\n";
  };
  const Program program = unify({parsed(text("5", "5")), parsed(text("8", "8"))});
  EXPECT_EQ(print(program), "size x_0 = 5 {least=5, most=8}\n" + text("x_0", "\"x_0\""));
  EXPECT_EQ(print(parse_program(print(program))), print(program));
  EXPECT_EQ(print(bind_sizes(program, {{"x_0", 7}})), text("7", "7"));
}

// y[i, j] = x[i, j] * 5.0, of the first rows.
std::string first_rows(const std::string& rows, const std::string& first,
                       const std::string& factor) {
  return "function \"f\" {inputs=[0], results=[1]}\n"
         "  %0: float32[" +
         rows +
         ", 8] = argument \"x\" {}\n"
         "  %1: float32[" +
         first +
         ", 8] = result \"y\" {}\n"
         "  nest %0 to %1 {operation=\"aten::mul\"}\n"
         "    loops(x0: float32[" +
         rows + ", 8]) -> (y0: float32[" + first +
         ", 8]) {\n"
         "      for i < " +
         first +
         ", j < 8 {\n"
         "        y0[i, j] = x0[i, j] * " +
         factor +
         "\n"
         "      }\n"
         "    }\n"
         "end\n";
}

// For callers that compare the bound program with one of its sizes.
TEST(Unify, ASizeThatFollowsInNoWayIsReadOffAProgram) {
  const auto at = [](int64_t rows) {
    const std::string half = std::to_string(rows / 2);
    return parsed(first_rows(std::to_string(rows), half, half + ".0"));
  };
  const std::vector<Program> programs = {at(17), at(24), at(33)};
  EXPECT_THAT(error_of([&] { unify(programs); }), HasSubstr("axis 0 of value %1 'y'"));
  const Program open = unify(programs, {.reads_numbers = true});
  ASSERT_EQ(open.sizes.size(), 2U);
  EXPECT_EQ(open.sizes.front().name, "x_0");
  EXPECT_EQ(open.sizes.back().name, "y_0");
  const SizeNumbers expected = {{"x_0", 29}, {"y_0", 14}};
  EXPECT_EQ(numbers_in(open, at(29)), expected);
  EXPECT_EQ(print(bind_sizes(open, expected)), print(at(29)));
  EXPECT_THAT(error_of([&] { numbers_in(open, parsed(reversed("17", "16", "136"))); }),
              HasSubstr("[bind] expected a program of the same form"));
}

// ---- refused ------------------------------------------------------------------------------------

std::string unify_error(const std::vector<std::string>& texts, const UnifyOptions& options = {}) {
  std::vector<Program> programs;
  for (const std::string& text : texts) programs.push_back(parsed(text));
  return error_of([&] { unify(programs, options); });
}

TEST(Unify, RefusesWhatFollowsInNoWay) {
  EXPECT_EQ(
      unify_error({reversed("17", "16", "136"), reversed("24", "20", "192")}),
      "[unify] expected a number of step 0 (aten::flip) of function 'f' to be the same, or to "
      "follow from x_0 of 17 and 24, received 16 and 20");
  EXPECT_EQ(unify_error({reversed("17", "16", "136"), reversed("24", "23", "193")}),
            "[unify] expected axis 0 of value %1 'y' of function 'f' to be the same, or to follow "
            "from x_0 of 17 and 24, received 136 and 193");
}

// Two arguments: 16 and 24 of the first are 8 times 2 and 3 of the second.
std::string two_sizes(int64_t a, int64_t b) {
  const std::string rows = std::to_string(a), columns = std::to_string(b);
  return "function \"f\" {inputs=[0, 1], results=[2]}\n"
         "  %0: float32[" +
         rows +
         "] = argument \"x\" {}\n"
         "  %1: float32[" +
         columns +
         "] = argument \"y\" {}\n"
         "  %2: float32[" +
         rows +
         "] = result \"z\" {}\n"
         "  nest %0 to %2 {}\n"
         "    loops(x0: float32[" +
         rows + "]) -> (y0: float32[" + rows +
         "]) {\n"
         "      for i < " +
         rows +
         " {\n"
         "        y0[i] = x0[i]\n"
         "      }\n"
         "    }\n"
         "end\n";
}

TEST(Unify, RefusesWhatFollowsInTwoWays) {
  EXPECT_THAT(unify_error({two_sizes(16, 2), two_sizes(24, 3)}),
              HasSubstr("to follow from sizes in one way, received 16 and 24, which are x_0 and "
                        "also 8 * y_0: one more program tells them apart"));
  EXPECT_THAT(unify_error({two_sizes(16, 10), two_sizes(24, 18)}),
              HasSubstr("which are x_0 and also y_0 + 6"));
  EXPECT_EQ(unify_error({two_sizes(16, 2), two_sizes(24, 3), two_sizes(30, 7)}), "none");
  EXPECT_EQ(unify_error({two_sizes(17, 2), two_sizes(24, 3)}), "none");
}

// Such are one size, so a call has to give one number.
TEST(Unify, SizesThatDifferAlikeAreTied) {
  const Program program = unify({parsed(two_sizes(5, 5)), parsed(two_sizes(7, 7))});
  ASSERT_EQ(program.sizes.size(), 1u);
  const auto ones = [](int64_t count) {
    const std::vector<float> numbers(static_cast<size_t>(count), 1);
    return Array::copy_of(composit::tensor_type(DType::float32, {count}), numbers.data());
  };
  EXPECT_EQ(interpret(program, {ones(6), ones(6)})[0].type().sizes, Dims{6});
  EXPECT_EQ(error_of([&] {
              interpret(program, {ones(6), ones(7)});
            }),
            "[bind] expected one number for 'x_0', received 6, and 7 as axis 0 of 'y'");
  EXPECT_EQ(error_of([&] {
              interpret(program, {ones(8), ones(8)});
            }),
            "[bind] expected 'x_0' from 5 to 7, as was shown, received 8");
}

TEST(Unify, RefusesProgramsOfAnotherForm) {
  const std::string one = reversed("17", "16", "136");
  const auto changed = [](std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.rfind(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::string other = reversed("24", "23", "192");
  const char* step = " in step 0 (aten::flip) of function 'f'";
  EXPECT_EQ(unify_error({one}), "[unify] expected two programs or more, received 1");
  EXPECT_EQ(unify_error({one, changed(other, "x0[23 - i, j]", "-x0[23 - i, j]")}),
            "[unify] expected programs of one form, received the expressions x0[16 - i0, i1] and "
            "-x0[23 - i0, i1]" +
                std::string(step));
  EXPECT_EQ(unify_error({one, changed(other, "y0[i * 8 + j] =", "y0[i * 8 + j] +=")}),
            "[unify] expected programs of one form, received different stores" + std::string(step));
  EXPECT_EQ(unify_error({changed(one, "x0[16 - i, j]", "x0[16 - i, j] * 17.0"),
                         changed(other, "x0[23 - i, j]", "x0[23 - i, j] * 24.0")}),
            "[unify] expected programs of one form, received the numbers float32(17), "
            "float32(24)" +
                std::string(step));
  EXPECT_EQ(unify_error({one, other}, {.names = {"tokens", "batch"}}),
            "[unify] expected names for 1 sizes, received 2");
  EXPECT_THAT(unify_error({one, two_sizes(24, 3)}),
              HasSubstr("received 2 and 3 values in function 'f'"));
}

TEST(Bind, RefusesOtherSizes) {
  const auto error = [](const SizeNumbers& given) {
    return error_of([&] { bind_sizes(parsed(kReversed), given); });
  };
  EXPECT_EQ(error({}), "[bind] expected a number for each of tokens, received none for 'tokens'");
  EXPECT_EQ(error({{"tokens", 25}}),
            "[bind] expected 'tokens' from 17 to 24, as was shown, received 25");
  EXPECT_EQ(error({{"tokens", 20}, {"batch", 1}}),
            "[bind] expected numbers for tokens, received one for 'batch'");
  const Program half = parsed(
      "size a = 4 {least=4, most=8}\nsize b = 2 {of=[0], divisor=2}\n"
      "function \"f\" {inputs=[0]}\n"
      "  %0: float32[a] = argument \"x\" {}\nend\n");
  EXPECT_EQ(error_of([&] {
              bind_sizes(half, {{"a", 5}});
            }),
            "[bind] expected an integer for 'b', which is a / 2, received 5 / 2");
}

TEST(Bind, StagesTakeNumbers) {
  EXPECT_EQ(error_of([] { fuse(parsed(kReversed)); }),
            "[fuse] expected a program of numbers, received one with 'tokens' open: bind it first");
}

// ---- graphs -------------------------------------------------------------------------------------

LazyTensor input(const std::string& name, const Dims& sizes,
                 InputKind kind = InputKind::user_input) {
  return LazyTensor(composit::input(name, composit::tensor_type(DType::float64, sizes), kind));
}
LazyTensor weight(const std::string& name, const Dims& sizes) {
  return input(name, sizes, InputKind::parameter);
}

// Layers of attention and of a perceptron, as an encoder has them.
LazyTensor encoder(LazyTensor x, int64_t layers) {
  const int64_t batch = x.size(0), tokens = x.size(1), width = x.size(2), heads = 2;
  for (int64_t i = 0; i < layers; ++i) {
    const auto linear = [&](const LazyTensor& in, const std::string& name, int64_t out) {
      const std::string full = "layer" + std::to_string(i) + "." + name;
      return matmul(in, weight(full + ".weight", {in.size(2), out})) +
             weight(full + ".bias", {out});
    };
    const auto split = [&](const LazyTensor& all) {
      return transpose(reshape(all, {batch, tokens, heads, width / heads}), 1, 2);
    };
    const LazyTensor scores = matmul(split(linear(x, "query", width)),
                                     transpose(split(linear(x, "key", width)), 2, 3)),
                     seen = matmul(softmax(scores, -1), split(linear(x, "value", width)));
    x = x + linear(reshape(transpose(seen, 1, 2), {batch, tokens, width}), "output", width);
    x = x + linear(relu(linear(x, "up", 2 * width)), "down", width);
  }
  return x;
}

using Build = std::function<LazyTensor(int64_t, int64_t)>;

struct Family {
  const char* name;
  Build build;
  bool two_sizes = false;
};

const std::vector<Family> kFamilies = {
    {"reversed",
     [](int64_t n, int64_t) {
       return flip(input("x", {n, 3}), {0}) * LazyTensor(input("x2", {n, 3}));
     }},
    {"longer",
     [](int64_t n, int64_t) {
       return composit::softmax(composit::cat({input("x", {n, 3}), weight("w", {2, 3})}, 0), 0);
     }},
    {"sums so far",
     [](int64_t n, int64_t) {
       return cumsum(input("x", {n, 3}), 0);
     }},
    {"triangle",
     [](int64_t n, int64_t) {
       const LazyTensor x = input("x", {n, 4});
       return tril(matmul(x, transpose(x, 0, 1)));
     }},
    {"flattened",
     [](int64_t n, int64_t m) {
       return matmul(reshape(input("x", {m, n, 4}), {m * n, 4}), weight("w", {4, 5}));
     },
     true},
    {"encoder",
     [](int64_t n, int64_t) {
       return encoder(input("x", {1, n, 4}), 2);
     }},
    {"encoder of a batch",
     [](int64_t n, int64_t m) {
       return encoder(input("x", {m, n, 4}), 2);
     },
     true},
};

Graph graph_of(const Family& family, int64_t n, int64_t m) {
  Graph::Parts parts{.outputs = {family.build(n, m)}};
  const Graph all(parts);
  for (const composit::NodePtr& node : all.nodes())
    if (is_input(*node)) parts.inputs.push_back({node, 0});
  return Graph(std::move(parts));
}

struct Size {
  int64_t n, m;
};
constexpr Size kFirst = {13, 3}, kSecond = {22, 5}, kThird = {17, 4};

Program open_program(const Family& family) {
  return unify(
      {lower(graph_of(family, kFirst.n, kFirst.m)), lower(graph_of(family, kSecond.n, kSecond.m))},
      {});
}

TEST(Unify, BoundAtAThirdSizeIsWhatIsLoweredThere) {
  for (const Family& family : kFamilies) {
    SCOPED_TRACE(family.name);
    const Program open = open_program(family);
    EXPECT_EQ(fault_of(open), std::nullopt);
    EXPECT_EQ(print(parse_program(print(open))), print(open));
    for (const Size size : {kFirst, kSecond, kThird}) {
      const Graph graph = graph_of(family, size.n, size.m);
      const SizeNumbers given = sizes_given(open, composit::test::random_inputs(graph, 1));
      EXPECT_EQ(given.size(), family.two_sizes ? 2u : 1u);
      EXPECT_EQ(print(bind_sizes(open, given)), print(lower(graph)));
    }
  }
}

TEST(Unify, InterpretedAtEachSizeItGivesWhatTheGraphGives) {
  for (const Family& family : kFamilies) {
    const Program open = open_program(family);
    for (const Size size : {kFirst, kSecond, kThird}) {
      const Graph graph = graph_of(family, size.n, size.m);
      const std::vector<Array> inputs = composit::test::random_inputs(graph, 7);
      const Array expected = composit::evaluate(graph, inputs)[0],
                  ours = interpret(open, inputs)[0];
      ASSERT_EQ(ours.type().sizes, expected.type().sizes);
      EXPECT_EQ(composit::test::difference(ours, expected, 64), "") << family.name << " " << size.n;
    }
  }
}

// The program makes a tensor of a size: in loops it is a number, and the value is nobody's.
TEST(Unify, ATensorMadeOfASizeIsANumber) {
  const auto graph_at = [](int64_t n) {
    const std::string size = std::to_string(n);
    return composit::parse("graph(%x: int64[" + size +
                           "]) {\n  %n: int64[] = " + "composit::constant(value=array(int64[], [" +
                           size + "]), wrapped=true)\n  %y: int64[" + size +
                           "] = aten::add.Tensor(%x, %n, alpha=scalar(1))\n  return %y\n}");
  };
  const Program open = unify({lower(graph_at(13)), lower(graph_at(22))}, {});
  for (const int64_t n : {13, 17, 22}) {
    const std::vector<Array> inputs = composit::test::random_inputs(graph_at(n), 7);
    const Array expected = composit::evaluate(graph_at(n), inputs)[0],
                ours = interpret(open, inputs)[0];
    EXPECT_EQ(composit::test::difference(ours, expected, 64), "") << n;
  }
}

// Stages of bound programs, and of programs of numbers, are the same; fused ones are of one form,
// too.
TEST(Unify, FusedProgramsAreOfOneForm) {
  const Family& family = kFamilies[5];
  const auto fused = [&](Size size) { return fuse(lower(graph_of(family, size.n, size.m))); };
  const Program open = unify({fused(kFirst), fused(kSecond)}, {.names = {"tokens"}});
  EXPECT_EQ(print(bind_sizes(open, {{"tokens", kThird.n}})), print(fused(kThird)));
}

// Bytes of temporaries and operations of a bound program are those of its sizes.
TEST(Bind, ArenaAndCountsFollowTheSizes) {
  const Program open = open_program(kFamilies[5]);
  const auto totals = [](const Program& program) {
    const Routine& function = program.functions.back();
    std::vector<Lifetime> lives;
    int64_t points = 0;
    for (const Value& value : function.values)
      if (value.role == Role::temporary)
        lives.push_back({value.type.nbytes(), 0, function.steps.size()});
    for (const Step& step : function.steps)
      if (const auto* nest = std::get_if<Nest>(&step)) points += iterations(nest->statement);
    return std::pair(arena_size(lives, place(lives)), points);
  };
  const Program numbers = lower(graph_of(kFamilies[5], kThird.n, 1));
  const Program bound = bind_sizes(open, {{open.sizes.front().name, kThird.n}});
  EXPECT_EQ(totals(bound), totals(numbers));
  EXPECT_NE(totals(bound), totals(open));
}

}  // namespace
}  // namespace flashlight::loops
