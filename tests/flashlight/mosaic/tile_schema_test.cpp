// Tilings beside plain index arithmetic: every small extent, orders, random schemas.
#include "flashlight/mosaic/tile_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "composit/ir/error.h"
#include "flashlight/mosaic/retilize.h"
#include "flashlight/mosaic/tile_drawing.h"

namespace {

using composit::Array;
using composit::DType;
using composit::UserError;
using flashlight::mosaic::parse_tile_schema;
using flashlight::mosaic::retilize;
using flashlight::mosaic::retilize_steps;
using flashlight::mosaic::TileSchema;
using flashlight::mosaic::Tiling;
using flashlight::mosaic::tilize;
using flashlight::mosaic::untilize;
using Sizes = std::vector<int64_t>;

// Elements 1, 2, 3, ... whose bytes differ.
Array counting(const Sizes& sizes, DType dtype = DType::int32) {
  const composit::Type type = composit::tensor_type(dtype, {sizes.begin(), sizes.end()});
  const auto item = static_cast<size_t>(composit::item_size(dtype));
  std::vector<std::byte> bytes(static_cast<size_t>(type.nbytes()) + 1);
  for (size_t i = 0; i < bytes.size() / item; ++i) {
    const uint64_t number = i + 1;
    std::memcpy(&bytes[i * item], &number, std::min<size_t>(item, 8));
  }
  return Array::copy_of(type, bytes.data());
}

std::vector<int32_t> elements(const Array& array) {
  std::vector<int32_t> values(static_cast<size_t>(array.type().nbytes()) / 4);
  if (!values.empty()) std::memcpy(values.data(), array.data(), values.size() * 4);
  return values;
}

// By division, as the header says it: memory in order, each place asked for its element.
std::vector<int32_t> expected_memory(const TileSchema& schema, const Sizes& sizes) {
  struct Loop {
    size_t dimension;
    int64_t extent, step;
  };
  std::vector<Loop> loops;
  for (const auto& level : schema.levels)
    for (const auto& loop : level) loops.push_back({loop.dimension, loop.extent, 1});
  for (size_t i = 0; i < loops.size(); ++i)
    for (size_t inner = i + 1; inner < loops.size(); ++inner)
      if (loops[inner].dimension == loops[i].dimension) loops[i].step *= loops[inner].extent;
  int64_t count = 1;
  for (Loop& loop : loops) {
    if (loop.extent == 0) loop.extent = (sizes[loop.dimension] + loop.step - 1) / loop.step;
    count *= loop.extent;
  }
  std::vector<int32_t> memory;
  for (int64_t place = 0; place < count; ++place) {
    Sizes index(sizes.size(), 0);
    int64_t left = place;
    for (size_t i = loops.size(); i-- > 0; left /= loops[i].extent)
      index[loops[i].dimension] += left % loops[i].extent * loops[i].step;
    int64_t number = 0;
    bool inside = true;
    for (size_t i = 0; i < sizes.size(); ++i) {
      inside &= index[i] < sizes[i];
      number = number * sizes[i] + index[i];
    }
    memory.push_back(inside ? static_cast<int32_t>(number + 1) : 0);
  }
  return memory;
}

void expect_right(const TileSchema& schema, const Sizes& sizes) {
  SCOPED_TRACE(print(schema) + ", " + testing::PrintToString(sizes));
  const Array array = counting(sizes);
  const Tiling tiling(schema, sizes);
  const Array memory = tilize(array, schema);
  const std::vector<int32_t> expected = expected_memory(schema, sizes);
  ASSERT_EQ(elements(memory), expected);
  ASSERT_EQ(tiling.memory_size(), static_cast<int64_t>(expected.size()));
  ASSERT_TRUE(untilize(memory, tiling) == array);
}

// Up to two blocks within each dimension, in any order that keeps the outermost loops first.
TileSchema random_schema(std::mt19937& random, size_t rank) {
  std::vector<size_t> dimensions;
  for (size_t i = 0; i < rank; ++i) dimensions.insert(dimensions.end(), 1 + random() % 3, i);
  std::shuffle(dimensions.begin(), dimensions.end(), random);
  TileSchema schema = {std::string("ABCD").substr(0, rank), {{}}};
  std::vector<bool> seen(rank, false);
  for (const size_t dimension : dimensions) {
    if (!schema.levels.back().empty() && random() % 3 == 0) schema.levels.emplace_back();
    const int64_t extent = seen[dimension] ? 1 + static_cast<int64_t>(random() % 5) : 0;
    schema.levels.back().push_back({dimension, extent});
    seen[dimension] = true;
  }
  return schema;
}

Sizes random_sizes(std::mt19937& random, size_t rank) {
  Sizes sizes;
  for (size_t i = 0; i < rank; ++i) sizes.push_back(1 + static_cast<int64_t>(random() % 13));
  return sizes;
}

TEST(TileSchema, IsItsText) {
  for (const char* text : {"NCHW -> N C/16 H W | 16c", "MK -> M/64 K/32 | 8m 4k | 8m 8k", "A -> A",
                           "AB -> B A", "AB -> A/6 B | 2a | 3a"})
    EXPECT_EQ(print(parse_tile_schema(text)), text);
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    const TileSchema schema = random_schema(random, random() % 5);
    EXPECT_EQ(parse_tile_schema(print(schema)), schema) << print(schema);
  }
}

