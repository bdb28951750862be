// Guards, asserts and random draws in generated code.
#include <gmock/gmock.h>

#include <cstring>

#include "composit/ir/parse.h"
#include "composit/ops/native.h"
#include "flashlight/cpp/backend.h"
#include "flashlight/loops/fuse.h"
#include "flashlight/loops/lower.h"
#include "flashlight/loops/program_text.h"
#include "flashlight/runtime/random.hpp"
#include "tests/io/temporary_folder.h"

namespace flashlight::cpp {

using namespace loops;
namespace {

using composit::array_of;
using composit::DType;
using composit::elements;
using composit::Graph;
using composit::parse;
using composit::tensor_type;
using composit::test::message_of;
using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using testing::Pointwise;

using Numbers = std::vector<double>;

Compiled compiled(const std::string& graph) {
  return compile(parse(graph), {.flags = {"-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror"}});
}

Array floats(const Numbers& numbers) {
  return array_of(tensor_type(DType::float32, {static_cast<int64_t>(numbers.size())}), numbers);
}

// ---- guards -------------------------------------------------------------------------------------

constexpr const char* kCount = R"(graph(%x: float32[3]) {
  %positive: bool[3] = aten::gt.Scalar(%x, other=scalar(0))
  %count: int64[] = aten::sum(%positive, dtype=none)
  aten::_local_scalar_dense(%count) {expected=[scalar(2)], effect=0} # scope=encoder.layer.0 source=model.cpp:12
  %y: float32[3] = aten::mul.Scalar(%x, other=scalar(2.0))
  return %y
})";

TEST(Guards, of_numbers) {
  const Compiled twice = compiled(kCount);
  EXPECT_EQ(elements<double>(twice({floats({1, 2, -1})})[0]), (Numbers{2, 4, -2}));
  EXPECT_EQ(message_of([&] {
              twice({floats({1, 2, 3})});
            }),
            "[program] guard: aten::item at model.cpp:12 (encoder.layer.0) gave 3, captured with "
            "2");
}

TEST(Guards, print_as_steps) {
  const Program program = fuse(lower(parse(kCount), {.name = "probe"}));
  EXPECT_THAT(print(program), HasSubstr("runtime \"guards::expect\" %"));
}

// Other kernels add in another order; a number that was read on the host is not lost by that.
TEST(Guards, of_real_numbers_allow_for_rounding) {
  const Compiled sum = compiled(R"(graph(%x: float32[3]) {
    %s: float32[] = aten::sum(%x, dtype=none)
    aten::_local_scalar_dense(%s) {expected=[scalar(0.60000002384185791)], effect=0}
    return %s
  })");
  sum({floats({0.1, 0.2, 0.3})});
  sum({floats({0.3, 0.2, 0.1})});
  EXPECT_THAT(message_of([&] {
                sum({floats({0.1, 0.2, 0.301})});
              }),
              HasSubstr("guard: aten::item gave 0.601"));
  EXPECT_THAT(message_of([&] { sum({floats({0.1, NAN, 0.3})}); }), HasSubstr("gave nan"));
}

TEST(Guards, inside_of_composites) {
  const Compiled is_true = compiled(R"(graph(%x: bool[1]) {
    aten::is_nonzero(%x) {body=region(%0: bool[1]) {
      aten::_local_scalar_dense(%0) {expected=[scalar(true)], effect=0} # source=model.cpp:3
      return
    }, effect=0}
    return %x
  })");
  const auto flag = [](double x) { return array_of(tensor_type(DType::bool_, {1}), Numbers{x}); };
  is_true({flag(1)});
  EXPECT_THAT(message_of([&] { is_true({flag(0)}); }),
              HasSubstr("guard: aten::item at model.cpp:3 gave false, captured with true"));
}

