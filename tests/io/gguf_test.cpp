// GGUF files: numbers are those of the package `gguf` (make_gguf.py), whatever is wrong with a file
// is refused.
#include "composit/io/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "composit/eval/evaluate.h"
#include "composit/io/safetensors.h"
#include "composit/ops/native.h"
#include "tests/io/temporary_folder.h"
#include "tests/user_error.h"

namespace composit::test {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kFolder = FLASHLIGHT_SOURCE_DIR "/tests/io/gguf";

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

TEST(gguf, numbers_are_those_of_the_reference) {
  const Gguf file = read_gguf(kFolder / "formats.gguf");
  const Safetensors expected = read_safetensors(kFolder / "formats.safetensors");
  ASSERT_EQ(file.tensors.size(), 18U);
  for (const auto& [name, tensor] : file.tensors) {
    SCOPED_TRACE(name);
    const LazyTensor numbers = numbers_of(name, tensor);
    EXPECT_EQ(numbers.type(), tensor.type);
    const Array& reference = expected.tensors.at(name);
    EXPECT_EQ(numbers.sizes(), reference.type().sizes);
    EXPECT_THAT(elements<double>(evaluate({numbers})[0]),
                testing::Pointwise(testing::Eq(), elements<double>(reference)));
  }
  EXPECT_EQ(file.tensors.at("q4_k").format, "q4_K");
  EXPECT_EQ(file.tensors.at("bf16").data.type().dtype, DType::bfloat16);
}

TEST(gguf, metadata_is_read) {
  const auto metadata = read_gguf(kFolder / "formats.gguf").metadata;
  const auto integer = [&](const char* key) { return metadata.at(key).as<int64_t>(); };
  EXPECT_EQ(metadata.at("test.text").as<std::string>(), "grüße");
  EXPECT_TRUE(metadata.at("test.yes").as<bool>());
  EXPECT_EQ(integer("test.uint8"), 200);
  EXPECT_EQ(integer("test.int8"), -100);
  EXPECT_EQ(integer("test.uint16"), 60000);
  EXPECT_EQ(integer("test.int16"), -30000);
  EXPECT_EQ(integer("test.uint32"), 4000000000);
  EXPECT_EQ(integer("test.int32"), -2000000000);
  EXPECT_EQ(integer("test.uint64"), int64_t{1} << 62);
  EXPECT_EQ(integer("test.int64"), -(int64_t{1} << 62));
  EXPECT_EQ(metadata.at("test.float32").as<double>(), 0.5);
  EXPECT_EQ(metadata.at("test.float64").as<double>(), 0.1);
  const auto& words = metadata.at("test.words").as<List>().items;
  ASSERT_EQ(words.size(), 3U);
  EXPECT_EQ(words[2].as<std::string>(), "ccc");
  EXPECT_EQ(metadata.at("test.numbers").as<List>().items.at(1).as<int64_t>(), -2);
}

// Adds up what is mapped, so that a sanitizer sees a place beyond the file.
uint64_t sum_of_bytes(const Gguf& file) {
  uint64_t sum = 0;
  for (const auto& [name, tensor] : file.tensors)
    for (int64_t i = 0; i < tensor.data.type().nbytes(); ++i)
      sum += static_cast<uint64_t>(tensor.data.data()[i]);
  return sum;
}

// The message about a file of these bytes; nothing where it is read.
std::optional<std::string> message_about(const std::string& bytes) {
  static const TemporaryFolder folder(TemporaryFolder::Place::memory);  // for thousands of them
  const auto path = folder / "bad.gguf";
  write_file(path, bytes);
  return user_error([&] { sum_of_bytes(read_gguf(path)); });
}

// The bytes before those of tensors: all that says what they are.
size_t header_size(const std::string& bytes) {
  const std::string last = "bf16";
  return bytes.rfind(last) + last.size() + 4 + 3 * 8 + 4 + 8;
}

TEST(gguf, every_byte_of_the_header_may_be_wrong) {
  const std::string bytes = content_of(kFolder / "formats.gguf");
  size_t refused = 0, read = 0;
  for (size_t at = 0; at < header_size(bytes); ++at)
    for (const int flipped : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      std::string wrong = bytes;
      wrong[at] = static_cast<char>(wrong[at] ^ flipped);
      ++(message_about(wrong) ? refused : read);
    }
  EXPECT_GT(refused, 5000U);  // others change a name or a number
  EXPECT_GT(read, 1000U);
}

TEST(gguf, a_file_may_end_anywhere) {
  const std::string bytes = content_of(kFolder / "formats.gguf");
  for (size_t size = 0; size < bytes.size(); size += size < header_size(bytes) ? 1 : 97) {
    const auto message = message_about(bytes.substr(0, size));
    ASSERT_TRUE(message) << size;
    EXPECT_THAT(*message, HasSubstr("bad.gguf"));
  }
}

template <class T>
std::string bytes_of(T number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}
std::string text_of(const std::string& text) { return bytes_of<uint64_t>(text.size()) + text; }

// A file of one tensor `w`.
struct OneTensor {
  std::vector<uint64_t> sizes = {32};
  uint32_t type = 0;
  uint64_t offset = 0;
  std::string entry = {};  // a further one
  std::string data = std::string(128, 'x');

