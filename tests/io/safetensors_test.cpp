// Files that are written are read back, by us and by Python; damaged ones are refused with file and
// place.

#include "composit/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "tests/io/arrays.h"
#include "tests/io/temporary_folder.h"
#include "tests/resident_memory.h"

namespace composit::test {
namespace {

using ::testing::HasSubstr;

Safetensors written_and_read(const Safetensors& contents) {
  const TemporaryFolder folder;
  write_safetensors(contents, folder / "a.safetensors");
  return read_safetensors(folder / "a.safetensors");  // the mapping outlives the file
}

std::string little_endian(uint64_t number) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &number, 8);
  return bytes;
}

std::string file_of(const std::string& header, size_t data_size) {
  return little_endian(header.size()) + header + std::string(data_size, 'x');
}

// The message about a file of these bytes, without the path, which must stand in it.
std::string message_about(const std::string& bytes) {
  const TemporaryFolder folder;
  const auto path = folder / "bad.safetensors";
  write_file(path, bytes);
  const std::string message = message_of([&] { read_safetensors(path); });
  const std::string prefix = "[read] " + path.string() + ": ";
  EXPECT_TRUE(message.starts_with(prefix)) << message;
  return message.substr(std::min(prefix.size(), message.size()));
}

std::string message_about_header(const std::string& header, size_t data_size = 8) {
  return message_about(file_of(header, data_size));
}

TEST(safetensors, keeps_every_dtype) {
  Safetensors contents;
  for (int8_t i = 0; i < static_cast<int8_t>(DType::count_); ++i) {
    const auto dtype = static_cast<DType>(i);
    contents.tensors.emplace(std::string(name(dtype)), counting_bytes(dtype, {3, 5}));
  }
  const Safetensors read = written_and_read(contents);
  EXPECT_EQ(read.tensors, contents.tensors);
  EXPECT_TRUE(read.metadata.empty());
}

TEST(safetensors, keeps_scalars_empty_arrays_names_and_metadata) {
  const Safetensors contents{.tensors = {{"scalar", floats({}, {1.5F})},
                                         {"empty", floats({2, 0, 3}, {})},
                                         {"", floats({1}, {2})},
                                         {"schön \"quoted\"\n", floats({2}, {-0.0F, 3})}},
                             .metadata = {{"format", "pt"}, {"\"", "\n\t\\"}}};
  const Safetensors read = written_and_read(contents);
  EXPECT_EQ(read.tensors, contents.tensors);
  EXPECT_EQ(read.metadata, contents.metadata);
}

TEST(safetensors, keeps_nothing_at_all) { EXPECT_TRUE(written_and_read({}).tensors.empty()); }

TEST(safetensors, stores_row_major_whatever_the_strides) {
  const Array rows = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Array columns = stored_transposed(rows);
  ASSERT_EQ(columns.type().strides, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(written_and_read({.tensors = {{"a", columns}}}).tensors.at("a"), rows);
}

TEST(safetensors, aligns_large_arrays_to_64_bytes_and_small_ones_to_their_size) {
  Safetensors contents;
  for (int size : {0, 1, 2, 3, 8, 12, 16, 17, 40, 63, 64, 65, 100, 128, 1000, 4096})
    for (const char* copy : {"a", "b", "c"})
      contents.tensors.emplace(copy + std::to_string(size), counting_bytes(DType::uint8, {size}));
  const Safetensors read = written_and_read(contents);
  EXPECT_EQ(read.tensors, contents.tensors);
  for (const auto& [name, array] : read.tensors) {
    const auto size = static_cast<uintptr_t>(array.type().nbytes());
    const uintptr_t alignment = size >= 64 || size == 0 ? 64 : size & ~(size - 1);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data()) % alignment, 0U) << name;
  }
}

TEST(safetensors, reads_without_copying) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  write_safetensors({.tensors = {{"a", floats({2}, {1, 2})}, {"b", floats({2}, {3, 4})}}}, path);
  const Safetensors read = read_safetensors(path);
  const Array& a = read.tensors.at("a");
  const Array& b = read.tensors.at("b");
  EXPECT_EQ(b.data() - a.data(), 8);  // side by side in the mapping

  // A write to the memory stays in this process.
  const_cast<std::byte*>(a.data())[0] = std::byte{1};
  EXPECT_EQ(read_safetensors(path).tensors.at("a"), floats({2}, {1, 2}));
}