TEST(Guards, of_equal_tensors) {
  const Compiled same = compiled(R"(graph(%x: float32[3], %y: float32[3]) {
    aten::equal(%x, %y) {expected=[scalar(true)], effect=0} # source=model.cpp:5
    return %x
  })");
  same({floats({1, 2, 3}), floats({1, 2, 3})});
  EXPECT_THAT(message_of([&] {
                same({floats({1, 2, 3}), floats({1, 2, 4})});
              }),
              HasSubstr("guard: aten::equal at model.cpp:5 gave false, captured with true"));
  EXPECT_THAT(message_of([&] {
                same({floats({1, 2, NAN}), floats({1, 2, NAN})});
              }),
              HasSubstr("gave false"));
}

TEST(Guards, of_sizes_that_depend_on_values) {
  const Compiled chosen = compiled(R"(graph(%x: float32[4]) {
    %mask: bool[4] = aten::gt.Scalar(%x, other=scalar(0))
    %kept: float32[2] = aten::masked_select(%x, %mask) {effect=0}
    %where: int64[2, 1] strides=[1, 2] = aten::nonzero(%mask) {effect=1}
    return %kept, %where
  })");
  const auto results = chosen({floats({-1, 5, -2, 7})});
  EXPECT_THAT(elements<double>(results[0]), ElementsAre(5, 7));
  EXPECT_THAT(elements<int64_t>(results[1]), ElementsAre(1, 3));
  EXPECT_THAT(message_of([&] {
                chosen({floats({1, 5, -2, 7})});
              }),
              HasSubstr("guard: aten::masked_select gave 3, captured with 2"));
}

TEST(Guards, asserts_of_the_program) {
  const Compiled checked = compiled(R"(graph(%x: float32[2]) {
    %fine: bool[] = aten::all(%x)
    aten::_assert_async.msg(%fine, assert_msg="no zeros") {effect=0} # source=model.cpp:7
    return %x
  })");
  checked({floats({1, 2})});
  EXPECT_THAT(message_of([&] {
                checked({floats({1, 0})});
              }),
              HasSubstr("guard: aten::_assert_async.msg at model.cpp:7: no zeros"));
}

TEST(Guards, without_code_are_named) {
  EXPECT_THAT(message_of([] {
                compiled(R"(graph(%x: float32[2]) {
                  aten::is_same_size(%x, %x) {expected=[scalar(true)], effect=0}
                  return %x
                })");
              }),
              HasSubstr("[compile] no code for 'aten::is_same_size'"));
}

// ---- draws: numbers of torch 2.13 after torch.manual_seed ---------------------------------------

// torch.manual_seed(42); torch.rand(3); torch.randn(2, dtype=torch.float64)
// torch.empty(4).bernoulli_(0.5); torch.randint(-5, 100, (3,)); torch.randperm(4)
TEST(Draws, of_one_program_follow_each_other) {
  const std::string none = "layout=none, device=none, pin_memory=none";
  const Compiled draws = compiled(R"(graph() {
    %a: float32[3] = aten::rand(size=[3], dtype=none, )" +
                                  none + R"() {effect=0}
    %b: float64[2] = aten::randn(size=[2], dtype=float64, )" +
                                  none + R"() {effect=1}
    %e: float32[4] = aten::empty.memory_format(size=[4], dtype=none, )" +
                                  none + R"()
    %c: float32[4] = aten::bernoulli_.float(%e, p=0.5, generator=none) {effect=2}
    %d: int64[3] = aten::randint.low(low=-5, high=100, size=[3], dtype=int64, )" +
                                  none + R"() {effect=3}
    %f: int64[4] = aten::randperm(n=4, dtype=int64, )" +
                                  none + R"() {effect=4}
    return %b, %a, %f, %d, %c
  })");
  for (int round = 0; round < 2; ++round) {
    const auto drawn = draws({}, fl::Generator(42));
    EXPECT_THAT(elements<double>(drawn[0]),
                ElementsAre(-0x1.a89c86401517fp-1, -0x1.9d1be66aa3104p+0));
    EXPECT_THAT(elements<double>(drawn[1]),
                ElementsAre(0x1.c3b8ccp-1, 0x1.d47b66p-1, 0x1.880d7p-2));
    EXPECT_THAT(elements<int64_t>(drawn[2]), ElementsAre(3, 2, 0, 1));
    EXPECT_THAT(elements<int64_t>(drawn[3]), ElementsAre(32, 15, 50));
    EXPECT_THAT(elements<double>(drawn[4]), ElementsAre(1, 1, 0, 0));
  }
}

