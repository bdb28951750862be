#include "flashlight/text/open_numbers.h"

#include <utility>

#include "composit/ir/error.h"

namespace flashlight::text {
namespace {

// A place is a mark and eight characters of seven bits each, which no C++ has outside of strings.
constexpr char kMark = '\x01';
constexpr int kDigits = 8, kBits = 7;
constexpr uint64_t kDigit = (1U << kBits) - 1, kHigh = kDigit + 1;
constexpr int64_t kMost = int64_t{1} << (kDigits * kBits - 1);

thread_local bool is_open = false;

std::string place(int64_t value) {
  std::string text(1, kMark);
  for (int i = kDigits; i-- > 0;)
    text += static_cast<char>(kHigh | (static_cast<uint64_t>(value) >> (i * kBits) & kDigit));
  return text;
}

}  // namespace

bool has_open_numbers() { return is_open; }

OpenNumbers::OpenNumbers(bool open) : before_(std::exchange(is_open, open)) {}
OpenNumbers::~OpenNumbers() { is_open = before_; }

std::string open_number(int64_t value) {
  if (!is_open || value <= -kMost || value >= kMost) return std::to_string(value);
  return value < 0 ? "-" + place(-value) : place(value);
}
std::string open_int(int64_t value) {
  return is_open ? "static_cast<int>(" + open_number(value) + ")" : std::to_string(value);
}

std::string constant_head(const std::string& type_and_name) {
  return (is_open ? "const " : "static constexpr ") + type_and_name;
}

OpenText open_text(const std::string& text) {
  OpenText split;
  split.text.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    split.text += text[i];
    if (text[i] != kMark) continue;
    COMPOSIT_ASSERT(i + kDigits < text.size(), "a place is whole");
    uint64_t value = 0;
    for (int digit = 0; digit < kDigits; ++digit)
      value = value << kBits | (static_cast<unsigned char>(text[++i]) & kDigit);
    split.numbers.push_back(static_cast<int64_t>(value));
  }
  return split;
}

std::string filled(const OpenText& text, const std::function<std::string(size_t place)>& fill) {
  std::string all;
  size_t next = 0;
  for (const char c : text.text) {
    if (c == kMark)
      all += fill(next++);
    else
      all += c;
  }
  return all;
}

}  // namespace flashlight::text
