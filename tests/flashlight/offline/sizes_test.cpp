// Written programs for all sizes of a family: built, run at the example's sizes, called from C at
// others.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include "composit/eval/evaluate.h"
#include "composit/io/safetensors.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "flashlight/mosaic/offline.h"
#include "tests/flashlight/offline/written_program.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using namespace composit;  // NOLINT
using ::testing::HasSubstr;

Array numbers(const Dims& sizes, const std::function<double(int64_t)>& number) {
  const Type type = tensor_type(DType::float32, sizes);
  std::vector<double> values;
  for (int64_t i = 0; i < type.numel(); ++i) values.push_back(number(i));
  return array_of(type, values);
}

// Each token sees its sequence; and the mean of each sequence.
SavedCapture pooled(int64_t batch, int64_t tokens, int64_t width = 8) {
  SavedCapture capture;
  const LazyTensor x = input("x", tensor_type(DType::float32, {batch, tokens, width})),
                   w = input("w", tensor_type(DType::float32, {width, 6}), InputKind::parameter);
  const LazyTensor y = matmul(x, w);
  const LazyTensor seen = matmul(softmax(matmul(y, transpose(y, 1, 2)), -1), y);
  Graph::Parts parts;
  parts.inputs = {x, w};
  parts.outputs = {seen, mean(seen, {1})};
  capture.graph = Graph(std::move(parts));
  capture.weights["w"] =
      numbers({width, 6}, [](int64_t i) { return std::sin(static_cast<double>(i)); });
  capture.example_inputs = {numbers({batch, tokens, width}, [](int64_t i) {
    return static_cast<double>(static_cast<float>(37 * i % 101) / 50 - 1);
  })};
  capture.example_outputs =
      evaluate(capture.graph, {capture.example_inputs[0], capture.weights["w"]});
  return capture;
}

const std::vector<SizeRange> kRanges = {{"batch", 2, 5}, {"tokens", 4, 40, 2}};

SizedGraphs shown_at(const std::vector<std::pair<int64_t, int64_t>>& sizes,
                     std::vector<SizeRange> ranges = kRanges) {
  SizedGraphs graphs = {.ranges = std::move(ranges), .at = [](const auto& at) {
                          return pooled(at.at("batch"), at.at("tokens")).graph;
                        }};
  for (const auto& [batch, tokens] : sizes)
    graphs.shown.push_back({pooled(batch, tokens).graph, {{"batch", batch}, {"tokens", tokens}}});
  return graphs;
}

class SizedFolder : public test::ProgramFolder {
 protected:
  using ProgramFolder::ProgramFolder;

  void write(const SizedGraphs& graphs, int threads = 2) {
    if (is_cpp())
      cpp::write_program(pooled(3, 10), graphs, program(), {.name = "pooled"});
    else
      mosaic::write_program(pooled(3, 10), graphs, program(),
                            {.plan = {.name = "pooled"}, .threads = threads});
  }
  void compile_for_c() {
    const std::string object = folder_ / "sizes.o", sanitize = "-fsanitize=address,undefined";
    output_of({FLASHLIGHT_TEST_CC, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
               sanitize, "-I", program(), "-c", FLASHLIGHT_SIZES_C, "-o", object});
    test::Words words = {FLASHLIGHT_TEST_CXX,         "-O1", sanitize,
                         "-fno-sanitize-recover=all", "-o",  executable()};
    for (const test::Words& some : {flags(), test::kWarnings, units(), {object}})
      words.insert(words.end(), some.begin(), some.end());
    output_of(words, 0, program());
  }
  std::string call(const test::Words& sizes, int status = 0) {
    test::Words words = {executable(), program() / "weights.safetensors"};
    words.insert(words.end(), sizes.begin(), sizes.end());
    return output_of(words, status);
  }
};

class SizedOffline : public SizedFolder, public testing::WithParamInterface<test::Backend> {
 protected:
  SizedOffline() : SizedFolder(GetParam()) {}
  void write() { SizedFolder::write(shown_at({{2, 4}, {2, 6}, {3, 10}, {5, 38}, {5, 40}})); }
};

TEST_P(SizedOffline, runs_the_example) {
  write();
  compile();
  const std::string output = run();
  EXPECT_THAT(output, HasSubstr("output.0: largest difference"));
  EXPECT_THAT(output, HasSubstr("output.1: largest difference"));
}

// Prints what sizes.c prints, row by row.
void expect_output(const std::string& text, const std::vector<Array>& all) {
  std::istringstream output(text);
  for (const Array& expected : all) {
    for (const int64_t size : expected.type().sizes) {
      int64_t given = 0;
      output >> given;
      EXPECT_EQ(given, size);
    }
    std::string colon;
    output >> colon;
    ASSERT_EQ(colon, ":");
    const auto* elements = reinterpret_cast<const float*>(expected.data());
    for (int64_t i = 0; i < expected.type().numel(); ++i) {
      double element = 0;
      output >> element;
      ASSERT_NEAR(element, elements[i], 1e-5) << i;
    }
  }
}

