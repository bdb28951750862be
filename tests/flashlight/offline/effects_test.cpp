// Written programs with guards and random draws.
#include <gmock/gmock.h>

#include "composit/ir/parse.h"
#include "composit/ops/native.h"
#include "tests/flashlight/offline/written_program.h"

namespace flashlight {
namespace {

using composit::array_of;
using composit::DType;
using composit::SavedCapture;
using composit::tensor_type;
using test::output_of;
using testing::HasSubstr;
using testing::Not;

class Drawing : public test::Offline {};

// x + torch.randn(3), where two elements of x are positive; captured after torch.manual_seed(42).
SavedCapture noise() {
  SavedCapture capture;
  capture.graph = composit::parse(R"(graph(%x: float32[3]) {
    %positive: bool[3] = aten::gt.Scalar(%x, other=scalar(0))
    %count: int64[] = aten::sum(%positive, dtype=none)
    aten::_local_scalar_dense(%count) {expected=[scalar(2)], effect=0} # source=noise.cpp:4
    %z: float32[3] = aten::randn(size=[3]) {effect=1}
    %y: float32[3] = aten::add.Tensor(%x, %z, alpha=scalar(1))
    return %y
  })");
  const auto type = tensor_type(DType::float32, {3});
  capture.example_inputs = {array_of(type, std::vector<double>{1, 2, -1})};
  capture.example_outputs = {array_of(
      type, std::vector<double>{1.3366904258728027, 2.1288094520568848, -0.7655376195907593})};
  return capture;
}

TEST_P(Drawing, draws_by_the_seed_of_the_example) {
  write(noise(), {.name = "noise"});
  compile();
  EXPECT_THAT(run(0, {"42"}), HasSubstr("output.0: largest difference 0 "));
  EXPECT_THAT(run(1, {"43"}), HasSubstr("which is too much"));
  EXPECT_THAT(run(), Not(HasSubstr("difference")));
}

TEST_P(Drawing, c_interface_reports_guards_and_takes_a_seed) {
  write(noise(), {.name = "noise"});
  const std::string object = folder_ / "noise.o";
  const std::string sanitize = "-fsanitize=address,undefined";
  output_of({FLASHLIGHT_TEST_CC, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", sanitize,
             "-I", program(), "-c", FLASHLIGHT_NOISE_C, "-o", object});
  test::Words words = {FLASHLIGHT_TEST_CXX,         "-O1", sanitize,
                       "-fno-sanitize-recover=all", "-o",  executable()};
  for (const test::Words& some : {flags(), units(), {object}})
    words.insert(words.end(), some.begin(), some.end());
  output_of(words, 0, program());
  EXPECT_EQ(output_of({executable(), "42", "1", "2", "-1"}),
            "0x1.563158p+0 0x1.107cd4p+1 -0x1.87f48cp-1 ");
  EXPECT_EQ(output_of({executable(), "42", "1", "2", "3"}, 1),
            "status 3: guard: aten::item at noise.cpp:4 gave 3, captured with 2\n");
}

TEST_P(Drawing, without_draws_takes_no_seed) {
  SavedCapture capture = noise();
  auto parts = capture.graph.parts();
  parts.effects.clear();
  parts.outputs = {parts.inputs[0]};
  capture.graph = composit::Graph(parts);
  capture.example_outputs = capture.example_inputs;
  write(capture, {.name = "same"});
  for (const char* file : {"model.h", "model.hpp", "main.cpp"})
    EXPECT_THAT(composit::test::read_file(program() / file),
                testing::AllOf(Not(HasSubstr("seed")), Not(HasSubstr("random"))));
  EXPECT_FALSE(std::filesystem::exists(program() / "flashlight_random.hpp"));
}

INSTANTIATE_TEST_SUITE_P(Backends, Drawing, test::kBackends, test::name_of_case);

}  // namespace
}  // namespace flashlight
