#include "flashlight/mosaic/choices.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <sstream>

#include "composit/ir/error.h"
#include "composit/ir/words.h"

namespace flashlight::mosaic {
namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& text) {
  std::istringstream in(text);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

class Parser {
 public:
  Choices run(std::string_view text) {
    std::istringstream in{std::string(text)};
    for (std::string line; std::getline(in, line);) {
      ++line_;
      line = line.substr(0, line.find('#'));
      if (words_of(line).empty()) continue;
      const size_t colon = line.find(':');
      const Words name = words_of(line.substr(0, colon));
      if (colon == std::string::npos || name.size() != 1)
        fail("expected 'name: choice, choice'", line);
      for (const std::string& one : composit::split_at(line.substr(colon + 1), ','))
        choose(choices_[name[0]], words_of(one), one);
    }
    return std::move(choices_);
  }

 private:
  [[noreturn]] void fail(const std::string& expected, const std::string& received) const {
    throw composit::UserError(
        fmt::format("[mosaic] line {}: {}, received '{}'", line_, expected, received));
  }

  std::vector<int64_t> numbers(const Words& words, const std::string& text) const {
    std::vector<int64_t> list;
    for (size_t i = 1; i < words.size(); ++i) {
      int64_t number = 0;
      const char* const end = words[i].data() + words[i].size();
      const auto read = std::from_chars(words[i].data(), end, number);
      if (read.ec != std::errc() || read.ptr != end || number < 0)
        fail("expected numbers from 0 on", text);
      list.push_back(number);
    }
    return list;
  }
  int64_t number(const Words& words, const std::string& text) const {
    const std::vector<int64_t> list = numbers(words, text);
    if (list.size() != 1) fail("expected one number behind '" + words[0] + "'", text);
    return list[0];
  }

  TileSchema schema(const std::string& text) const {
    try {
      return parse_tile_schema(text);
    } catch (const composit::UserError& error) {
      throw composit::UserError(fmt::format("[mosaic] line {}: {}", line_, error.what()));
    }
  }

  void choose(Choice& choice, const Words& words, const std::string& text) const {
    const auto is = [&](const Words& expected) { return words == expected; };
    const std::string first = words.empty() ? "" : words[0];
    if (is({"fuse"}) || is({"keep"}))
      choice.fuse = first == "fuse";
    else if (is({"split", "rows"}) || is({"split", "columns"}))
      choice.split_columns = words[1] == "columns";
    else if (is({"float32"}) || is({"bfloat16"}))
      choice.product = first == "float32" ? composit::DType::float32 : composit::DType::bfloat16;
    else if (is({"stored", "float32"}) || is({"stored", "bfloat16"}))
      choice.stored = words[1] == "float32" ? composit::DType::float32 : composit::DType::bfloat16;
    else if (is({"new", "loops"}))
      choice.new_loops = true;
    else if (is({"one", "thread"}))
      choice.one_thread = true;
    else if (is({"own", "place"}))
      choice.own_place = true;
    else if (first == "layout")
      choice.layout = schema(text.substr(text.find(first) + first.size() + 1));
    else if (first == "apart")
      choice.apart = number(words, text);
    else if (first == "at")
      choice.offset = number(words, text);
    else if (first == "winograd")
      choice.winograd = static_cast<int>(number(words, text));
    else if (first == "strassen")
      choice.strassen = number(words, text) != 0;
    else
      fail(
          "expected fuse, keep, layout SCHEMA, apart NUMBER, winograd NUMBER, strassen NUMBER, "
          "split rows, split columns, float32, bfloat16, stored float32, stored bfloat16, new "
          "loops, one thread, own place or at NUMBER",
          text);
  }

  Choices choices_;
  int line_ = 0;
};

}  // namespace

Choices parse_choices(std::string_view text) { return Parser().run(text); }

Choices::operator std::string() const {
  std::string text;
  for (const auto& [name, choice] : *this) {
    Words words;
    const auto add = [&](bool is_chosen, const std::string& word) {
      if (is_chosen) words.push_back(word);
    };
    const auto add_number = [&](const char* word, const auto& number) {
      if (number) words.push_back(fmt::format("{} {}", word, static_cast<int64_t>(*number)));
    };
    if (choice.fuse) words.emplace_back(*choice.fuse ? "fuse" : "keep");
    if (choice.layout) words.push_back("layout " + print(*choice.layout));
    add_number("apart", choice.apart);
    add_number("winograd", choice.winograd);
    add_number("strassen", choice.strassen);
    if (choice.split_columns)
      words.emplace_back(*choice.split_columns ? "split columns" : "split rows");
    if (choice.product) words.emplace_back(composit::name(*choice.product));
    if (choice.stored) words.push_back(fmt::format("stored {}", composit::name(*choice.stored)));
    add(choice.new_loops, "new loops");
    add(choice.one_thread, "one thread");
    add(choice.own_place, "own place");
    add_number("at", choice.offset);
    if (!words.empty()) text += fmt::format("{}: {}\n", name, fmt::join(words, ", "));
  }
  return text;
}

}  // namespace flashlight::mosaic
