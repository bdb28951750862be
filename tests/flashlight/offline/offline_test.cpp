// Written programs: built where nothing but a compiler is, run, called from C.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/io/safetensors.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "tests/flashlight/offline/small_encoder.h"
#include "tests/flashlight/offline/written_program.h"

namespace flashlight {
namespace {

namespace fs = std::filesystem;
using composit::DType;
using composit::LazyTensor;
using composit::SavedCapture;
using composit::tensor_type;
using composit::test::message_of;
using composit::test::read_file;
using composit::test::write_file;
using test::kWarnings;
using test::Offline;
using test::output_of;
using test::small_encoder;
using test::Words;
using testing::HasSubstr;

class OfflineByCpp : public test::ProgramFolder {
 protected:
  OfflineByCpp() : ProgramFolder(test::Backend::cpp) {}
};
class OfflineByMosaic : public test::ProgramFolder {
 protected:
  OfflineByMosaic() : ProgramFolder(test::Backend::mosaic) {}
};

TEST_P(Offline, is_built_by_cmake_and_agrees_with_the_example) {
  write(small_encoder());
  const fs::path build = folder_ / "the build";
  std::string flags;
  for (const std::string& flag : kWarnings) flags += flag + " ";
  output_of({FLASHLIGHT_TEST_CMAKE, "-S", program(), "-B", build, "-DCMAKE_CXX_FLAGS=" + flags,
             std::string("-DCMAKE_CXX_COMPILER=") + FLASHLIGHT_TEST_CXX});
  output_of({FLASHLIGHT_TEST_CMAKE, "--build", build});
  const fs::path example = build / "encoder_example";
  const std::string output = output_of({example, program()});
  EXPECT_THAT(output, HasSubstr("output.0: largest difference"));
  EXPECT_THAT(output, HasSubstr("output.1: largest difference"));

  output_of({"strip", example});
  EXPECT_LT(fs::file_size(example), 1'000'000);
  const std::string libraries = output_of({"ldd", example});
  const std::regex line("\\s*(\\S+) .*");
  for (std::sregex_iterator one(libraries.begin(), libraries.end(), line), end; one != end; ++one)
    EXPECT_THAT(fs::path((*one)[1].str()).filename().string(),
                testing::MatchesRegex("(linux-vdso|libc|libm|libstdc\\+\\+|libgcc_s|ld-linux.*)"
                                      "\\.so\\.[0-9]+"));
}

TEST_P(Offline, is_built_by_the_command_in_its_cmake_file) {
  write(small_encoder());
  const std::string text = read_file(program() / "CMakeLists.txt");
  std::smatch command;
  ASSERT_TRUE(std::regex_search(text, command, std::regex("#   (g\\+\\+ .*)\n")));
  output_of({"sh", "-c", command[1].str() + " && ./encoder_example"}, 0, program());
}

TEST_P(Offline, tells_of_another_result) {
  SavedCapture capture = small_encoder();
  const composit::Array& loss = capture.example_outputs[1];
  capture.example_outputs[1] = composit::array_of(
      loss.type(), std::vector<double>{composit::elements<double>(loss)[0] * 1.001});
  write(capture);
  compile();
  EXPECT_THAT(run(1), testing::AllOf(HasSubstr("output.1: largest difference 0.000999"),
                                     HasSubstr("which is too much")));
}

TEST_F(OfflineByCpp, reads_weights_from_training_by_their_names) {
  SavedCapture capture = small_encoder();
  write(capture);
  compile();
  std::map<std::string, composit::Array> trained = capture.weights;
  std::vector<composit::Array> values;
  for (auto& [name, value] : trained) {
    std::vector<double> elements = composit::elements<double>(value);
    for (double& x : elements) x *= 0.9;
    value = composit::array_of(value.type(), elements);
  }
  const auto& inputs = capture.graph.inputs();
  for (size_t i = 0; i < inputs.size(); ++i)
    values.push_back(i < 2 ? capture.example_inputs[i]
                           : trained.at(composit::input_name(*inputs[i].node)));
  trained["decoder.weight"] = trained["embeddings.weight"];
  const auto results = composit::evaluate(capture.graph, values);
  composit::write_safetensors({trained, {{"step", "\"1000\" \\ \n"}}},
                              program() / "weights.safetensors");
  composit::write_safetensors({{{"input.0", capture.example_inputs[0]},
                                {"input.1", capture.example_inputs[1]},
                                {"output.0", results[0]},
                                {"output.1", results[1]}}},
                              program() / "example.safetensors");
  run();

  trained.erase("encoder.layer.1.key.bias");
  composit::write_safetensors({trained}, program() / "weights.safetensors");
  EXPECT_THAT(run(2),
              HasSubstr("weights.safetensors: tensor 'encoder.layer.1.key.bias': is missing"));
  trained["encoder.layer.1.key.bias"] = trained["encoder.layer.1.inner.bias"];
  composit::write_safetensors({trained}, program() / "weights.safetensors");
  EXPECT_THAT(run(2), HasSubstr("expected F32 [8], the file has F32 [96]"));
}

TEST_F(OfflineByCpp, keeps_tied_weights_once_and_what_is_read_only) {
  SavedCapture capture = small_encoder();
  write(capture);
  const auto stored = composit::read_safetensors(program() / "weights.safetensors").tensors;
  EXPECT_EQ(stored.size(), 1 + 3 * 12);
  EXPECT_EQ(stored.count("decoder.weight") + stored.count("embeddings.weight"), 1);
}

TEST_F(OfflineByCpp, fills_repeated_modules_in_a_loop) {
  write(small_encoder());
  const std::string text = read_file(program() / "model.cpp");
  EXPECT_THAT(text, HasSubstr("\"encoder.layer.\" + std::to_string(i) + \".\""));
  EXPECT_THAT(text, HasSubstr("module + \"query.weight\", {8, 8}"));
}

TEST_P(Offline, names_no_place_of_this_machine) {
  write(small_encoder());
  for (const auto& file : fs::directory_iterator(program())) {
    const std::string text = read_file(file.path());
    for (const char* place : {"/tmp", "/home", "/root", FLASHLIGHT_SOURCE_DIR})
      EXPECT_EQ(text.find(place), std::string::npos) << file << " has " << place;
  }
}

TEST_P(Offline, gives_gradients_under_their_names) {
  SavedCapture capture = small_encoder();
  auto parts = capture.graph.parts();
  parts.outputs = {parts.outputs[1]};
  for (const LazyTensor& gradient :
       composit::grad(parts.outputs[0], {parts.inputs[2], parts.inputs[3]}))
    parts.outputs.push_back(gradient);
  std::vector<composit::Array> values = capture.example_inputs;
  for (size_t i = 2; i < parts.inputs.size(); ++i)
    values.push_back(capture.weights.at(composit::input_name(*parts.inputs[i].node)));
  capture.graph = composit::Graph(std::move(parts));
  capture.example_outputs = composit::evaluate(capture.graph, values);
  write(capture, {.name = "encoder", .output_names = {"loss", "grad_words", "grad_query"}});
  EXPECT_THAT(read_file(program() / "model.hpp"),
              HasSubstr("float (&__restrict grad_words)[20][8]"));
  compile();
  EXPECT_THAT(run(), HasSubstr("grad_query: largest difference"));
}

TEST_P(Offline, handles_every_dtype_and_what_is_empty) {
  constexpr DType kDTypes[] = {DType::bool_,   DType::uint8,   DType::int8,      DType::int16,
                               DType::int32,   DType::int64,   DType::float16,   DType::bfloat16,
                               DType::float32, DType::float64, DType::complex64, DType::complex128};
  SavedCapture capture;
  composit::Graph::Parts parts;
  std::vector<composit::Array> values;
  for (const DType dtype : kDTypes) {
    const auto type = tensor_type(dtype, {2, 1});
    const std::string name(composit::name(dtype));
    values.push_back(composit::array_of(type, std::vector<int64_t>{1, 0}));
    capture.example_inputs.push_back(values.back());
    const LazyTensor x = composit::input("the " + name, type);
    parts.inputs.push_back(x);
    values.push_back(composit::array_of(type, std::vector<int64_t>{0, 1}));
    capture.weights["a \"" + name + "\""] = values.back();
    const LazyTensor w =
        composit::input("a \"" + name + "\"", type, composit::InputKind::parameter);
    parts.inputs.push_back(w);
    parts.outputs.push_back((x + w));
  }
  const auto scalar = tensor_type(DType::float64, {});
  values.push_back(composit::array_of(scalar, std::vector<double>{0.5}));
  capture.example_inputs.push_back(values.back());
  capture.weights["scalar weight"] = values.back();
  values.push_back(values.back());
  parts.inputs.push_back(composit::input("scalar", scalar));
  parts.inputs.push_back(composit::input("scalar weight", scalar, composit::InputKind::buffer));
  const auto [x, w] = std::pair(parts.inputs.end()[-2], parts.inputs.back());
  parts.outputs.push_back((x * w));
  const auto empty = tensor_type(DType::float32, {0, 3});
  values.push_back(composit::array_of(empty, std::vector<double>{}));
  capture.example_inputs.push_back(values.back());
  parts.inputs.push_back(composit::input("empty", empty));
  parts.outputs.push_back((parts.inputs.back() + 1));
  capture.graph = composit::Graph(std::move(parts));
  capture.example_outputs = composit::evaluate(capture.graph, values);
  write(capture, {.name = "Every DType"});
  compile();
  const std::string output = run();
  for (size_t i = 0; i < std::size(kDTypes) + 1; ++i)
    EXPECT_THAT(output, HasSubstr("output." + std::to_string(i) + ": largest difference 0 "));
}

SavedCapture nine() {
  SavedCapture capture;
  const LazyTensor three = composit::constant(
      composit::array_of(tensor_type(DType::float64, {}), std::vector<double>{3}));
  capture.graph = composit::Graph({.outputs = {(three * three)}});
  capture.example_outputs = composit::evaluate(capture.graph, {});
  return capture;
}

TEST_P(Offline, does_without_weights_and_inputs) {
  write(nine(), {.name = "nine"});
  EXPECT_FALSE(fs::exists(program() / "weights.safetensors"));
  compile();
  EXPECT_THAT(run(), HasSubstr("output.0: largest difference 0 "));
}

TEST_P(Offline, may_have_the_name_of_a_function_of_c) {
  for (const char* name : {"exp", "read", "gamma", "int", "std"}) {
    write(nine(), {.name = name});
    compile();
    run();
    fs::remove_all(program());
  }
}

TEST_P(Offline, gives_what_buffers_become) {
  const auto type = tensor_type(DType::int64, {2});
  SavedCapture capture;
  const LazyTensor count = composit::input("steps.count", type, composit::InputKind::buffer);
  capture.weights["steps.count"] = composit::array_of(type, std::vector<int64_t>{3, 4});
  capture.graph = composit::Graph(
      {.inputs = {count}, .outputs = {(count * 2)}, .mutations = {{count, (count + 1)}}});
  capture.example_outputs = {composit::array_of(type, std::vector<int64_t>{6, 8})};
  write(capture, {.name = "counter"});
  EXPECT_THAT(read_file(program() / "model_c.cpp"),
              HasSubstr("{\"new_steps.count\", COUNTER_INT64, 1, kOutput1Sizes, 16}"));
  compile();
  EXPECT_THAT(run(), HasSubstr("output.0: largest difference 0 "));
}

// Weights that only packing reads are not shipped, and packed ones of another program are refused.
TEST_F(OfflineByMosaic, ships_packed_weights_for_itself) {
  write(small_encoder());
  const auto stored = composit::read_safetensors(program() / "weights.safetensors");
  EXPECT_EQ(stored.tensors.count("flashlight.prepared"), 1);
  EXPECT_EQ(stored.tensors.count("encoder.layer.1.key.bias"), 1);
  compile();
  run();
  composit::Safetensors other = {stored.tensors, stored.metadata};
  other.metadata.at("flashlight.prepared_by") = "somebody else";
  composit::write_safetensors(other, program() / "weights.safetensors");
  EXPECT_THAT(run(2), testing::AllOf(HasSubstr("weights.safetensors: was not prepared for this"),
                                     HasSubstr("by somebody else; expected encoder for vectors")));
  other.metadata.clear();
  composit::write_safetensors(other, program() / "weights.safetensors");
  EXPECT_THAT(run(2), HasSubstr("but for none"));
}

TEST_F(OfflineByMosaic, is_for_the_processor_it_was_prepared_for) {
  mosaic::write_program(small_encoder(), program(),
                        {.plan = {.name = "encoder"}, .march = "x86-64-v2"});
  compile({"-O1", "-march=x86-64-v2"});
  run();
  const std::string output = output_of(
      {FLASHLIGHT_TEST_CXX, "-std=c++17", "-march=x86-64-v3", "-fsyntax-only", "model.cpp"}, 1,
      program());
  EXPECT_THAT(output, HasSubstr("weights were prepared for -march=x86-64-v2"));
  EXPECT_THAT(read_file(program() / "CMakeLists.txt"), HasSubstr("ENCODER_MARCH x86-64-v2 "));
}

// Before the compiler runs, which would refuse the processor.
TEST_F(OfflineByMosaic, refuses_before_it_works) {
  const auto refusal = [&](const SavedCapture& capture) {
    return message_of(
        [&] { mosaic::write_program(capture, program(), {.march = "no such processor"}); });
  };
  EXPECT_THAT(refusal(small_encoder()), HasSubstr("no such processor"));
  SavedCapture capture = small_encoder();
  capture.weights.erase("encoder.layer.2.key.bias");
  EXPECT_THAT(refusal(capture), HasSubstr("weight 'encoder.layer.2.key.bias' has no value"));
  fs::create_directory(program());
  write_file(program() / "model.cpp", "mine");
  EXPECT_THAT(refusal(small_encoder()), HasSubstr("that Flashlight did not write"));
}

TEST_F(OfflineByMosaic, reports_on_its_kernels) {
  write(small_encoder());
  compile();
  EXPECT_THAT(run(0, {"--profile"}), testing::AllOf(HasSubstr("GFLOP/s"), HasSubstr("mean"),
                                                    HasSubstr("output.0: largest difference")));
  const auto trace = nlohmann::json::parse(read_file(folder_ / "profile.json"));
  EXPECT_GT(trace.at("traceEvents").size(), 3);
  EXPECT_EQ(trace.at("traceEvents").at(1).at("ph"), "X");
}

TEST_P(Offline, leaves_folders_of_others_alone) {
  fs::create_directory(program());
  write_file(program() / "model.cpp", "mine");
  EXPECT_THAT(message_of([&] { write(small_encoder()); }), HasSubstr("the program"));
  EXPECT_EQ(read_file(program() / "model.cpp"), "mine");
  fs::remove(program() / "model.cpp");
  write(small_encoder());
  write(small_encoder());  // its own are replaced
  write_file(program() / "main.cpp", "edited");
  EXPECT_THAT(message_of([&] { write(small_encoder()); }),
              HasSubstr("'main.cpp' in it was changed"));
  EXPECT_EQ(read_file(program() / "main.cpp"), "edited");
}

TEST_P(Offline, says_what_a_capture_lacks) {
  SavedCapture capture = small_encoder();
  capture.example_inputs.pop_back();
  EXPECT_THAT(message_of([&] { write(capture); }),
              HasSubstr("the example has no value for input 'mask'"));
  capture = small_encoder();
  capture.weights.erase("encoder.layer.2.key.bias");
  EXPECT_THAT(message_of([&] { write(capture); }),
              HasSubstr("weight 'encoder.layer.2.key.bias' has no value"));
  capture = small_encoder();
  std::swap(capture.example_outputs[0], capture.example_outputs[1]);
  EXPECT_THAT(message_of([&] { write(capture); }),
              HasSubstr("the example's output 0: expected float32[1, 6, 8], received float32[]"));
  EXPECT_FALSE(fs::exists(program()));
}

// Calls the encoder that was written with whatever fuzz.c thinks of.
class Fuzzed : public Offline {
 protected:
  void fuzz(const Words& more = {}) {
    const Words sanitize = {"-O1", "-g", "-fsanitize=address,undefined",
                            "-fno-sanitize-recover=all"};
    const fs::path object = folder_ / "fuzz.o";
    Words words = {FLASHLIGHT_TEST_CC, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"};
    for (const Words& some :
         {sanitize, {"-I", program(), "-c", FLASHLIGHT_FUZZ_C, "-o", object}, more})
      words.insert(words.end(), some.begin(), some.end());
    output_of(words);
    words = {FLASHLIGHT_TEST_CXX};
    for (const Words& some : {flags(), sanitize, {"-o", executable()}, units(), {object}})
      words.insert(words.end(), some.begin(), some.end());
    output_of(words, 0, program());
    output_of(
        {executable(), program() / "weights.safetensors", folder_ / "broken.safetensors", "4000"});
  }
};

TEST_P(Fuzzed, c_interface_survives_whatever_it_is_given) {
  write(small_encoder());
  fuzz();
}

// With noise in its first result: the interface takes a seed.
SavedCapture noisy_encoder() {
  SavedCapture capture = small_encoder();
  auto parts = capture.graph.parts();
  composit::NodeSpec draw("aten::randn_like");
  draw.tensor(parts.outputs[0]).output(parts.outputs[0].type()).run("effect", int64_t{0});
  parts.effects = {std::move(draw).make_node()};
  const LazyTensor noise = LazyTensor{parts.effects[0], 0};
  parts.outputs[0] = (parts.outputs[0] + noise);
  capture.graph = composit::Graph(std::move(parts));
  return capture;
}

TEST_P(Fuzzed, c_interface_of_a_program_that_draws_survives_whatever_it_is_given) {
  write(noisy_encoder());
  fuzz({"-DDRAWS"});
}

TEST_P(Offline, runs_in_several_threads) {
  write(small_encoder());
  Words words = {FLASHLIGHT_TEST_CXX, "-O1", "-g",         "-fsanitize=thread", "-I",
                 program(),           "-o",  executable(), "-pthread"};
  for (const Words& some : {flags(), units(), {FLASHLIGHT_THREADS_CPP}})
    words.insert(words.end(), some.begin(), some.end());
  output_of(words, 0, program());
  output_of({executable(), program() / "weights.safetensors"});
}

INSTANTIATE_TEST_SUITE_P(Backends, Fuzzed, test::kBackends, test::name_of_case);
INSTANTIATE_TEST_SUITE_P(Backends, Offline, test::kBackends, test::name_of_case);

}  // namespace
}  // namespace flashlight