// torch.manual_seed(42); torch.rand(3)[:2] is 0.8823, 0.9150: a draw that nobody uses moves on.
TEST(Draws, that_nobody_uses_move_the_generator) {
  const Compiled draws = compiled(R"(graph() {
    %a: float32[2] = aten::rand(size=[2]) {effect=0}
    %b: float32[1] = aten::rand(size=[1]) {effect=1}
    return %b
  })");
  EXPECT_THAT(elements<double>(draws({}, fl::Generator(42))[0]), ElementsAre(0x1.880d7p-2));
}

// torch.manual_seed(42); x = torch.arange(1, 9.); F.dropout(x, 0.25)
// torch.native_dropout(x, 0.25, True); torch.rand(1)
TEST(Draws, of_dropout) {
  const Compiled dropout = compiled(R"(graph(%x: float32[8]) {
    %y: float32[8] = aten::dropout(%x, p=0.25, train=true) {body=region(%0: float32[8]) {
      %e: float32[8] = aten::empty_like(%0)
      %m: float32[8] = aten::bernoulli_.float(%e, p=0.75, generator=none) {effect=0}
      %d: float32[8] = aten::div.Scalar(%m, other=scalar(0.75))
      %r: float32[8] = aten::mul.Tensor(%0, %d)
      return %r
    }, effect=0}
    %z, %mask: float32[8], bool[8] = aten::native_dropout(%x, p=0.25, train=true) {effect=1}
    %a: float32[1] = aten::rand(size=[1]) {effect=2}
    return %y, %z, %mask, %a
  })");
  const auto results = dropout({floats({1, 2, 3, 4, 5, 6, 7, 8})}, fl::Generator(42));
  EXPECT_THAT(elements<double>(results[0]),
              Pointwise(FloatEq(), Numbers{4. / 3, 8. / 3, 4, 16. / 3, 20. / 3, 8, 0, 0}));
  EXPECT_THAT(elements<double>(results[1]),
              Pointwise(FloatEq(), Numbers{4. / 3, 8. / 3, 4, 16. / 3, 0, 0, 28. / 3, 32. / 3}));
  EXPECT_THAT(elements<double>(results[2]), ElementsAre(1, 1, 1, 1, 0, 0, 1, 1));
  EXPECT_THAT(elements<double>(results[3]), Pointwise(FloatEq(), Numbers{0.8860136866569519}));
}

// Four layers in training, of modules "encoder.N" or of none. All compute the same mask.
Graph layers_that_draw(bool modules) {
  std::string head = "graph(%x: float32[4, 8]", body, last = "%x";
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i), module = "encoder." + n;
    const auto scope = [&](const std::string& part) {
      return modules ? "  # scope=" + module + part + "\n" : "\n";
    };
    head += ", %w" + n + ": float32[8, 8] parameter \"" + module + ".dense.weight\"";
    body += "  %a" + n + ": float32[4, 8] = aten::matmul(" + last + ", %w" + n + ")" +
            scope(".dense") + "  %d" + n + ", %m" + n +
            ": float32[4, 8], bool[4, 8] = aten::native_dropout(%a" + n +
            ", p=0.5, train=true) {effect=" + std::to_string(2 * i) + "}" + scope(".dropout") +
            "  %s" + n + ": float32[4, 8] = aten::add.Tensor(%d" + n + ", " + last +
            ", alpha=scalar(1))" + scope("") + "  %r" + n + ": float32[4, 8] = aten::rand_like(%s" +
            n + ") {effect=" + std::to_string(2 * i + 1) + "}" + scope(".noise") + "  %y" + n +
            ": float32[4, 8] = aten::mul.Tensor(%s" + n + ", %r" + n + ")" + scope("") + "  %e" +
            n + ": float32[4, 8] = aten::exp(%x)" + scope(".mask") + "  %z" + n +
            ": float32[4, 8] = aten::mul.Tensor(%y" + n + ", %e" + n + ")" + scope("");
    last = "%z" + n;
  }
  return parse(head + ") {\n" + body + "  return " + last + "\n}");
}

