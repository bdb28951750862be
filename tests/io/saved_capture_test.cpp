// Captures are saved and loaded whole; what is not a whole capture is refused.

#include "composit/io/saved_capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <random>
#include <thread>

#include "composit/io/safetensors.h"
#include "tests/io/arrays.h"
#include "tests/io/model_graphs.h"
#include "tests/io/sample_capture.h"
#include "tests/io/temporary_folder.h"

namespace composit::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::vector<std::string> kFiles = {"example.safetensors", "graph.txt", "weights.safetensors"};

void expect_equal(const SavedCapture& a, const SavedCapture& b) {
  EXPECT_EQ(a.graph, b.graph);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.producer, b.producer);
  EXPECT_EQ(a.schemas, b.schemas);
  EXPECT_EQ(a.properties, b.properties);
  EXPECT_EQ(a.example_inputs, b.example_inputs);
  EXPECT_EQ(a.example_outputs, b.example_outputs);
}

std::string message_of_saving(const SavedCapture& capture, const std::filesystem::path& folder) {
  const std::string message = message_of([&] { save(capture, folder); });
  const std::string prefix = "[save] " + folder.string() + ": ";
  EXPECT_THAT(message, StartsWith(prefix));
  return message.substr(std::min(prefix.size(), message.size()));
}

TEST(saved_capture, comes_back_as_it_was) {
  const TemporaryFolder folder;
  const SavedCapture capture = sample_capture();
  save(capture, folder / "model");
  EXPECT_EQ(folder.list(),
            (std::vector<std::string>{"model", "model/example.safetensors", "model/graph.txt",
                                      "model/weights.safetensors"}));
  expect_equal(load(folder / "model"), capture);
}

TEST(saved_capture, keeps_annotations) {
  const TemporaryFolder folder;
  save(sample_capture(), folder / "model");
  std::vector<std::string_view> scopes;
  const SavedCapture loaded = load(folder / "model");
  for (const NodePtr& node : loaded.graph.nodes())
    if (node->op() == Symbol("aten::linear")) scopes.push_back(node->annotation("scope"));
  EXPECT_THAT(scopes, ElementsAre("fc", ""));
}

TEST(saved_capture, may_be_empty) {
  const TemporaryFolder folder;
  save({}, folder / "model");
  expect_equal(load(folder / "model"), {});
}

TEST(saved_capture, keeps_strange_text) {
  const TemporaryFolder folder;
  SavedCapture capture;
  capture.producer = "line\nbreak \"quoted\" \\ \x01 ü";
  capture.schemas = {"", "graph(", "producer \"x\""};
  capture.properties = {{"", "\xff\xfe"}, {"graph(", std::string("\0", 1)}, {"key \"", " "}};
  save(capture, folder / "model");
  expect_equal(load(folder / "model"), capture);
}

TEST(saved_capture, stores_tied_weights_once) {
  const TemporaryFolder folder;
  const SavedCapture capture = sample_capture();
  ASSERT_EQ(capture.weights.at("fc.weight").data(), capture.weights.at("tied.weight").data());
  save(capture, folder / "model");
  const Safetensors stored = read_safetensors(folder / "model/weights.safetensors");
  EXPECT_TRUE(stored.tensors.contains("fc.weight"));
  EXPECT_FALSE(stored.tensors.contains("tied.weight"));

  const SavedCapture loaded = load(folder / "model");
  EXPECT_EQ(loaded.weights.at("fc.weight").data(), loaded.weights.at("tied.weight").data());
  EXPECT_EQ(loaded.weights.at("fc.weight").owner(), loaded.weights.at("tied.weight").owner());
}

// The file that a piece of memory is a mapping of, as the kernel says.
std::string mapped_file(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    const auto place = reinterpret_cast<uintptr_t>(address);
    const size_t path = line.find('/');
    if (begin <= place && place < end) return path == std::string::npos ? "" : line.substr(path);
  }
  return "";
}

TEST(saved_capture, is_mapped_not_copied) {
  const TemporaryFolder folder;
  save(sample_capture(), folder / "model");
  const SavedCapture loaded = load(folder / "model");
  const std::string weights =
      std::filesystem::canonical(folder / "model/weights.safetensors").string();
  EXPECT_EQ(mapped_file(loaded.weights.at("fc.weight").data()), weights);
  EXPECT_EQ(mapped_file(loaded.weights.at("fc.bias").data()), weights);
  EXPECT_EQ(mapped_file(loaded.example_inputs.at(0).data()),
            std::filesystem::canonical(folder / "model/example.safetensors").string());
  EXPECT_EQ(loaded.weights.at("strided").type().strides, (std::vector<int64_t>{1, 4}));
}

