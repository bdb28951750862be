#include "frontends/torchscript/place.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <vector>

namespace flashlight::torchscript {
namespace {

// A line of the user's text, and a caret below what it is about.
std::string pointer(const std::string& line, size_t column, size_t size) {
  const size_t indent = std::min(line.find_first_not_of(' '), column);
  const size_t shown =
      std::max<size_t>(1, std::min(size, line.size() - std::min(line.size(), column)));
  return "\n    " + line.substr(indent) + "\n    " + std::string(column - indent, ' ') + "^" +
         std::string(shown - 1, '~');
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// True for a line of LibTorch's message that matters; suggestions of other operators begin with a
// tab.
bool says_something(const std::string& line) {
  return line.find_first_not_of(' ') != std::string::npos && line[0] != '\t' &&
         !line.starts_with("Here are some suggestions") &&
         !line.starts_with("The original call is");
}

// A saved model is text that was made of the user's, and says of which.
torch::jit::SourceRange original(const torch::jit::SourceRange& range) {
  const auto generated = range.findSourceRangeThatGenerated();
  return generated && generated->source() ? *generated : range;
}

}  // namespace

std::string place_of(const torch::jit::SourceRange& range) {
  const auto place = original(range).file_line_col();
  if (!place) return "<no place>";
  const auto& [file, line, column] = *place;
  return file + ":" + std::to_string(line) + ":" + std::to_string(column + 1);
}

std::string with_place(const torch::jit::SourceRange& from, const std::string& what) {
  const torch::jit::SourceRange range = original(from);
  std::string text = "[torchscript] " + place_of(range) + ": " + what;
  if (!range.source()) return text;
  const size_t number = range.source()->lineno_for_offset(range.start());
  std::string line = range.source()->get_line(number).str();
  line.erase(std::find(line.begin(), line.end(), '\n'), line.end());
  const size_t column = range.start() - range.source()->offset_for_line(number);
  return text + pointer(line, std::min(column, line.size()), range.size());
}

Unsupported not_known(const std::string& what) {
  return Unsupported(what +
                     " has to be known while the graph is made; this one is computed from the "
                     "inputs, as the counter of a loop of more than `unroll` trips is");
}

const std::string& supported() {
  static const std::string text =
      "  supported: if/elif/else, for, while, break, continue, return; float, int, bool, Tensor,\n"
      "  tuples, lists, list comprehensions; calls, recursion to a depth; torch functions that\n"
      "  `flashlight ops` lists, writes to tensors and their views; numbers of Python and `math`";
  return text;
}

// "\n<what>:\n  File "<file>", line <n>\n<lines>\n   ~~~~ <--- HERE\n<lines>"
std::string compile_error(const std::string& text) {
  static const std::regex kPlace("\\s*File \"(.*)\", line ([0-9]+).*");
  std::string what, place;
  std::vector<std::string> lines = lines_of(text);
  size_t i = 0;
  std::smatch match;
  for (; i < lines.size() && !std::regex_match(lines[i], match, kPlace); ++i)
    if (says_something(lines[i])) what += (what.empty() ? "" : "\n  ") + lines[i];
  if (what.ends_with(':') || what.ends_with('.')) what.pop_back();
  if (i < lines.size()) place = match[1].str() + ":" + match[2].str();
  for (size_t j = i; j + 1 < lines.size(); ++j) {
    const std::string& marks = lines[j + 1];
    const size_t begin = marks.find('~');
    if (marks.find("<--- HERE") == std::string::npos || begin == std::string::npos) continue;
    const size_t size = marks.find_first_not_of('~', begin) - begin;
    return "[torchscript] " + place + ":" + std::to_string(begin + 1) + ": " + what +
           pointer(lines[j], begin, size) + "\n" + supported();
  }
  return "[torchscript] " + (place.empty() ? "" : place + ": ") + what + "\n" + supported();
}

std::string message_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  const size_t stack = text.find("\nException raised from");
  return stack == std::string::npos ? text : text.substr(0, stack);
}

}  // namespace flashlight::torchscript
