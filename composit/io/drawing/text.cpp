#include "composit/io/drawing/text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "composit/ir/literal.h"
#include "composit/ir/print.h"

namespace composit::drawing {
namespace {

// Length of the well-formed UTF-8 character at the start of `text`, 0 when there is none.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80   ? 1
                        : byte(0) < 0xc2 ? 0
                        : byte(0) < 0xe0 ? 2
                        : byte(0) < 0xf0 ? 3
                        : byte(0) < 0xf5 ? 4
                                         : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (length == 3 && byte(0) == 0xe0 && byte(1) < 0xa0) return 0;                  // overlong
  if (length == 3 && byte(0) == 0xed && byte(1) > 0x9f) return 0;                  // surrogate
  if (length == 3 && text.substr(0, 2) == "\xef\xbf" && byte(2) > 0xbd) return 0;  // not in XML
  if (length == 4 && (byte(0) == 0xf0 ? byte(1) < 0x90 : byte(0) == 0xf4 && byte(1) > 0x8f))
    return 0;
  return length;
}

std::string replaced(std::string_view text, std::string_view (*by)(char)) {
  std::string result;
  for (const char& c : text) {
    const std::string_view replacement = by(c);
    result += replacement.empty() ? std::string_view(&c, 1) : replacement;
  }
  return result;
}

}  // namespace

std::string type_text(const Type& type) {
  if (!is_defined(type)) return "undefined";
  std::string text(name(type.dtype));
  for (size_t axis = 0; axis < type.rank(); ++axis)
    text += (axis == 0 ? " " : "×") + std::to_string(type.sizes[axis]);
  return text;
}

std::string value_text(const Array& array) {
  std::string text;
  if (!part_of_complex(array.type().dtype)) append_element(text, array.type().dtype, array.data());
  return text;
}

std::string tooltip_text(const Node& node) {
  std::string text = node.op().str();
  for (const auto* attributes : {&node.attributes(), &node.execution()})
    for (const NamedAttribute& attribute : *attributes)
      text += fmt::format("\n{} = {}", attribute.key(), print(attribute.value, {.brief = true}));
  for (const char* key : {"scope", "source"})
    if (const std::string_view value = node.annotation(key); !value.empty())
      text += fmt::format("\n{}: {}", key, value);
  return text;
}

std::string shortened(std::string_view text, size_t length) {
  std::string result;
  for (size_t count = 0; !text.empty(); ++count) {
    if (count == length) return result + "…";
    const size_t size = character_length(text);
    const bool shown =
        size > 1 || (size == 1 && static_cast<unsigned char>(text[0]) >= 0x20 && text[0] != 0x7f) ||
        text[0] == '\n';
    result += shown ? text.substr(0, size) : "?";
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return result;
}

std::string html(std::string_view text) {
  return replaced(text, [](char c) -> std::string_view {
    switch (c) {
      case '&':
        return "&amp;";
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '"':
        return "&quot;";
      case '\'':
        return "&#39;";
      case '\n':
        return " ";
      default:
        return {};
    }
  });
}

std::string quoted(std::string_view text) {
  return '"' +
         replaced(text,
                  [](char c) -> std::string_view {
                    switch (c) {
                      case '"':
                        return "\\\"";
                      case '\\':
                        return "\\\\";
                      case '\n':
                        return "\\n";
                      default:
                        return {};
                    }
                  }) +
         '"';
}

std::string url(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        (byte < 0x80 && std::isalnum(byte) != 0) || std::strchr("-._~/", c) != nullptr;
    result += plain && c != '\0' ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return result;
}

}  // namespace composit::drawing