TEST(TileSchema, SaysWhatIsWrong) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"AB", "expected 'DIMENSIONS -> LOOPS'"},
      {"Ab -> A B", "capital letters, received 'b'"},
      {"AA -> A A", "dimension A twice"},
      {"AB -> A", "no loop over B"},
      {"AB -> A B C", "'C': no dimension of AB"},
      {"AB -> A B A", "two outermost loops over A"},
      {"AB -> 4a A/4 B", "stands before the one over its blocks"},
      {"AB -> A/8 B 4a", "write A/4"},
      {"AB -> A B 4a", "write A/4"},
      {"AB -> A/ B", "expected a loop like 'C', 'C/16' or '16c', received 'A/'"},
      {"AB -> A B x", "received 'x'"},
      {"AB -> A/0 B 0a", "a number of at least 1"},
      {"AB -> A | | B", "a level without loops"},
      {"AB -> A B |", "a level without loops"}};
  for (const auto& [text, message] : cases) {
    try {
      parse_tile_schema(text);
      ADD_FAILURE() << text;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(message)) << text;
    }
  }
  EXPECT_THROW(Tiling(parse_tile_schema("AB -> A B"), {3}), UserError);
  EXPECT_THROW(Tiling(parse_tile_schema("AB -> A B"), {3, -1}), UserError);
}

TEST(Tilize, EverySmallExtent) {
  for (int64_t a = 0; a <= 9; ++a)
    for (int64_t b = 0; b <= 9; ++b)
      for (const char* text :
           {"AB -> A B", "AB -> B A", "AB -> A/4 B/2 4a 2b", "AB -> B/3 A/4 4a 3b",
            "AB -> A B/4 4b", "AB -> A/4 B 2a 2a", "AB -> A/6 B/4 2b 3a 2b 2a"})
        expect_right(parse_tile_schema(text), {a, b});
  expect_right(parse_tile_schema(" -> "), {});
}

TEST(Tilize, RandomSchemas) {
  std::mt19937 random(4);
  for (int i = 0; i < 1500; ++i) {
    const size_t rank = 1 + random() % 4;
    expect_right(random_schema(random, rank), random_sizes(random, rank));
  }
}

TEST(Tilize, EveryDtype) {
  const TileSchema schema = parse_tile_schema("AB -> B/4 A/3 3a 4b");
  for (const DType dtype : {DType::bool_, DType::uint8, DType::float16, DType::int32,
                            DType::float64, DType::complex128}) {
    const Array array = counting({5, 7}, dtype);
    EXPECT_TRUE(untilize(tilize(array, schema), Tiling(schema, {5, 7})) == array);
  }
}