TEST(saved_capture, large_constants_lie_beside_the_weights) {
  const TemporaryFolder folder;
  const std::vector<float> values(1000, 0.25F);
  LazyTensor large = constant(floats({1000}, values), "table");
  LazyTensor small = constant(floats({2}, {1, 2}));
  const SavedCapture capture{
      .graph = Graph({.outputs = {large, small, constant(floats({1000}, values), "table")}})};
  save(capture, folder / "model");
  const Safetensors stored = read_safetensors(folder / "model/weights.safetensors");
  EXPECT_EQ(stored.tensors.size(), 2U);
  EXPECT_EQ(stored.tensors.at("table"), floats({1000}, values));
  EXPECT_LT(read_file(folder / "model/graph.txt").size(), 1000U);
  expect_equal(load(folder / "model"), capture);
}

TEST(saved_capture, names_of_constants_avoid_those_of_weights) {
  const TemporaryFolder folder;
  const Array weight = floats({2}, {1, 2});
  const LazyTensor table = input("table", weight.type(), InputKind::parameter);
  const LazyTensor large = constant(floats({100}, std::vector<float>(100, 3)), "table");
  const SavedCapture capture{.graph = Graph({.inputs = {table}, .outputs = {table, large}}),
                             .weights = {{"table", weight}}};
  save(capture, folder / "model");
  expect_equal(load(folder / "model"), capture);
}

TEST(saved_capture, stores_an_expanded_array_as_what_it_repeats) {
  const TemporaryFolder folder;
  Type type = tensor_type(DType::float32, {1000000, 2});
  type.strides = {0, 1};
  const Array pair = floats({2}, {1, 2});
  const LazyTensor table = input("table", type, InputKind::buffer);
  const SavedCapture capture{.graph = Graph({.inputs = {table}, .outputs = {table}}),
                             .weights = {{"table", Array(type, pair.owner(), pair.data())}}};
  save(capture, folder / "model");
  EXPECT_LT(std::filesystem::file_size(folder / "model/weights.safetensors"), 1000U);
  expect_equal(load(folder / "model"), capture);
}

TEST(saved_capture, keeps_lazy_conjugation) {
  const TemporaryFolder folder;
  const Array plain = counting_bytes(DType::complex64, {3});
  Type type = plain.type();
  type.conj = true;
  const LazyTensor weight = input("w", type, InputKind::parameter);
  const SavedCapture capture{.graph = Graph({.inputs = {weight}, .outputs = {weight}}),
                             .weights = {{"w", Array(type, plain.owner(), plain.data())}}};
  save(capture, folder / "model");
  expect_equal(load(folder / "model"), capture);
}

TEST(saved_capture, of_a_million_nodes_is_saved_and_loaded) {
  const TemporaryFolder folder;
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  const SavedCapture capture{.graph = chain_graph(1000000)};
  auto start = Clock::now();
  save(capture, folder / "model");
  std::cout << "saved in " << seconds(start) << " s\n";
  start = Clock::now();
  const SavedCapture loaded = load(folder / "model");
  std::cout << "loaded in " << seconds(start) << " s\n";
  EXPECT_EQ(loaded.graph.size(), 1000001U);
  EXPECT_EQ(loaded.graph, capture.graph);
}

TEST(saved_capture, refuses_weights_that_do_not_fit_the_graph) {
  const TemporaryFolder folder;
  SavedCapture capture = sample_capture();
  const Array bias = capture.weights.at("fc.bias");
  capture.weights.erase("fc.bias");
  EXPECT_EQ(message_of_saving(capture, folder / "m"), "parameter 'fc.bias' has no value");
  capture.weights["fc.bias"] = {};
  EXPECT_EQ(message_of_saving(capture, folder / "m"), "parameter 'fc.bias' has no value");
  capture.weights["fc.bias"] = floats({3}, {1, 2, 3});
  EXPECT_EQ(message_of_saving(capture, folder / "m"),
            "parameter 'fc.bias': the graph expects float32[4], its value is float32[3]");
  capture.weights["fc.bias"] = bias;
  capture.weights["x"] = bias;
  EXPECT_EQ(message_of_saving(capture, folder / "m"),
            "weight 'x' is no parameter or buffer of the graph");
  EXPECT_TRUE(folder.list().empty());
}

