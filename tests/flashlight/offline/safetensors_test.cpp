// The reader of weights that is shipped with written programs, and files that are not what they
// say.
#include "composit/io/safetensors.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <sstream>

#include "composit/ops/native.h"
#include "flashlight/package/shipped.h"
#include "flashlight/toolchain/process.h"
#include "tests/io/temporary_folder.h"

namespace flashlight::package {
namespace {

using composit::test::write_file;
using testing::HasSubstr;

// Reads the tensor "w" of each file.
constexpr const char* kReader = R"(
#include <cstdio>
#include <safetensors.hpp>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) try {
      const fl::Safetensors file(argv[i]);
      const float(*w)[3] = file.tensor<float>("w", {2, 3});
      const auto& same = file.array<float[2][3]>("w");
      std::printf("%g %g\n", w[1][2], same[1][2]);
    } catch (const std::exception& error) {
      std::printf("%s\n", error.what());
    }
}
)";

// The header is followed by spaces, so that data begins at a multiple of 8.
std::string file_of(std::string header, size_t data_bytes) {
  std::string text;
  if (data_bytes > 0) header.resize((header.size() + 7) / 8 * 8, ' ');
  for (size_t byte = 0; byte < 8; ++byte)
    text += static_cast<char>(header.size() >> (8 * byte) & 0xff);
  return text + header + std::string(data_bytes, '\0');
}

// A file whose only tensor is described so.
std::string with(const std::string& fields) { return file_of("{\"w\":{" + fields + "}}", 24); }

// The length of the header says that it ends where `rest` begins, which would go on with it.
std::string cut(const std::string& header, const std::string& rest) {
  return file_of(header, 0) + rest;
}

struct HostileFile {
  std::string content, message;
};

const std::vector<HostileFile>& hostile_files() {
  static const std::string kGood = R"("dtype":"F32","shape":[2,3],"data_offsets":[0,24])";
  static const std::string kType = R"("dtype":"F32","shape":[2,3])";
  static const std::vector<HostileFile> kFiles = {
      {with(kGood), "0 0"},
      {file_of("{ \"__metadata__\" : {\"a\\n\\\"\\u00e4\\ud83d\\ude00\":\"\"} ,\n\"\\u0077\": {" +
                   kGood + "} } ",
               24),
       "0 0"},
      {"", "no file, or an empty one"},
      {"1234567", "shorter than the length of its header"},
      {std::string(7, '\0') + "\x7f{}", "shorter than its header"},
      {std::string(8, '\xff') + "{}", "shorter than its header"},
      {with(kGood).substr(0, 40), "shorter than its header"},
      {with(kGood).substr(0, with(kGood).size() - 1),
       "needs 24 bytes, data_offsets are 0 to 24 of 23"},
      {file_of("", 0), "expected '{'"},
      {file_of("[]", 0), "expected '{'"},
      {file_of("{}", 0), "tensor 'w': is missing"},
      {file_of("{} x", 0), "more text behind its end"},
      {file_of("{\"w\":1}", 0), "expected '{'"},
      {file_of("{\"w\":{" + kGood + "},}", 24), "expected '\"'"},
      {file_of("{\"w\":{" + kGood + "},\"w\":{" + kGood + "}}", 24), "'w' stands twice"},
      {file_of("{\"__metadata__\":{},\"__metadata__\":{}}", 0), "'__metadata__' stands twice"},
      {file_of("{\"__metadata__\":{\"a\":1}}", 0), "expected '\"'"},
      {cut("{\"", "w\":{}}"), "a string without end"},
      {cut("{\"\\", "x"), "a string without end"},
      {cut("{\"\\u00", "41x"), "four hexadecimal digits"},
      {cut("{\"\\ud83d", "\\ude00\""), "half a character"},
      {cut("{\"w\":{\"shape\":[1", "2]"), "expected ']'"},
      {cut("{\"w\":{\"shape\":[1", "]"), "expected ']'"},
      {cut("{\"w\":{\"shape\":[", "1]"), "expected a number"},
      {file_of("{\"\\", 0), "a string without end"},
      {file_of("{\"\\u12", 0), "four hexadecimal digits"},
      {file_of("{\"\\udc00\"", 0), "half a character"},
      {file_of("{\"\\ud800x\"", 0), "half a character"},
      {file_of("{\"\\ud800\\u0041\"", 0), "half a character"},
      {file_of(std::string("{\"\0\"", 4), 0), "a control character"},
      {file_of("{\"w\"", 0), "expected ':'"},
      {file_of(std::string(100000, '['), 0), "expected '{'"},
      {with(kType), "'data_offsets' is missing"},
      {with(kGood + ",\"dtype\":\"F32\""), "'dtype' stands twice"},
      {with(kGood + ",\"more\":1"), "unknown key 'more'"},
      {with(kType + ",\"data_offsets\":[]"), "expected 2 data_offsets"},
      {with(kType + ",\"data_offsets\":[0]"), "expected 2 data_offsets"},
      {with(kType + ",\"data_offsets\":[0,24,24]"), "expected 2 data_offsets"},
      {with(kType + ",\"data_offsets\":[24,0]"), "data_offsets are 24 to 0 of 24"},
      {with(kType + ",\"data_offsets\":[16777216,16777240]"), "are 16777216 to 16777240 of 24"},
      {with(kType + ",\"data_offsets\":[18446744073709551592,18446744073709551615]"), "of 24"},
      {with(kType + ",\"data_offsets\":[18446744073709551615,23]"), "of 24"},
      {with(kType + ",\"data_offsets\":[18446744073709551616,24]"), "a number above 64 bits"},
      {with(kType + ",\"data_offsets\":[99999999999999999999,24]"), "a number above 64 bits"},
      {with(kType + ",\"data_offsets\":[-1,24]"), "expected a number without sign"},
      {with(kType + ",\"data_offsets\":[00,24]"), "a number that starts with 0"},
      {with(kType + ",\"data_offsets\":[0.0,24]"), "expected ']'"},
      {with(kType + ",\"data_offsets\":[0,23]"), "needs 24 bytes, data_offsets are 0 to 23"},
      {file_of("{\"w\":{" + kType + ",\"data_offsets\":[1,25]}}", 25), "are not aligned"},
      {with(R"("dtype":"F64","shape":[2,3],"data_offsets":[0,24])"),
       "expected F32 [2, 3], the file has F64 [2, 3]"},
      {with(R"("dtype":"F32","shape":[3,2],"data_offsets":[0,24])"), "the file has F32 [3, 2]"},
      {with(R"("dtype":"F32","shape":[6],"data_offsets":[0,24])"), "the file has F32 [6]"},
      {with(R"("dtype":"F32","shape":[],"data_offsets":[0,4])"), "the file has F32 []"},
      {with(R"("dtype":"F32","shape":[2,-3],"data_offsets":[0,24])"), "without sign"},
      {with(R"("dtype":7,"shape":[2,3],"data_offsets":[0,24])"), "expected '\"'"},
  };
  return kFiles;
}

