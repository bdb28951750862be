// `flashlight compile`, as it is called.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "composit/io/saved_capture.h"
#include "flashlight/toolchain/process.h"
#include "tests/flashlight/offline/small_encoder.h"
#include "tests/flashlight/offline/written_program.h"
#include "tests/io/temporary_folder.h"

namespace flashlight {
namespace {

using composit::test::read_file;
using test::small_encoder;
using testing::HasSubstr;

class CommandLine : public testing::TestWithParam<test::Backend> {
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
    if (std::find(words.begin(), words.end(), "--backend") == words.end())
      words.insert(words.end(), {"--backend", name_of(GetParam())});
    words.insert(words.end(), {"-o", folder_ / "out"});
    const toolchain::ProcessResult result = toolchain::run({words});
    EXPECT_EQ(WEXITSTATUS(result.status), status) << result.output;
    return result.output;
  }

  composit::test::TemporaryFolder folder_;
};

TEST_P(CommandLine, names_the_program_as_the_folder) {
  EXPECT_THAT(compile({folder_ / "encoder/"}, 0), HasSubstr("cmake -S "));
  EXPECT_THAT(read_file(folder_ / "out/model.h"), HasSubstr("encoder_open("));
  compile({folder_ / "encoder", "--name", "Tiny BERT"}, 0);
  EXPECT_THAT(read_file(folder_ / "out/model.h"), HasSubstr("tiny_bert_open("));
}

TEST_P(CommandLine, adds_gradients_by_name) {
  compile({folder_ / "loss first", "--grad", "embeddings.weight", "encoder.layer.1.key.bias"}, 0);
  EXPECT_THAT(read_file(folder_ / "out/model.hpp"),
              testing::AllOf(HasSubstr("output \"grad_embeddings.weight\": float32[20, 8]"),
                             HasSubstr("output \"grad_encoder.layer.1.key.bias\": float32[8]")));
  EXPECT_THAT(read_file(folder_ / "out/main.cpp"),
              HasSubstr("agrees(\"grad_encoder.layer.1.key.bias\""));
}

TEST_P(CommandLine, lists_names_near_an_unknown_one) {
  EXPECT_THAT(compile({folder_ / "loss first", "--grad", "encoder.layer.1.kay.bias"}, 2),
              HasSubstr("there is no parameter or input 'encoder.layer.1.kay.bias'; the nearest "
                        "are 'encoder.layer.1.key.bias', 'encoder.layer."));
}

TEST_P(CommandLine, refuses_what_it_cannot_do) {
  EXPECT_THAT(compile({folder_ / "encoder", "--grad", "embeddings.weight"}, 2),
              HasSubstr("expected one number as the first result, received float32[1, 6, 8]"));
  EXPECT_THAT(compile({folder_ / "loss first", "--grad", "tokens"}, 2), HasSubstr("int64"));
  EXPECT_THAT(compile({folder_ / "encoder", "--backend", "fortran"}, 2),
              AllOf(HasSubstr("[backend] expected one of "),  // aten is one with LibTorch
                    HasSubstr("cpp, cuda, devices, mosaic, pjrt, reference, received 'fortran'")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

INSTANTIATE_TEST_SUITE_P(Backends, CommandLine, test::kBackends, test::name_of_case);

class CommandLineOfCpp : public CommandLine {};

TEST_P(CommandLineOfCpp, refuses_options_of_mosaic) {
  for (const std::vector<std::string>& option :
       std::vector<std::vector<std::string>>{{"--threads", "0"},
                                             {"--march", "native"},
                                             {"--no-winograd"},
                                             {"--no-strassen"},
                                             {"--choices", "file"}}) {
    std::vector<std::string> words = {folder_ / "encoder"};
    words.insert(words.end(), option.begin(), option.end());
    EXPECT_THAT(compile(words, 2),
                HasSubstr("[cpp] expected the option --link aten, received '" + option[0] + "'"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

INSTANTIATE_TEST_SUITE_P(Backends, CommandLineOfCpp, testing::Values(test::Backend::cpp),
                         test::name_of_case);

class CommandLineOfMosaic : public CommandLine {};

TEST_P(CommandLineOfMosaic, takes_its_options) {
  compile({folder_ / "encoder", "--threads", "3", "--march", "x86-64", "--no-winograd"}, 0);
  EXPECT_THAT(read_file(folder_ / "out/model.hpp"),
              testing::AllOf(HasSubstr("kThreads = 3;"), HasSubstr("for vectors of 16 bytes")));
  EXPECT_THAT(
      compile({folder_ / "encoder", "--link", "aten"}, 2),
      HasSubstr("[mosaic] expected one of the options --threads, --no-winograd, "
                "--no-strassen, --products, --values, --choices, --march, received '--link'"));
}

TEST_P(CommandLineOfMosaic, refuses_values_of_another_type) {
  EXPECT_THAT(compile({folder_ / "encoder", "--threads", "many"}, 2),
              HasSubstr("[mosaic] option 'threads': expected an integer, received 'many'"));
  EXPECT_THAT(compile({folder_ / "encoder", "--threads=-1"}, 2),
              HasSubstr("[mosaic] option 'threads': expected a number of threads, or 0, received"));
  EXPECT_THAT(
      compile({folder_ / "encoder", "--thread", "2"}, 2),
      HasSubstr("--no-strassen, --products, --values, --choices, --march, received '--thread'"));
  EXPECT_THAT(compile({folder_ / "encoder", "--plugin", folder_ / "encoder/graph.txt"}, 2),
              HasSubstr("graph.txt: expected a library with COMPOSIT_BACKEND_PLUGIN"));
}

TEST_P(CommandLineOfMosaic, emits_text_and_plan) {
  const auto printed = [&](const char* command, std::vector<std::string> words = {}) {
    words.insert(words.begin(), {FLASHLIGHT_TEST_CLI, command, folder_ / "encoder"});
    return toolchain::run({words}).output;
  };
  EXPECT_THAT(printed("emit", {"--backend", "mosaic"}),
              HasSubstr("fl::end_kernel(team, times, 1);"));
  EXPECT_THAT(printed("emit"), HasSubstr("void encoder(const Weights& weights"));
  EXPECT_THAT(printed("plan"), HasSubstr("MB of values, at least"));
  EXPECT_THAT(printed("plan", {"--backend", "cpp"}),
              HasSubstr("[cpp] expected a backend that plans, received one that has no plan"));
}

TEST_P(CommandLineOfMosaic, places_modules_on_devices) {
  std::ofstream(folder_ / "choices.txt") << "device far: cpp, memory far\n"
                                            "encoder.layer.0: on far\n"
                                            "*: on mosaic\n";
  const auto called = [&](const char* command, std::vector<std::string> more) {
    std::vector<std::string> words = {FLASHLIGHT_TEST_CLI, command, folder_ / "encoder",
                                      "--backend", "devices"};
    words.insert(words.end(), more.begin(), more.end());
    return toolchain::run({words});
  };
  const std::vector<std::string> choices = {"--choices", folder_ / "choices.txt"};
  EXPECT_THAT(called("plan", choices).output,
              AllOf(HasSubstr("device far: cpp, memory far"), HasSubstr("part 1 on far, stage 1"),
                    HasSubstr("cpu to far")));
  const toolchain::ProcessResult run = called("run", choices);
  EXPECT_EQ(WEXITSTATUS(run.status), 0) << run.output;
  EXPECT_THAT(called("plan", {"--propose", "mosaic,cpp"}).output,
              AllOf(HasSubstr("proposed:\nembeddings: on "), HasSubstr("   # mosaic ")));
  EXPECT_THAT(called("compile", {"-o", folder_ / "out"}).output,
              HasSubstr("[devices] expected a backend that writes programs"));
}

INSTANTIATE_TEST_SUITE_P(Backends, CommandLineOfMosaic, testing::Values(test::Backend::mosaic),
                         test::name_of_case);

}  // namespace
}  // namespace flashlight