TEST(Retilize, RandomSchemas) {
  std::mt19937 random(5);
  for (int i = 0; i < 1500; ++i) {
    const size_t rank = 1 + random() % 4;
    const Sizes sizes = random_sizes(random, rank);
    const TileSchema from = random_schema(random, rank), to = random_schema(random, rank);
    SCOPED_TRACE(print(from) + " to " + print(to) + ", " + testing::PrintToString(sizes));
    const Array memory = tilize(counting(sizes), from);
    ASSERT_EQ(elements(retilize(memory, Tiling(from, sizes), Tiling(to, sizes))),
              expected_memory(to, sizes));
  }
}

TEST(Retilize, StepsAreFew) {
  const auto steps = [](const char* from, const char* to, const Sizes& sizes) {
    return print(retilize_steps(Tiling(parse_tile_schema(from), sizes),
                                Tiling(parse_tile_schema(to), sizes)));
  };
  // The same order: one copy.
  EXPECT_EQ(steps("NCHW -> N C H W", "NCHW -> N C H W", {2, 32, 5, 7}),
            "copy 2240 neighbours over N C H W\n");
  // Rows and pixels go on alike on both sides; the last block of channels is cut short.
  EXPECT_EQ(steps("NCHW -> N C H W", "NCHW -> N C/16 H W 16c", {1, 40, 5, 7}),
            "zero all, for the padding\n"
            "for C/16: up to 3 rounds, 560 apart -> 560 apart\n"
            "  for H W: 35 rounds, 1 apart -> 16 apart\n"
            "    for C: up to 16 rounds, 35 apart -> 1 apart\n"
            "      copy 1 element\n");
  // Whole vectors stay together.
  EXPECT_EQ(steps("NCHW -> N C/16 H W 16c", "NCHW -> N H W C/16 16c", {1, 32, 5, 7}),
            "for H W: 35 rounds, 16 apart -> 32 apart\n"
            "  for C/16: 2 rounds, 560 apart -> 16 apart\n"
            "    copy 16 neighbours over C\n");
}

TEST(Retilize, RefusesOtherMemory) {
  const TileSchema schema = parse_tile_schema("AB -> A/4 B 4a");
  EXPECT_THROW(untilize(counting({15}), Tiling(schema, {3, 5})), UserError);
  EXPECT_THROW(retilize_steps(Tiling(schema, {3, 5}), Tiling(schema, {5, 3})), UserError);
}

// Offsets by row and column; padding is grey.
TEST(Draw, ShowsWhereElementsAre) {
  const std::string svg =
      flashlight::mosaic::draw(Tiling(parse_tile_schema("AB -> B/2 A 2b"), {2, 3}), 0, 1);
  EXPECT_THAT(svg, testing::HasSubstr("AB -&gt; B/2 A 2b, for [2, 3]"));
  std::vector<std::string> numbers;
  for (size_t at = 0; (at = svg.find("text-anchor=\"middle\"", at)) != std::string::npos;) {
    at = svg.find('>', at) + 1;
    numbers.push_back(svg.substr(at, svg.find('<', at) - at));
  }
  EXPECT_THAT(numbers, testing::ElementsAre("0", "1", "4", "5", "2", "3", "6", "7", "A", "B"));
  size_t grey = 0;
  for (size_t at = 0; (at = svg.find("#d4d4d4", at)) != std::string::npos; ++at) ++grey;
  EXPECT_EQ(grey, 2U);
  const Tiling large(parse_tile_schema("AB -> A B"), {2, 65});
  EXPECT_THROW(flashlight::mosaic::draw(large, 0, 1), UserError);
  EXPECT_THROW(flashlight::mosaic::draw(large, 0, 2), UserError);
}

}  // namespace