TEST_P(SizedOffline, is_called_from_c_at_all_sizes) {
  write();
  compile_for_c();
  for (const auto& [batch, tokens] :
       std::vector<std::pair<int64_t, int64_t>>{{2, 4}, {5, 40}, {4, 26}, {3, 8}, {2, 38}}) {
    SCOPED_TRACE(testing::Message() << batch << " x " << tokens);
    expect_output(call({std::to_string(batch), std::to_string(tokens)}),
                  pooled(batch, tokens).example_outputs);
  }
  EXPECT_EQ(call({"1", "8"}, 1),
            "status 1: size 'batch': expected a number from 2 to 5, received 1\n");
  EXPECT_EQ(call({"2", "42"}, 1),
            "status 1: size 'tokens': expected a number from 4 to 40 in steps of 2, received 42\n");
  EXPECT_EQ(call({"2", "9"}, 1),
            "status 1: size 'tokens': expected a number from 4 to 40 in steps of 2, received 9\n");
  EXPECT_EQ(
      call({"2", "8", "10"}, 1),
      "status 1: output 'output.0': expected float32 [2, 8, 6], received float32 [2, 10, 6]\n");
}

INSTANTIATE_TEST_SUITE_P(All, SizedOffline, test::kBackends, test::name_of_case);

class CppSizedOffline : public SizedFolder {
 protected:
  CppSizedOffline() : SizedFolder(test::Backend::cpp) {}
};
class MosaicSizedOffline : public SizedFolder {
 protected:
  MosaicSizedOffline() : SizedFolder(test::Backend::mosaic) {}
};

TEST_F(CppSizedOffline, needs_one_form_at_all_sizes) {
  const auto error = user_error([&] {
    cpp::write_program(pooled(3, 10), shown_at({{2, 1}, {2, 6}, {3, 10}, {5, 38}}), program(),
                       {.name = "pooled"});
  });
  EXPECT_EQ(error,
            "[cpp] expected loops of one form at all sizes, received others at batch = 2, "
            "tokens = 1: unify examples without that size");
  EXPECT_FALSE(std::filesystem::exists(program()));
}

TEST_F(CppSizedOffline, needs_ranges_of_all_sizes) {
  const auto error = user_error([&] {
    cpp::write_program(pooled(3, 10), shown_at({{2, 6}, {3, 10}, {5, 38}}, {{"batch", 2, 5}}),
                       program(), {.name = "pooled"});
  });
  EXPECT_THAT(error.value_or(""), HasSubstr("received 'tokens', which is none"));
}

// The bytes of a file.
std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(MosaicSizedOffline, refuses_sizes_without_a_graph_and_damaged_plans) {
  SizedGraphs graphs = shown_at({{2, 4}, {3, 10}}, {{"batch", 2, 3}, {"tokens", 4, 10, 2}});
  graphs.at = [](const auto& at) {
    if (at.at("batch") * at.at("tokens") == 24) throw UserError("24 is not seen");
    return pooled(at.at("batch"), at.at("tokens")).graph;
  };
  write(graphs, 1);
  compile_for_c();
  EXPECT_EQ(call({"3", "8"}, 1), "status 3: the program was not written for these sizes: 3, 8\n");
  expect_output(call({"3", "6"}), pooled(3, 6).example_outputs);

  const std::filesystem::path file = program() / "weights.safetensors";
  const std::string bytes = bytes_of(file);
  const Array plans = read_safetensors(file).tensors.at("constant.plans");
  const std::string words(reinterpret_cast<const char*>(plans.data()),
                          static_cast<size_t>(plans.type().nbytes()));
  const size_t place = bytes.find(words);
  ASSERT_NE(place, std::string::npos);
  for (const size_t byte : {size_t{0}, words.size() / 2, words.size() - 1}) {
    std::string damaged = bytes;
    damaged[place + byte] = static_cast<char>(damaged[place + byte] ^ 1);
    std::ofstream(file, std::ios::binary) << damaged;
    EXPECT_THAT(call({"3", "6"}, 1), HasSubstr("plans of another program, or damaged ones"));
  }
}

TEST_F(MosaicSizedOffline, refuses_too_many_sizes) {
  const auto error = user_error([&] {
    write(shown_at({{2, 4}, {3, 10}}, {{"batch", 1, 4000}, {"tokens", 1, 4000}}));
  });
  EXPECT_THAT(error.value_or(""), HasSubstr("expected at most 20000 combinations of sizes"));
  EXPECT_FALSE(std::filesystem::exists(program()));
}

TEST(SizedFolders, other_backends_refuse_families) {
  const auto error = user_error([&] {
    reference().write_program(pooled(3, 10), shown_at({{2, 6}, {3, 10}}), "no folder");
  });
  EXPECT_THAT(error.value_or(""), HasSubstr("[reference] expected a capture of one size"));
}

}  // namespace
}  // namespace flashlight
