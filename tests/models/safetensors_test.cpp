// Loading weights: what fits is loaded; every kind of damaged or unfitting file has its own error.

#include "examples/models/safetensors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace models {
namespace {

/// A file of these bytes, removed at the end of the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes)
      : path_(::testing::TempDir() + "safetensors_test." +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string little_endian(uint64_t number) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(number >> 8 * i & 0xff));
  return bytes;
}

std::string file_bytes(const std::string& header, const std::string& data) {
  return little_endian(header.size()) + header + data;
}

std::string float_bytes(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::string error_of_reading(const std::string& bytes) {
  const TemporaryFile file(bytes);
  try {
    read_safetensors(file.path());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

std::string error_of_header(const std::string& header, const std::string& data = "12345678") {
  return error_of_reading(file_bytes(header, data));
}

std::string error_of_loading(torch::nn::Module& module, const std::string& header,
                             const std::string& data, const RenameTensor& rename = nullptr) {
  const TemporaryFile file(file_bytes(header, data));
  try {
    load_safetensors(module, file.path(), rename);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

void expect_mentions(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "got: " << text << "\nexpected: " << part;
}

const char* const kLinearHeader = R"({"weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                                  R"("bias":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";

TEST(SafetensorsTest, ReadsTensorsAndSkipsMetadata) {
  const TemporaryFile file(file_bytes(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("empty":{"dtype":"I64","shape":[0,3],"data_offsets":[8,8]}})",
      float_bytes({1.5f, -2.0f})));
  const auto tensors = read_safetensors(file.path());
  ASSERT_EQ(tensors.size(), 2);
  EXPECT_TRUE(tensors.at("a").equal(torch::tensor({1.5f, -2.0f})));
  EXPECT_EQ(tensors.at("empty").sizes(), torch::IntArrayRef({0, 3}));
}

TEST(SafetensorsTest, LoadsByName) {
  torch::nn::Linear linear(2, 1);
  EXPECT_EQ(error_of_loading(*linear, kLinearHeader, float_bytes({1, 2, 3})), "no error");
  EXPECT_TRUE(linear->weight.equal(torch::tensor({{1.0f, 2.0f}})));
  EXPECT_TRUE(linear->bias.equal(torch::tensor({3.0f})));
}

TEST(SafetensorsTest, NamesMissingAndUnexpectedTensors) {
  torch::nn::Linear linear(2, 1);
  const torch::Tensor before = linear->weight.clone();
  const std::string error =
      error_of_loading(*linear,
                       R"({"weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                       R"("extra":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                       float_bytes({1, 2, 3}));
  expect_mentions(error, "missing: bias; unexpected: extra");
  EXPECT_TRUE(linear->weight.equal(before)) << "a failed load must not change the module";
}

TEST(SafetensorsTest, NamesShapeAndTypeThatDiffer) {
  torch::nn::Linear wide(1, 2);
  expect_mentions(error_of_loading(*wide, kLinearHeader, float_bytes({1, 2, 3})),
                  "tensor bias is Float[1], but the module has Float[2]");
  torch::nn::Linear doubles(2, 1);
  doubles->to(torch::kFloat64);
  expect_mentions(error_of_loading(*doubles, kLinearHeader, float_bytes({1, 2, 3})),
                  "tensor bias is Float[1], but the module has Double[1]");
}

TEST(SafetensorsTest, RenamesAndLeavesOut) {
  torch::nn::Linear linear(torch::nn::LinearOptions(2, 1).bias(false));
  const auto rename = [](const std::string& name) { return name == "bias" ? "" : name; };
  EXPECT_EQ(error_of_loading(*linear, kLinearHeader, float_bytes({1, 2, 3}), rename), "no error");
  EXPECT_TRUE(linear->weight.equal(torch::tensor({{1.0f, 2.0f}})));
  const auto clash = [](const std::string&) { return "weight"; };
  expect_mentions(error_of_loading(*linear, kLinearHeader, float_bytes({1, 2, 3}), clash),
                  "two tensors are renamed to weight");
}

TEST(SafetensorsTest, EveryTruncationIsAnError) {
  const std::string whole = file_bytes(kLinearHeader, float_bytes({1, 2, 3}));
  EXPECT_EQ(error_of_reading(whole), "no error");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(error_of_reading(whole.substr(0, size)), "no error") << size << " bytes";
  }
}

// Any other exception, or a sanitizer's report, would fail the test.
TEST(SafetensorsTest, EveryChangedByteIsReadOrRefused) {
  const std::string whole = file_bytes(kLinearHeader, float_bytes({1, 2, 3}));
  int refused = 0;
  for (size_t position = 0; position < whole.size(); ++position) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole;
      changed[position] = static_cast<char>(changed[position] ^ 1 << bit);
      if (error_of_reading(changed) != "no error") ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(SafetensorsTest, RefusesImpossibleHeaderSizes) {
  expect_mentions(error_of_reading(little_endian(UINT64_MAX) + "{}"), "truncated");
  expect_mentions(error_of_reading(little_endian(3) + "{}"), "truncated");
  expect_mentions(error_of_reading("short"), "truncated");
}

TEST(SafetensorsTest, RefusesDamagedHeaders) {
  expect_mentions(error_of_header("{"), "parse error");
  expect_mentions(error_of_header("[]"), "not a JSON object");
  expect_mentions(error_of_header(R"({"a":{"dtype":"F32"}})"), "tensor a");
  expect_mentions(error_of_header(R"({"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})"),
                  "unknown dtype F99");
  expect_mentions(error_of_header(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})"),
                  "expected a non-negative integer, received -2");
  expect_mentions(error_of_header(R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})"),
                  "expected a non-negative integer, received 2.0");
}

TEST(SafetensorsTest, RefusesOffsetsThatDoNotFit) {
  expect_mentions(error_of_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})"),
                  "lie outside the data of 8 bytes");
  expect_mentions(error_of_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})"),
                  "lie outside the data of 8 bytes");
  expect_mentions(error_of_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})"),
                  "data_offsets and shape disagree");
  expect_mentions(error_of_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})"),
                  "do not cover the data");
}

TEST(SafetensorsTest, RefusesShapesThatOverflow) {
  const auto error_of_shape = [](const std::string& shape) {
    return error_of_header(R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,0]}})",
                           "");
  };
  EXPECT_EQ(error_of_shape("[0,1000]"), "no error");
  expect_mentions(error_of_shape("[4611686018427387904,4]"), "the shape is too large");
  expect_mentions(error_of_shape("[0,4611686018427387904,4]"), "the shape is too large");
  expect_mentions(error_of_shape("[0,18446744073709551615]"), "the shape is too large");
}

TEST(SafetensorsTest, RefusesOverlapsAndHoles) {
  expect_mentions(error_of_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                  R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
                  "overlap or leave a hole");
  expect_mentions(error_of_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
                  "overlap or leave a hole");
}

TEST(SafetensorsTest, NamesAFileThatCannotBeOpened) {
  try {
    read_safetensors("/no/such/file.safetensors");
    FAIL() << "expected an error";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "/no/such/file.safetensors: cannot be opened");
  }
}

}  // namespace
}  // namespace models