  std::string bytes() const {
    std::string result = "GGUF" + bytes_of<uint32_t>(3) + bytes_of<uint64_t>(1) +
                         bytes_of<uint64_t>(entry.empty() ? 0 : 1) + entry + text_of("w") +
                         bytes_of<uint32_t>(static_cast<uint32_t>(sizes.size()));
    for (const uint64_t size : sizes) result += bytes_of(size);
    result += bytes_of(type) + bytes_of(offset);
    result.resize((result.size() + 31) / 32 * 32);
    return result + data;
  }
};

TEST(gguf, says_what_is_wrong) {
  EXPECT_EQ(message_about(OneTensor().bytes()), std::nullopt);
  const auto says = [](const OneTensor& file, const std::string& part) {
    EXPECT_THAT(message_about(file.bytes()).value_or("nothing"), HasSubstr(part));
  };
  says({.sizes = {33}}, "reach beyond the end of the file");
  says({.sizes = {32}, .offset = 32}, "reach beyond the end of the file");
  says({.sizes = {32}, .offset = ~uint64_t{31}}, "reach beyond the end of the file");
  says({.sizes = {8}, .offset = 4}, "begins at no multiple of 32");
  says({.sizes = {uint64_t{1} << 63, 2}}, "do not fit into the file");
  says({.sizes = {0}}, "its sizes are 0");
  says({.sizes = {1, 1, 1, 1, 1}}, "at most 4 axes");
  says({.sizes = {16}, .type = 2}, "16 columns are no blocks of 32, of which q4_0 is made");
  says({.sizes = {32}, .type = 99},
       "is of type 99 of ggml, which is not read; those that are: f32");
  says({.sizes = {256}, .type = 16}, "is of type 16 (iq2_xxs) of ggml");
  says({.entry = text_of("a") + bytes_of<uint32_t>(13)}, "entry 'a': there is no type 13");
  says({.entry = text_of("a") + bytes_of<uint32_t>(9) + bytes_of<uint32_t>(9)}, "lists of lists");
  says({.entry = text_of("a") + bytes_of<uint32_t>(7) + "\2"}, "expected 0 or 1 for a bool");
  says({.entry = text_of("a") + bytes_of<uint32_t>(8) + bytes_of(~uint64_t{0})},
       "do not fit into the file");
  says({.entry = text_of("general.alignment") + bytes_of<uint32_t>(4) + bytes_of<uint32_t>(48)},
       "a power of 2");
  EXPECT_THAT(message_about("GGML").value_or(""), HasSubstr("begins with no 'GGUF'"));
  std::string old = OneTensor().bytes();
  old[4] = 1;
  EXPECT_THAT(message_about(old).value_or(""), HasSubstr("expected 2 or 3, received 1"));
}

}  // namespace
}  // namespace composit::test
