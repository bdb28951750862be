// Written programs of many kinds, under sanitizers and by another compiler.
#include <gmock/gmock.h>

#include <cstdlib>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/ir/parse.h"
#include "composit/ops/functions.h"
#include "tests/flashlight/offline/small_encoder.h"
#include "tests/flashlight/offline/small_models.h"
#include "tests/flashlight/offline/written_program.h"
#include "tests/passes/computable_graph.h"

namespace flashlight {
namespace {

using composit::Graph;
using composit::SavedCapture;
using test::Backend;
using test::Words;

// The graph with an example of its inputs, and what the reference makes of it.
SavedCapture capture_of(Graph graph, uint64_t seed) {
  SavedCapture capture;
  capture.example_inputs = composit::test::random_inputs(graph, seed);
  capture.example_outputs = composit::evaluate(graph, capture.example_inputs);
  capture.graph = std::move(graph);
  return capture;
}

SavedCapture random_gradient(uint64_t seed) {
  const Graph graph = composit::test::ComputableGraph(seed).make();
  const composit::LazyTensor loss = composit::sum(graph.outputs()[0]);
  return capture_of(
      Graph({.inputs = graph.inputs(), .outputs = composit::grad(loss, graph.inputs())}), seed);
}

// By all weights but those that a softmax takes no notice of: their gradient is rounding errors.
SavedCapture encoder_gradient() {
  SavedCapture capture = test::small_encoder();
  auto parts = capture.graph.parts();
  std::vector<composit::Array> values = capture.example_inputs;
  composit::LazyTensors weights;
  for (size_t i = values.size(); i < parts.inputs.size(); ++i) {
    const std::string& name = composit::input_name(*parts.inputs[i].node);
    values.push_back(capture.weights.at(name));
    if (name.find("key.bias") == std::string::npos) weights.push_back(parts.inputs[i]);
  }
  parts.outputs = composit::grad(parts.outputs[1], weights);
  capture.graph = Graph(std::move(parts));
  capture.example_outputs = composit::evaluate(capture.graph, values);
  return capture;
}

// Functions of all headers that come with code that uses them.
SavedCapture headers() {
  return capture_of(composit::parse(R"(graph(%x: float64[4, 4], %y: float64[4, 4]) {
    %sorted, %places: float64[4, 4], int64[4, 4] = aten::sort(%x, dim=0, descending=true)
    %most, %where: float64[4, 2], int64[4, 2] = aten::topk(%y, k=2, dim=1, largest=true, sorted=true)
    %whole: int64[4, 4] = aten::argsort(%x, dim=1, descending=false)
    %divisors: int64[4, 4] = aten::gcd(%whole, %places)
    %fraction, %exponent: float64[4, 4], int32[4, 4] = aten::frexp.Tensor(%x)
    %inverse, %info: float64[4, 4], int32[] = aten::linalg_inv_ex(%x, check_errors=false)
    %q, %r: float64[4, 4], float64[4, 4] = aten::linalg_qr(%x, mode="reduced")
    %u, %s, %vh: float64[4, 4], float64[4], float64[4, 4] = aten::_linalg_svd(%y, full_matrices=false, compute_uv=true, driver=none)
    %yt: float64[4, 4] = aten::transpose.int(%y, dim0=0, dim1=1)
    %gram: float64[4, 4] = aten::matmul(%y, %yt)
    %values, %vectors: float64[4], float64[4, 4] = aten::_linalg_eigh(%gram, UPLO="L", compute_v=true)
    %one: float64[4, 4] = aten::eye(n=4, dtype=float64)
    %definite: float64[4, 4] = aten::add.Tensor(%gram, %one, alpha=scalar(1))
    %l, %fails: float64[4, 4], int32[] = aten::linalg_cholesky_ex(%definite, upper=false, check_errors=false)
    return %sorted, %places, %most, %where, %divisors, %fraction, %exponent, %inverse, %q, %r, %s, %values, %l
  })"),
                    1);
}

class Compilers : public test::ProgramFolder,
                  public testing::WithParamInterface<std::tuple<Backend, int>> {
 protected:
  Compilers() : ProgramFolder(std::get<Backend>(GetParam())) {}
  static int number() { return std::get<int>(GetParam()); }
  static SavedCapture capture() {
    switch (number()) {
      case 0:
        return test::small_encoder();
      case 1:
        return encoder_gradient();
      case 2:
        return headers();
      default:
        return random_gradient(static_cast<uint64_t>(number()));
    }
  }
};

constexpr int kPrograms = 8;

bool is_nightly() { return std::getenv("FLASHLIGHT_FUZZ_PROGRAMS") != nullptr; }

// The text is the same at both levels, and what -O3 makes of it takes thrice the time.
TEST_P(Compilers, sanitizers_find_nothing) {
  write(capture());
  compile({is_nightly() && number() % 2 == 0 ? "-O3" : "-O1", "-g", "-march=native",
           "-fsanitize=address,undefined", "-fno-sanitize-recover=all"});
  run();
}

TEST_P(Compilers, clang_warns_of_nothing) {
  const std::string clang = FLASHLIGHT_TEST_CLANG;
  if (clang.empty()) GTEST_SKIP() << "there is no clang++";
  write(capture());
  compile({"-O1"}, clang);
  run();
}

const auto name_of_program = [](const auto& tested) {
  return name_of(std::get<Backend>(tested.param)) + "_" +
         std::to_string(std::get<int>(tested.param));
};
INSTANTIATE_TEST_SUITE_P(Offline, Compilers,
                         testing::Combine(test::kBackends, testing::Range(0, kPrograms)),
                         name_of_program);

// ---- kernels of models --------------------------------------------------------------------------

struct Model {
  const char* name;
  SavedCapture (*make)();
};
void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

const Model kModels[] = {{"encoder", test::small_encoder},
                         {"resnet", test::small_resnet},
                         {"unet", test::small_unet},
                         {"training_step", test::small_training_step}};

constexpr const char* kNightly =
    "minutes of compiling under sanitizers: the nightly preset runs this";

// By mosaic, in so many threads. Most are compiled nightly alone, which takes minutes.
class Kernels : public test::ProgramFolder,
                public testing::WithParamInterface<std::tuple<Model, int>> {
 protected:
  Kernels() : ProgramFolder(Backend::mosaic) {}
  static int threads() { return std::get<int>(GetParam()); }

  void expect_clean(const std::string& sanitizers) {
    write(std::get<Model>(GetParam()).make(), {.name = "model", .threads = threads()});
    compile({"-O1", "-g", "-fsanitize=" + sanitizers, "-fno-sanitize-recover=all"});
    run();
  }
};

TEST_P(Kernels, touch_no_memory_of_others) {
  if (!is_nightly()) GTEST_SKIP() << kNightly;
  expect_clean("address,undefined");
}
TEST_P(Kernels, race_for_nothing) {
  const bool is_one_of_all = threads() == 4 && std::get<Model>(GetParam()).make == test::small_unet;
  if (!is_nightly() && !is_one_of_all) GTEST_SKIP() << kNightly;
  expect_clean("thread");
}

INSTANTIATE_TEST_SUITE_P(Offline, Kernels,
                         testing::Combine(testing::ValuesIn(kModels), testing::Values(1, 2, 4)),
                         [](const auto& tested) {
                           return std::string(std::get<Model>(tested.param).name) + "_" +
                                  std::to_string(std::get<int>(tested.param)) + "_threads";
                         });

}  // namespace
}  // namespace flashlight