TEST(safetensors, arrays_that_nobody_holds_leave_memory) {
  const TemporaryFolder folder;
  constexpr int64_t kSize = (int64_t{64} << 20) + 1000;  // no whole pages
  const Array first = counting_bytes(DType::uint8, {kSize}), second = floats({3}, {1, 2, 3}),
              third = counting_bytes(DType::uint8, {kSize / 2});
  write_safetensors({.tensors = {{"first", first}, {"second", second}, {"third", third}}},
                    folder / "a.safetensors");
  std::map<std::string, Array> read = read_safetensors(folder / "a.safetensors").tensors;
  EXPECT_EQ(read.at("first"), first);
  EXPECT_EQ(read.at("third"), third);
  Array copy = read.at("first");
  const int64_t whole = resident_bytes();
  read.erase("first");
  EXPECT_GT(resident_bytes(), whole - kSize / 10) << "somebody holds it";
  copy = Array();
  EXPECT_LT(resident_bytes(), whole - kSize * 9 / 10);
  EXPECT_EQ(read.at("second"), second);
  EXPECT_EQ(read.at("third"), third);
}

TEST(safetensors, can_replace_the_file_that_it_was_read_from) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  const std::vector<float> values(10000, 1.5F);
  write_safetensors({.tensors = {{"a", floats({10000}, values)}}}, path);
  Safetensors read = read_safetensors(path);
  read.tensors.emplace("b", read.tensors.at("a"));
  write_safetensors(read, path);
  EXPECT_EQ(read.tensors.at("a"), floats({10000}, values));
  EXPECT_EQ(read_safetensors(path).tensors, read.tensors);
  EXPECT_EQ(folder.list(), std::vector<std::string>{"a.safetensors"});
}

TEST(safetensors, refuses_to_write_what_the_format_cannot_say) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  const Array one = floats({1}, {1});
  Type conjugate = tensor_type(DType::complex64, {1});
  conjugate.conj = true;
  const auto message = [&](const Safetensors& contents) {
    return message_of([&] { write_safetensors(contents, path); });
  };
  EXPECT_THAT(message({.tensors = {{"__metadata__", one}}}),
              HasSubstr("'__metadata__' is reserved"));
  EXPECT_THAT(message({.tensors = {{"__padding__.7", one}}}),
              HasSubstr("'__padding__.7' is reserved"));
  EXPECT_THAT(message({.tensors = {{"x", {}}}}), HasSubstr("'x' is undefined"));
  EXPECT_THAT(message({.tensors = {{"x", Array(conjugate, nullptr, one.data())}}}),
              HasSubstr("'x' is lazily"));
  EXPECT_THAT(message({.tensors = {{"\xff", one}}}), HasSubstr("invalid UTF-8"));
  EXPECT_THAT(message({.tensors = {}, .metadata = {{"composit.dtype:x", "qint8"}}}),
              HasSubstr("is reserved"));
  EXPECT_TRUE(folder.list().empty());
}

TEST(safetensors, refuses_damaged_files) {
  EXPECT_EQ(message_about(""), "a safetensors file has at least 8 bytes, this one 0");
  EXPECT_EQ(message_about("1234567"), "a safetensors file has at least 8 bytes, this one 7");
  EXPECT_EQ(message_about(little_endian(3) + "{}"),
            "header: its length is given as 3 bytes, there can be 2 at most");
  EXPECT_EQ(message_about(little_endian(~0ULL) + "{}"),
            "header: its length is given as 18446744073709551615 bytes, there can be 2 at most");
  EXPECT_THAT(message_about_header("{"), HasSubstr("header: [json.exception.parse_error"));
  EXPECT_THAT(message_about_header("{\"\xff\": 1}"),
              HasSubstr("header: [json.exception.parse_error"));
  EXPECT_EQ(message_about_header("[]"), "header: expected a JSON object, received array");
  EXPECT_EQ(message_about_header(R"({"a": {"b": [[[1]]]}})"), "header: nested more than 3 deep");
  EXPECT_EQ(message_about_header(std::string(1000000, '[')), "header: nested more than 3 deep");
  EXPECT_EQ(message_about_header(R"({"a": 1, "a": 1})"), "header: key 'a' stands twice");
  EXPECT_EQ(message_about_header(R"({"a": {"dtype": 1, "dtype": 2}})"),
            "header: key 'dtype' stands twice");
  EXPECT_EQ(message_about_header("{}"), "the last tensor ends at 0, the data at 8");
}