TEST(saved_capture, refuses_objects_of_the_process_by_naming_the_node) {
  const TemporaryFolder folder;
  const LazyTensor x = input("x", tensor_type(DType::float32, {2}));
  const Opaque object{"PackedWeights", std::make_shared<int>(1)};
  const auto node = [&](const LazyTensor& operand, const Attribute& value) {
    return std::move(NodeSpec("user::packed")
                         .tensor(operand)
                         .attribute("weights", value)
                         .output(x.type()))
        .make();
  };
  const std::string expected =
      "attribute 'weights' holds an object that only this process knows and that cannot be saved: "
      "%packed";
  const auto message = [&](const Attribute& value) {
    return message_of_saving({.graph = Graph({.inputs = {x}, .outputs = {node(x, value)}})},
                             folder / "m");
  };
  EXPECT_THAT(message(object), StartsWith(expected));
  EXPECT_THAT(message(List{AttributeKind::none, {Attribute(1), Attribute(object)}}),
              StartsWith(expected));
  const LazyTensor block = input("0", x.type(), InputKind::block);
  EXPECT_THAT(message(std::make_shared<const Graph>(
                  Graph::Parts{.inputs = {block}, .outputs = {node(block, object)}})),
              StartsWith(expected));
  EXPECT_TRUE(folder.list().empty());
}

TEST(saved_capture, refuses_undefined_examples) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of_saving({.example_inputs = {Array()}}, folder / "m"),
            "example input 0 has no value");
  EXPECT_EQ(message_of_saving({.example_outputs = {floats({1}, {1}), Array()}}, folder / "m"),
            "example output 1 has no value");
  EXPECT_TRUE(folder.list().empty());
}

// ---- loading what is damaged --------------------------------------------------------------------

class DamagedCapture : public ::testing::Test {
 protected:
  DamagedCapture() { save(sample_capture(), folder_ / "model"); }

  std::string message() const {
    return message_of([&] { load(folder_ / "model"); });
  }
  std::string path(const std::string& file) const { return (folder_ / "model" / file).string(); }

  // The message after `from` in graph.txt became `to`, without the path of the file.
  std::string message_with(const std::string& from, const std::string& to) const {
    const std::string original = read_file(path("graph.txt"));
    std::string text = original;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    write_file(path("graph.txt"), text.replace(at, from.size(), to));
    std::string result = message();
    write_file(path("graph.txt"), original);
    const size_t file = result.find(path("graph.txt"));
    return file == std::string::npos ? result : result.erase(file, path("graph.txt").size());
  }

  void replace_weights(const Safetensors& contents) const {
    write_safetensors(contents, path("weights.safetensors"));
  }

  const TemporaryFolder folder_;
};

TEST_F(DamagedCapture, without_a_file) {
  for (const std::string& file : kFiles) {
    const std::string bytes = read_file(path(file));
    std::filesystem::remove(path(file));
    EXPECT_EQ(message(), "[read] " + path(file) + ": No such file or directory");
    write_file(path(file), bytes);
  }
  std::filesystem::remove_all(folder_ / "model");
  EXPECT_EQ(message(), "[read] " + (folder_ / "model").string() + ": No such file or directory");
  write_file(folder_ / "model", "");
  EXPECT_EQ(message(), "[read] " + (folder_ / "model").string() + ": Not a directory");
}

TEST_F(DamagedCapture, with_another_version) {
  EXPECT_EQ(
      message_with("flashlight capture 1", "flashlight capture 4"),
      "[load] :1: expected format 1 to 3, those that this version reads, received 'flashlight "
      "capture 4'");
  EXPECT_EQ(
      message_with("flashlight capture 1", "flashlight capture 1.0"),
      "[load] :1: expected format 1 to 3, those that this version reads, received 'flashlight "
      "capture 1.0'");
  EXPECT_EQ(message_with("flashlight", "torchlight"),
            "[load] :1: expected 'flashlight capture 1', received 'torchlight capture 1'");
}

TEST_F(DamagedCapture, with_a_damaged_head) {
  EXPECT_EQ(message_with("producer", "produce"),
            "[load] :2: expected producer, schema, property, tied, example_input, example_output, "
            "cases or graph, received "
            "'produce'");
  EXPECT_EQ(message_with("producer \"", "producer "),
            "[load] :2: expected a string in quotes, received 'torch 2.13.0\"'");
  EXPECT_EQ(message_with("2.13.0\"", "2.13.0"),
            "[load] :2: expected a string in quotes, received '\"torch 2.13.0'");
  EXPECT_EQ(message_with("2.13.0\"", "2.13.0\" 1"),
            "[load] :2: expected the end of the line, received ' 1'");
  EXPECT_THAT(message_with("tied \"tied.weight\" ", "tied \"tied.weight\""),
              HasSubstr("expected a space and a second string, received '\"fc.weight\"'"));
  EXPECT_THAT(message_with("tied ", "tied \"tied.weight\" \"a\"\ntied "),
              HasSubstr("expected each name once, received 'tied.weight' again"));
  EXPECT_THAT(message_with("example_input float32[2, 3]", "example_input float33"),
              HasSubstr("[parse] :"));
  EXPECT_THAT(
      message_with("example_input float32[2, 3]", "example_input float32[1], %y: float32[1]"),
      HasSubstr("expected the type of an array"));
  EXPECT_THAT(message_with("graph(", "grape("), HasSubstr("received 'grape('"));
}

