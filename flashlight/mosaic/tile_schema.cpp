#include "flashlight/mosaic/tile_schema.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>
#include <sstream>

#include "composit/ir/error.h"
#include "composit/ir/words.h"

namespace flashlight::mosaic {
namespace {

using composit::UserError;

constexpr int64_t kMostElements = int64_t{1} << 48;

[[noreturn]] void fail(const std::string& text, const std::string& what) {
  throw UserError("[tile schema] '" + text + "': " + what);
}

// One loop as written: "C/16", "C", "16c".
struct Word {
  char letter;
  int64_t number;  // behind the stroke, or before the letter; 1 where there is none
};

Word word_of(const std::string& word, const std::string& text) {
  const bool outer = std::isupper(static_cast<unsigned char>(word[0])) != 0;
  const std::string digits =
      outer ? word.substr(std::min<size_t>(2, word.size())) : word.substr(0, word.size() - 1);
  const bool plain = outer && word.size() == 1;
  const bool formed =
      plain ||
      (!digits.empty() && digits.size() < 10 &&
       std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
       (outer ? word[1] == '/' : std::islower(static_cast<unsigned char>(word.back())) != 0));
  if (!formed) fail(text, "expected a loop like 'C', 'C/16' or '16c', received '" + word + "'");
  const int64_t number = plain ? 1 : std::stoll(digits);
  if (number < 1) fail(text, "'" + word + "': expected a number of at least 1");
  return {outer ? word[0] : word.back(), number};
}

char capital(char letter) {
  return static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
}

// Steps of the loops of a schema, in their order: how many elements one count is.
std::vector<int64_t> steps_of(const std::vector<TileLoop>& loops, size_t rank) {
  std::vector<int64_t> steps(loops.size()), block(rank, 1);
  for (size_t i = loops.size(); i-- > 0;) {
    int64_t& inner = block[loops[i].dimension];
    steps[i] = inner;
    inner *= std::max<int64_t>(1, loops[i].extent);
    if (inner > kMostElements) throw UserError("[tile schema] blocks of more than 2^48 elements");
  }
  return steps;
}

std::vector<TileLoop> flat(const TileSchema& schema) {
  std::vector<TileLoop> loops;
  for (const auto& level : schema.levels) loops.insert(loops.end(), level.begin(), level.end());
  return loops;
}

void check_dimensions(const std::string& names, const std::string& text) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] < 'A' || names[i] > 'Z')
      fail(text,
           std::string("expected dimensions as capital letters, received '") + names[i] + "'");
    if (names.find(names[i]) != i) fail(text, std::string("dimension ") + names[i] + " twice");
  }
}

// Every dimension has one outermost loop, before its others.
std::optional<std::string> fault_of(const TileSchema& schema) {
  const size_t rank = schema.dimensions.size();
  std::vector<bool> seen(rank, false);
  for (const TileLoop& loop : flat(schema)) {
    if (loop.dimension >= rank || loop.extent < 0) return "a loop over no dimension";
    const std::string name(1, schema.dimensions[loop.dimension]);
    if (loop.extent == 0 && seen[loop.dimension]) return "two outermost loops over " + name;
    if (loop.extent != 0 && !seen[loop.dimension])
      return "a loop within blocks of " + name + " stands before the one over its blocks";
    seen[loop.dimension] = true;
  }
  for (size_t i = 0; i < rank; ++i)
    if (!seen[i]) return std::string("no loop over ") + schema.dimensions[i];
  return std::nullopt;
}

}  // namespace

TileSchema parse_tile_schema(const std::string& text) {
  const size_t arrow = text.find("->");
  if (arrow == std::string::npos) fail(text, "expected 'DIMENSIONS -> LOOPS'");
  TileSchema schema = {std::string(composit::trimmed(text.substr(0, arrow))), {{}}};
  check_dimensions(schema.dimensions, text);
  std::vector<int64_t> blocks;  // as written, by loop
  std::istringstream words(text.substr(arrow + 2));
  for (std::string one; words >> one;) {
    if (one == "|") {
      if (schema.levels.back().empty()) fail(text, "a level without loops");
      schema.levels.emplace_back();
      continue;
    }
    const Word word = word_of(one, text);
    const size_t dimension = schema.dimensions.find(capital(word.letter));
    if (dimension == std::string::npos)
      fail(text, "'" + one + "': no dimension of " + schema.dimensions);
    const bool outer = word.letter == capital(word.letter);
    schema.levels.back().push_back({dimension, outer ? 0 : word.number});
    blocks.push_back(outer ? word.number : 0);
  }
  if (schema.levels.size() > 1 && schema.levels.back().empty()) fail(text, "a level without loops");
  if (const auto fault = fault_of(schema)) fail(text, *fault);
  const std::vector<TileLoop> loops = flat(schema);
  const std::vector<int64_t> steps = steps_of(loops, schema.dimensions.size());
  for (size_t i = 0; i < loops.size(); ++i)
    if (loops[i].extent == 0 && steps[i] != blocks[i])
      fail(text,
           fmt::format("{0} goes in steps of {1}, and the loops within have {2} elements: write "
                       "{0}/{2}",
                       schema.dimensions[loops[i].dimension], blocks[i], steps[i]));
  return schema;
}