TEST(safetensors, refuses_damaged_metadata) {
  EXPECT_EQ(message_about_header(R"({"__metadata__": 1})"),
            "__metadata__: expected an object, received number");
  EXPECT_EQ(message_about_header(R"({"__metadata__": {"a": 1}})"),
            "__metadata__: 'a': expected a string, received number");
  EXPECT_EQ(message_about_header(R"({"__metadata__": {"composit.dtype:a": "qint8"}})", 0),
            "__metadata__: 'composit.dtype:a': there is no such tensor");
  const auto with_dtype = [](const std::string& dtype, const std::string& entry) {
    return message_about_header(R"({"__metadata__": {"composit.dtype:a": ")" + dtype +
                                R"("}, "a": )" + entry + "}");
  };
  const std::string bytes = R"({"dtype": "U8", "shape": [8], "data_offsets": [0, 8]})";
  EXPECT_EQ(with_dtype("float32", bytes),
            "__metadata__: tensor 'a': 'float32' is no dtype that is stored as bytes");
  EXPECT_EQ(with_dtype("nonsense", bytes),
            "__metadata__: tensor 'a': 'nonsense' is no dtype that is stored as bytes");
  EXPECT_EQ(with_dtype("qint32", bytes),
            "tensor 'a': shape: qint32 needs U8 with a last axis of 4");
}

TEST(safetensors, refuses_damaged_entries) {
  const auto about = [](const std::string& entry) {
    return message_about_header(R"({"a": )" + entry + "}");
  };
  EXPECT_EQ(about("1"), "tensor 'a': expected an object, received number");
  EXPECT_EQ(about("{}"), "tensor 'a': 'dtype' is missing");
  EXPECT_EQ(about(R"({"x": 1})"), "tensor 'a': unknown key 'x'");
  EXPECT_EQ(about(R"({"dtype": "F31"})"), "tensor 'a': unknown dtype \"F31\"");
  EXPECT_EQ(about(R"({"dtype": 7})"), "tensor 'a': unknown dtype 7");
  EXPECT_EQ(about(R"({"dtype": "F32"})"), "tensor 'a': 'shape' is missing");
  EXPECT_EQ(about(R"({"dtype": "F32", "shape": 2})"),
            "tensor 'a': shape: expected a list, received 2");
  const auto with_shape = [&](const std::string& shape) {
    return about(R"({"dtype": "F32", "shape": )" + shape + R"(, "data_offsets": [0, 8]})");
  };
  const std::string negative = "tensor 'a': shape: expected non-negative integers, received ";
  EXPECT_EQ(with_shape("[-1]"), negative + "-1");
  EXPECT_EQ(with_shape("[2.0]"), negative + "2.0");
  EXPECT_EQ(with_shape("[\"2\"]"), negative + "\"2\"");
  EXPECT_EQ(with_shape("[36893488147419103232]"), negative + "3.6893488147419103e+19");
  const std::string overflow = "tensor 'a': shape: its size in bytes exceeds 64 bits";
  EXPECT_EQ(with_shape("[4294967296, 4294967296]"), overflow);
  EXPECT_EQ(with_shape("[0, 4294967296, 4294967296]"), overflow);
  EXPECT_EQ(with_shape("[18446744073709551615]"), overflow);
  EXPECT_EQ(with_shape("[3]"),
            "tensor 'a': data_offsets: dtype and shape need 12 bytes, 0 to 8 are 8");
}

TEST(safetensors, refuses_offsets_that_do_not_cover_the_data) {
  const auto entry = [](const std::string& shape, const std::string& offsets) {
    return R"({"dtype": "F32", "shape": )" + shape + R"(, "data_offsets": )" + offsets + "}";
  };
  const auto one = [&](const std::string& shape, const std::string& offsets) {
    return message_about_header(R"({"a": )" + entry(shape, offsets) + "}");
  };
  EXPECT_EQ(one("[2]", "[0]"), "tensor 'a': data_offsets: expected 2 numbers, received 1");
  EXPECT_EQ(one("[2]", "[0, 8, 8]"), "tensor 'a': data_offsets: expected 2 numbers, received 3");
  EXPECT_EQ(one("[2]", "[8, 0]"),
            "tensor 'a': data_offsets: 8 to 0 is no range within the 8 bytes of data");
  EXPECT_EQ(one("[3]", "[0, 12]"),
            "tensor 'a': data_offsets: 0 to 12 is no range within the 8 bytes of data");
  EXPECT_EQ(one("[2]", "[18446744073709551608, 18446744073709551615]"),
            "tensor 'a': data_offsets: 18446744073709551608 to 18446744073709551615 is no range "
            "within the 8 bytes "
            "of data");
  EXPECT_EQ(one("[1]", "[0, 4]"), "the last tensor ends at 4, the data at 8");
  EXPECT_EQ(one("[1]", "[4, 8]"), "tensor 'a': data_offsets: bytes 0 to 4 belong to no tensor");

  const auto two = [&](const std::string& a, const std::string& b) {
    return message_about_header(R"({"a": )" + entry("[1]", a) + R"(, "b": )" + entry("[1]", b) +
                                "}");
  };
  EXPECT_EQ(two("[0, 4]", "[2, 6]"),
            "tensor 'b': data_offsets: overlaps the tensor before it, which ends at 4");
  EXPECT_EQ(two("[0, 4]", "[0, 4]"),
            "tensor 'b': data_offsets: overlaps the tensor before it, which ends at 4");
}