TEST_F(DamagedCapture, that_ends_early) {
  const std::string text = read_file(path("graph.txt"));
  const size_t graph = text.find("graph(");
  write_file(path("graph.txt"), text.substr(0, graph));
  EXPECT_THAT(message(), HasSubstr("expected a graph, received the end of the file"));
  write_file(path("graph.txt"), "");
  EXPECT_THAT(message(), HasSubstr(":1: expected 'flashlight capture 1', received ''"));
}

TEST_F(DamagedCapture, with_errors_in_the_graph_names_their_line) {
  const std::string text = read_file(path("graph.txt"));
  const auto lines = std::count(
      text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find("aten::cat([")), '\n');
  EXPECT_THAT(message_with("aten::cat([", "aten::cat{"),
              StartsWith("[parse] :" + std::to_string(lines + 1) + ":"));
}

TEST_F(DamagedCapture, with_weights_that_do_not_fit) {
  Safetensors stored = read_safetensors(path("weights.safetensors"));
  const Array bias = stored.tensors.at("fc.bias");
  const std::string place = "[load] " + path("weights.safetensors") + ": ";
  stored.tensors.erase("fc.bias");
  replace_weights(stored);
  EXPECT_EQ(message(), place + "there is no array 'fc.bias'");
  stored.tensors["fc.bias"] = floats({2, 2}, {1, 2, 3, 4});
  replace_weights(stored);
  EXPECT_EQ(message(), place + "array 'fc.bias': expected float32[4], received float32[2, 2]");
  stored.tensors["fc.bias"] = array_of<double>(DType::float64, {4}, {1, 2, 3, 4});
  replace_weights(stored);
  EXPECT_EQ(message(), place + "array 'fc.bias': expected float32[4], received float64[4]");
  stored.tensors["fc.bias"] = bias;
  stored.tensors.erase("table");
  replace_weights(stored);
  EXPECT_THAT(message(), HasSubstr("there is no array 'table'"));
}

TEST_F(DamagedCapture, with_strides_that_would_take_all_memory) {
  EXPECT_THAT(message_with("strides=[1, 4]", "strides=[1, 1000000000000]"), HasSubstr("gaps"));
}

TEST_F(DamagedCapture, with_weights_of_a_layout_that_is_not_stored) {
  EXPECT_THAT(message_with("%fc_bias: float32[4]", "%fc_bias: float32[4] layout=sparse"),
              HasSubstr("a value of type float32[4] layout=sparse cannot be stored"));
}

TEST_F(DamagedCapture, in_any_way_is_refused_or_read) {
  const TemporaryFolder memory(TemporaryFolder::Place::memory);
  std::filesystem::copy(folder_ / "model", memory / "model");
  const auto file = memory / "model/graph.txt";
  const std::string valid = read_file(file);
  const std::vector<std::string> words = {"graph(",
                                          "%x",
                                          "float32[2, 3]",
                                          "strides=[9223372036854775807]",
                                          "region(",
                                          "\"",
                                          "\n",
                                          "none",
                                          "= ",
                                          "-9223372036854775808",
                                          "[",
                                          ")",
                                          "}",
                                          "{",
                                          "1e999",
                                          "tied \"a\" \"b\"\n",
                                          "@ ",
                                          "array("};
  std::mt19937 random(3);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int refused = 0;
  constexpr int kCases = 5000;
  for (int i = 0; i < kCases; ++i) {
    std::string text = valid;
    for (size_t edits = 1 + below(3); edits-- > 0 && !text.empty();) {
      const size_t at = below(text.size());
      const size_t length = std::min(1 + below(12), text.size() - at);
      switch (below(6)) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.resize(at);
          break;
        case 2:
          text.erase(at, length);
          break;
        case 3:
          text.insert(at, words[below(words.size())]);
          break;
        case 4:
          text.replace(at, length, words[below(words.size())]);
          break;
        default:
          text.insert(at, text.substr(below(text.size()), 30));
      }
    }
    write_file(file, text);
    try {
      const SavedCapture loaded = load(memory / "model");
      for (const auto& [name, weight] : loaded.weights) weight.content_hash();
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, kCases / 2);
  EXPECT_LT(refused, kCases);
}

}  // namespace
}  // namespace composit::test
