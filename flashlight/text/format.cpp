#include "flashlight/text/format.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "flashlight/text/code.h"

namespace flashlight::text {
namespace {

using Lines = std::vector<std::string>;

Lines split(const std::string& text) {
  Lines lines;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  return lines;
}

size_t indent_of(const std::string& line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

bool starts_with(const std::string& line, const char* word) {
  return line.compare(indent_of(line), std::string(word).size(), word) == 0;
}

// Parentheses and brackets that are open before `end`.
int depth_at(const std::string& line, size_t end) {
  int depth = 0;
  for (size_t i = 0; i < end; ++i) {
    depth += line[i] == '(' || line[i] == '[' || line[i] == '{';
    depth -= line[i] == ')' || line[i] == ']' || line[i] == '}';
  }
  return depth;
}

bool is_header(const std::string& line) {
  return (starts_with(line, "for (") || starts_with(line, "if (")) && line.back() == ')';
}

// The line up to a comma and what stands behind it, below.
Lines broken_behind(const std::string& line, size_t comma) {
  return {line.substr(0, comma + 1), std::string(indent_of(line), ' ') + line.substr(comma + 2)};
}

// The comma of the outermost level before the lambda; npos where there is none.
size_t comma_before_lambda(const std::string& line) {
  const size_t comma = line.find(", [&](");
  return comma == std::string::npos || depth_at(line, comma) != 0 ? std::string::npos : comma;
}

// 2, 3, [&](int i) { return x; },   ->   the lambda on a line of its own, where it fits one. One
// with a return type takes the argument before it along, where both fit.
std::optional<Lines> lambda_below(const std::string& line) {
  const size_t lambda = comma_before_lambda(line);
  if (lambda == std::string::npos) return std::nullopt;
  const auto fits = [&](size_t comma) {
    return comma != std::string::npos && depth_at(line, comma) == 0 &&
           indent_of(line) + line.size() - comma - 2 <= kColumns;
  };
  const size_t before = line.rfind(", ", lambda - 1);
  if (line.find(") -> ", lambda) != std::string::npos && fits(before))
    return broken_behind(line, before);
  if (fits(lambda)) return broken_behind(line, lambda);
  return std::nullopt;
}

// [&](int i) { return x; }, ...   ->   the body on a line of its own, and what stands before.
std::optional<Lines> opened_lambda(const std::string& line) {
  const size_t lambda = line.find("[&](");
  if (lambda == std::string::npos) return std::nullopt;
  const size_t open = line.find(" { ", lambda), close = line.rfind("; }");
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  const std::string indent(indent_of(line), ' ');
  Lines lines = {line.substr(0, open + 2)};
  if (const size_t comma = comma_before_lambda(lines[0]); comma != std::string::npos)
    lines = broken_behind(lines[0], comma);
  lines.push_back(indent + "  " + line.substr(open + 3, close - open - 2));
  lines.push_back(indent + line.substr(close + 2));
  return lines;
}

// Where the value of an assignment begins; npos where the line is none.
size_t value_in(const std::string& line) {
  const size_t sign = line.find(" = ");
  if (sign == std::string::npos || line.back() != ';' || depth_at(line, sign) != 0)
    return std::string::npos;
  return sign + 3;
}

// x =
//     y;
std::optional<Lines> broken_assignment(const std::string& line) {
  const size_t value = value_in(line);
  if (value == std::string::npos) return std::nullopt;
  Lines lines = {line.substr(0, value - 1),
                 std::string(indent_of(line) + 4, ' ') + line.substr(value)};
  return lines[1].size() <= kColumns ? std::optional(lines) : std::nullopt;
}

// Behind the last + or - of the outermost level that leaves a line short enough, or if there is
// none the last *; what follows is aligned with the value, which begins at `value`.
std::optional<Lines> cut_sum(const std::string& line, size_t value) {
  size_t cut = 0;
  for (const std::string_view operators : {"+-", "*/"}) {
    if (line.find('?', value) != std::string::npos) return std::nullopt;
    for (size_t i = value; i + 2 < line.size() && i + 2 <= kColumns; ++i) {
      const bool found = line[i] == ' ' && operators.find(line[i + 1]) != std::string_view::npos &&
                         line[i + 2] == ' ';
      if (found && depth_at(line, i) == 0) cut = i + 2;
    }
    if (cut != 0) break;
  }
  if (cut == 0) return std::nullopt;
  return Lines{line.substr(0, cut), std::string(value, ' ') + line.substr(cut + 1)};
}

std::optional<Lines> broken_sum(const std::string& line) {
  const size_t value = value_in(line);
  if (value == std::string::npos) return std::nullopt;
  if (const auto lines = cut_sum(line, value)) return lines;
  const size_t indent = indent_of(line) + 4;
  const auto below = cut_sum(std::string(indent, ' ') + line.substr(value), indent);
  if (!below) return std::nullopt;
  return Lines{line.substr(0, value - 1), (*below)[0], (*below)[1]};
}

// x = f(2,
//       [&](int i) { return y; });
// or, where that is too long,
// x = f(
//     2, [&](int i) { return y; });
std::optional<Lines> broken_arguments(const std::string& line) {
  const size_t value = value_in(line),
               open = line.find('(', value == std::string::npos ? 0 : value);
  if (value == std::string::npos || open == std::string::npos || !line.ends_with(");"))
    return std::nullopt;
  const size_t lambda = line.find(", [&](", open);
  if (lambda == std::string::npos) return std::nullopt;
  if (Lines lines = {line.substr(0, lambda + 1),
                     std::string(open + 1, ' ') + line.substr(lambda + 2)};
      lines[0].size() <= kColumns && lines[1].size() <= kColumns)
    return lines;
  Lines lines = {line.substr(0, open + 1),
                 std::string(indent_of(line) + 4, ' ') + line.substr(open + 1)};
  return lines[1].size() <= kColumns ? std::optional(lines) : std::nullopt;
}

// return x[i]
//         [j];
std::optional<Lines> broken_subscripts(const std::string& line) {
  const size_t name = indent_of(line) + std::string_view("return ").size(), first = line.find('[');
  if (!starts_with(line, "return ") || first == std::string::npos || !line.ends_with("];") ||
      line.find_first_of(" (", name) < first)
    return std::nullopt;
  size_t cut = 0;
  for (size_t i = first + 1; i <= kColumns && i + 1 < line.size(); ++i)
    if (line[i - 1] == ']' && depth_at(line, i) == 0) {
      if (line[i] != '[') return std::nullopt;  // something else than one element
      cut = i;
    }
  if (cut == 0) return std::nullopt;
  return Lines{line.substr(0, cut), std::string(first, ' ') + line.substr(cut)};
}

Lines fitted(const std::string& line) {
  if (line.size() <= kColumns) return {line};
  if (const auto parts = broken_assignment(line)) return *parts;
  if (const auto parts = broken_arguments(line)) return *parts;
  if (const auto parts = broken_subscripts(line)) return *parts;
  auto parts = lambda_below(line);
  if (!parts) parts = opened_lambda(line);
  if (!parts) return broken_sum(line).value_or(Lines{line});
  Lines lines;
  for (const std::string& part : *parts)
    for (std::string& one : fitted(part)) lines.push_back(std::move(one));
  return lines;
}

}  // namespace

std::string formatted(const std::string& text) {
  Lines lines;
  for (const std::string& line : split(text)) {
    if (starts_with(line, "#")) {  // for the preprocessor, which stands at the margin
      lines.push_back(line.substr(indent_of(line)));
      continue;
    }
    const bool joins = !lines.empty() && is_header(lines.back()) && line.ends_with(';') &&
                       indent_of(line) == indent_of(lines.back()) + 2 &&
                       !starts_with(line, "for (") && !starts_with(line, "if (");
    const std::string rest = joins ? line.substr(indent_of(line)) : "";
    if (joins && lines.back().size() + 1 + rest.size() <= kColumns) {
      lines.back() += " " + rest;
      continue;
    }
    for (std::string& one : fitted(line)) lines.push_back(std::move(one));
  }
  std::string result;
  for (const std::string& line : lines) result += line + "\n";
  return result;
}

int line_count(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace flashlight::text