std::string print(const TileSchema& schema) {
  const std::vector<int64_t> steps = steps_of(flat(schema), schema.dimensions.size());
  std::string text = schema.dimensions + " ->";
  size_t number = 0;
  for (size_t level = 0; level < schema.levels.size(); ++level) {
    if (level > 0) text += " |";
    for (const TileLoop& loop : schema.levels[level]) {
      const char name = schema.dimensions[loop.dimension];
      const int64_t step = steps[number++];
      if (loop.extent == 0)
        text += fmt::format(" {}{}", name, step == 1 ? "" : fmt::format("/{}", step));
      else
        text += fmt::format(" {}{}", loop.extent,
                            static_cast<char>(std::tolower(static_cast<unsigned char>(name))));
    }
  }
  return text;
}

TileSchema schema_of_order(const std::vector<size_t>& order) {
  if (order.size() > kMostDimensions) throw UserError("[tile schema] more than 26 dimensions");
  TileSchema schema = {"", {{}}};
  for (size_t i = 0; i < order.size(); ++i) {
    schema.dimensions += static_cast<char>('A' + i);
    schema.levels[0].push_back({order[i], 0});
  }
  if (const auto fault = fault_of(schema)) throw UserError("[tile schema] " + *fault);
  return schema;
}

Tiling::Tiling(TileSchema schema, std::vector<int64_t> sizes)
    : schema_(std::move(schema)), sizes_(std::move(sizes)) {
  if (const auto fault = fault_of(schema_)) throw UserError("[tile schema] " + *fault);
  if (sizes_.size() != schema_.dimensions.size())
    throw UserError(fmt::format("[tile schema] '{}': expected {} sizes, received {}",
                                print(schema_), schema_.dimensions.size(), sizes_.size()));
  if (std::any_of(sizes_.begin(), sizes_.end(), [](int64_t size) { return size < 0; }))
    throw UserError("[tile schema] a size below 0");
  for (size_t level = 0; level < schema_.levels.size(); ++level)
    for (const TileLoop& loop : schema_.levels[level])
      loops_.push_back({loop.dimension, level, loop.extent, 1, 1});
  const std::vector<int64_t> steps = steps_of(flat(schema_), sizes_.size());
  int64_t stride = 1;
  for (size_t i = loops_.size(); i-- > 0;) {
    Loop& loop = loops_[i];
    loop.step = steps[i];
    if (loop.extent == 0) loop.extent = (sizes_[loop.dimension] + loop.step - 1) / loop.step;
    loop.stride = stride;
    if (loop.extent != 0 && stride > kMostElements / loop.extent)
      throw UserError("[tile schema] more than 2^48 elements");
    stride *= loop.extent;
  }
}

int64_t Tiling::memory_size() const {
  int64_t size = 1;
  for (const Loop& loop : loops_) size *= loop.extent;
  return size;
}

int64_t Tiling::element_count() const {
  return std::accumulate(sizes_.begin(), sizes_.end(), int64_t{1}, std::multiplies<>());
}

int64_t Tiling::offset(size_t dimension, int64_t index) const {
  int64_t offset = 0;
  for (const Loop& loop : loops_)
    if (loop.dimension == dimension) offset += index / loop.step % loop.extent * loop.stride;
  return offset;
}

bool Tiling::is_blocked(size_t dimension) const {
  return std::count_if(loops_.begin(), loops_.end(),
                       [&](const Loop& loop) { return loop.dimension == dimension; }) > 1;
}

bool Tiling::is_blocked() const { return loops_.size() > sizes_.size(); }

int64_t Tiling::offset(const std::vector<int64_t>& index) const {
  COMPOSIT_ASSERT(index.size() == sizes_.size(), "an index per dimension");
  int64_t sum = 0;
  for (size_t i = 0; i < index.size(); ++i) sum += offset(i, index[i]);
  return sum;
}

}  // namespace flashlight::mosaic