class ShippedReader : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "safetensors.hpp", shipped_text(kReaderName));
    write_file(folder_ / kRuntimeName, shipped_text(kRuntimeName));
    write_file(folder_ / "reader.cpp", kReader);
    const toolchain::ProcessResult built =
        toolchain::run({{FLASHLIGHT_TEST_CXX, "-std=c++17", "-g", "-Wall", "-Wextra",
                         "-Wconversion", "-Werror", "-fsanitize=address,undefined",
                         "-fno-sanitize-recover=all", "-I.", "-o", "reader", "reader.cpp"},
                        folder_.path()});
    ASSERT_TRUE(built.succeeded()) << built.output;
  }

  // A line of answer per file.
  std::vector<std::string> read(std::vector<std::string> files) {
    files.insert(files.begin(), folder_ / "reader");
    const toolchain::ProcessResult result = toolchain::run({files});
    EXPECT_TRUE(result.succeeded()) << result.output;
    std::vector<std::string> lines;
    std::istringstream text(result.output);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

  composit::test::TemporaryFolder folder_;
};

TEST_F(ShippedReader, names_file_and_what_is_wrong) {
  std::vector<std::string> names;
  for (const HostileFile& file : hostile_files()) {
    names.push_back(folder_ / ("file " + std::to_string(names.size())));
    write_file(names.back(), file.content);
  }
  const std::vector<std::string> answers = read(names);
  ASSERT_EQ(answers.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_THAT(answers[i], HasSubstr(hostile_files()[i].message)) << hostile_files()[i].content;
    const bool refused = hostile_files()[i].message != "0 0";
    EXPECT_THAT(answers[i], testing::StartsWith(refused ? names[i] + ": " : "0 0"));
  }
}

TEST_F(ShippedReader, reads_what_composit_writes) {
  const auto type = composit::tensor_type(composit::DType::float32, {2, 3});
  composit::write_safetensors(
      {.tensors = {{"w", composit::array_of(type, std::vector<double>{1, 2, 3, 4, 5, 6})}},
       .metadata = {{"key \t \x01", "ä \"value\""}}},
      folder_ / "written");
  EXPECT_EQ(read({folder_ / "written"}), std::vector<std::string>{"6 6"});
}

TEST_F(ShippedReader, refuses_what_is_no_file) {
  ASSERT_EQ(::mkfifo((folder_ / "a pipe").c_str(), 0600), 0);
  EXPECT_THAT(read({folder_ / "missing", folder_.path(), folder_ / "a pipe", "/dev/zero"}),
              testing::ElementsAre(HasSubstr("missing: No such file"), HasSubstr("no file"),
                                   HasSubstr("a pipe: no file"), HasSubstr("no file")));
}

}  // namespace
}  // namespace flashlight::package