size_t count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(Draws, of_equal_layers_are_one_function) {
  const Graph layers = layers_that_draw(true), plain = layers_that_draw(false);
  const std::string text = source_of(layers, {.name = "layers"}).text;
  EXPECT_EQ(count(text, "fl::draw_bernoulli"), 1) << text;
  EXPECT_EQ(count(text, "fl::draw_uniform"), 1) << text;
  EXPECT_EQ(count(text, "fl::exp"), 1) << text;
  EXPECT_EQ(count(source_of(plain, {.name = "plain"}).text, "fl::draw_bernoulli"), 4);
  std::vector<Array> inputs;
  for (const auto& input : plain.inputs()) {
    Numbers numbers;
    for (int64_t i = 0; i < input.type().numel(); ++i)
      numbers.push_back(std::sin(static_cast<double>(7 * i + 1)));
    inputs.push_back(array_of(input.type(), numbers));
  }
  const auto expected = compile(plain)(inputs, fl::Generator(42)),
             found = compile(layers)(inputs, fl::Generator(42));
  EXPECT_THAT(elements<double>(found[0]), Pointwise(FloatEq(), elements<double>(expected[0])));
}

// The state of LibTorch's generator after manual_seed(seed), or some draws later.
Array state_of_generator(uint64_t seed, bool is_fresh) {
  Array state = array_of(tensor_type(DType::uint8, {5056}), std::vector<int64_t>(5056));
  auto* bytes = const_cast<std::byte*>(state.data());
  const auto put = [&](size_t at, uint64_t value) { std::memcpy(bytes + at, &value, 8); };
  put(0, seed);
  put(8, uint64_t{1} << 32 | (is_fresh ? 1 : 620));  // left, seeded
  auto word = static_cast<uint32_t>(seed);
  for (uint64_t i = 0; i < 624; ++i) {
    if (i > 0) word = static_cast<uint32_t>(1812433253u * (word ^ word >> 30) + i);
    put(24 + 8 * i, word);
  }
  return state;
}

Graph seeded(uint64_t seed, bool is_fresh = true, const std::string& generator = "default") {
  composit::NodeSpec spec("composit::set_generator_state");  // before the draw
  spec.attribute("generator", composit::Generator{generator})
      .attribute("state", state_of_generator(seed, is_fresh))
      .run("effect", int64_t{0});
  const composit::NodePtr seeding = std::move(spec).make_node();
  auto parts = parse(R"(graph() {
    %a: float32[2] = aten::rand(size=[2]) {effect=1}
    return %a
  })")
                   .parts();
  parts.effects.insert(parts.effects.begin(), seeding);
  return Graph(std::move(parts));
}

// torch.manual_seed(7); torch.rand(2)
TEST(Draws, after_a_seed_in_the_program) {
  const Compiled draws = compile(seeded(7));
  EXPECT_THAT(elements<double>(draws({}, fl::Generator(42))[0]),
              Pointwise(FloatEq(), Numbers{0.5349225401878357, 0.19880318641662598}));
}

TEST(Draws, without_code_are_named) {
  const auto refusal = [](const Graph& graph) {
    return message_of([&] { source_of(graph, {.name = "probe"}); });
  };
  EXPECT_THAT(refusal(seeded(7, false)),
              HasSubstr("'composit::set_generator_state' of a generator that has drawn before"));
  EXPECT_THAT(refusal(seeded(7, true, "generator_0")),
              HasSubstr("by a generator of the program's own, 'generator_0'"));
  EXPECT_THAT(refusal(parse(R"(graph() {
                %a: float32[2, 3] strides=[9, 2] = aten::randn(size=[2, 3]) {effect=0}
                %b: float32[2, 3] = aten::poisson(%a, generator=none) {effect=1}
                return %b
              })")),
              testing::AllOf(HasSubstr("'aten::randn' into memory that is not row-major"),
                             HasSubstr("'aten::poisson'")));
}

}  // namespace
}  // namespace flashlight::cpp