TEST(safetensors, refuses_elements_that_are_not_aligned) {
  const std::string header = R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})";
  const auto message = [&](size_t spaces) {
    return message_about_header(header + std::string(spaces, ' '));
  };
  const std::string expected = "tensor 'a': data_offsets: its float32 elements are not aligned";
  const size_t aligned = (8 - (header.size() + 8) % 8) % 8;
  EXPECT_EQ(message(aligned + 1), expected);
  EXPECT_EQ(message(aligned + 2), expected);
}

TEST(safetensors, refuses_what_is_no_file) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of([&] { read_safetensors(folder / "missing"); }),
            "[read] " + (folder / "missing").string() + ": No such file or directory");
  EXPECT_EQ(message_of([&] { read_safetensors(folder.path()); }),
            "[read] " + folder.path().string() + ": not a regular file");
  EXPECT_EQ(message_of([&] { write_safetensors({}, folder / "missing/a"); }),
            "[write] " + (folder / "missing/a").string() + ": No such file or directory");
}

// Sums all elements, which reads every byte that the file claims to have.
uint64_t touch(const Safetensors& contents) {
  uint64_t sum = 0;
  for (const auto& [name, array] : contents.tensors)
    for (int64_t i = 0; i < array.type().nbytes(); ++i)
      sum += static_cast<uint64_t>(array.data()[i]);
  return sum;
}

TEST(safetensors, survives_arbitrary_damage) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  write_safetensors({.tensors = {{"a", floats({2, 3}, {1, 2, 3, 4, 5, 6})},
                                 {"b", counting_bytes(DType::int64, {5})},
                                 {"c", counting_bytes(DType::qint8, {7})},
                                 {"d", counting_bytes(DType::bool_, {100})}},
                     .metadata = {{"format", "pt"}}},
                    path);
  const std::string valid = read_file(path);
  const std::vector<std::string> words = {"0",
                                          "-1",
                                          "18446744073709551615",
                                          "9223372036854775808",
                                          "1e9",
                                          "{",
                                          "}",
                                          "[]",
                                          ",",
                                          "\"",
                                          "null",
                                          "4",
                                          "64"};
  const MemoryFile file;
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int refused = 0;
  constexpr int kCases = 5000;
  for (int i = 0; i < kCases; ++i) {
    std::string bytes = valid;
    for (size_t edits = 1 + below(3); edits-- > 0;) {
      const size_t at = below(std::min<size_t>(bytes.size(), 600));
      switch (below(6)) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.resize(below(bytes.size()) + 1);
          break;
        case 2:
          bytes.erase(at, 1 + below(8));
          break;
        case 3:
          bytes.insert(at, words[below(words.size())]);
          break;
        case 4:
          bytes.replace(at, std::min<size_t>(1 + below(3), bytes.size() - at),
                        words[below(words.size())]);
          break;
        default:
          bytes[at] = static_cast<char>('0' + below(10));
      }
      // Most damage would otherwise end at the length of the header.
      if (bytes.size() > 8 && below(2) == 0) {
        const size_t end = bytes.find_last_of('}');
        if (end != std::string::npos && end > 8) bytes.replace(0, 8, little_endian(end + 1 - 8));
      }
    }
    file.write(bytes);
    try {
      touch(read_safetensors(file.path()));
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, kCases / 2);
  EXPECT_LT(refused, kCases);
}

TEST(safetensors, writes_without_a_second_copy_in_memory) {
  const TemporaryFolder folder;
  constexpr int64_t kSize = int64_t{256} << 20;
  const Array large = counting_bytes(DType::uint8, {kSize});
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const int64_t peak_before = usage.ru_maxrss;
  write_safetensors({.tensors = {{"large", large}}}, folder / "a.safetensors");
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT((usage.ru_maxrss - peak_before) * 1024, kSize / 8);
  EXPECT_EQ(read_safetensors(folder / "a.safetensors").tensors.at("large"), large);
}

}  // namespace
}  // namespace composit::test
