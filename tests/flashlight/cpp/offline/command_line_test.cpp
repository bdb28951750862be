// `flashlight compile`, as it is called.
#include <gmock/gmock.h>

#include "composit/io/saved_capture.h"
#include "flashlight/toolchain/process.h"
#include "tests/flashlight/cpp/offline/small_encoder.h"
#include "tests/io/temporary_folder.h"

namespace flashlight::cpp {
namespace {

using composit::test::read_file;
using test::small_encoder;
using testing::HasSubstr;

class CommandLine : public testing::Test {
 protected:
  void SetUp() override {
    composit::SavedCapture capture = small_encoder();
    composit::save(capture, folder_ / "encoder");
    auto parts = capture.graph.parts();
    std::swap(parts.outputs[0], parts.outputs[1]);
    std::swap(capture.example_outputs[0], capture.example_outputs[1]);
    capture.graph = composit::Graph(parts);
    composit::save(capture, folder_ / "loss first");
  }

  std::string compile(std::vector<std::string> words, int status) {
    words.insert(words.begin(), {FLASHLIGHT_TEST_CLI, "compile"});
    words.insert(words.end(), {"-o", folder_ / "out"});
    const toolchain::ProcessResult result = toolchain::run({words});
    EXPECT_EQ(WEXITSTATUS(result.status), status) << result.output;
    return result.output;
  }

  composit::test::TemporaryFolder folder_;
};

TEST_F(CommandLine, names_the_program_as_the_folder) {
  EXPECT_THAT(compile({folder_ / "encoder/", "--backend", "cpp"}, 0), HasSubstr("cmake -S "));
  EXPECT_THAT(read_file(folder_ / "out/model.h"), HasSubstr("encoder_open("));
  compile({folder_ / "encoder", "--name", "Tiny BERT"}, 0);
  EXPECT_THAT(read_file(folder_ / "out/model.h"), HasSubstr("tiny_bert_open("));
}

TEST_F(CommandLine, adds_gradients_by_name) {
  compile({folder_ / "loss first", "--grad", "embeddings.weight", "encoder.layer.1.key.bias"}, 0);
  EXPECT_THAT(read_file(folder_ / "out/model.hpp"),
              testing::AllOf(HasSubstr("output \"grad_embeddings.weight\": float32[20, 8]"),
                             HasSubstr("output \"grad_encoder.layer.1.key.bias\": float32[8]")));
  EXPECT_THAT(read_file(folder_ / "out/main.cpp"),
              HasSubstr("agrees(\"grad_encoder.layer.1.key.bias\""));
}

TEST_F(CommandLine, lists_names_near_an_unknown_one) {
  EXPECT_THAT(compile({folder_ / "loss first", "--grad", "encoder.layer.1.kay.bias"}, 2),
              HasSubstr("there is no parameter or input 'encoder.layer.1.kay.bias'; the nearest "
                        "are 'encoder.layer.1.key.bias', 'encoder.layer."));
}

TEST_F(CommandLine, refuses_what_it_cannot_do) {
  EXPECT_THAT(compile({folder_ / "encoder", "--grad", "embeddings.weight"}, 2),
              HasSubstr("expected one number as the first result, received float32[1, 6, 8]"));
  EXPECT_THAT(compile({folder_ / "loss first", "--grad", "tokens"}, 2), HasSubstr("int64"));
  EXPECT_THAT(compile({folder_ / "encoder", "--backend", "fortran"}, 2),
              HasSubstr("unknown backend 'fortran'; there is cpp"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

}  // namespace
}  // namespace flashlight::cpp
