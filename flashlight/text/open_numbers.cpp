#include "flashlight/text/open_numbers.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "composit/ir/error.h"
#include "flashlight/text/literal.h"

namespace flashlight::text {
namespace {

// A place is a mark and characters of seven bits each, which no C++ has outside of strings.
constexpr char kMark = '\x01', kFloatMark = '\x04', kDoubleMark = '\x05';
constexpr int kDigits = 10, kBits = 7;  // 64 bits
constexpr uint64_t kDigit = (1U << kBits) - 1, kHigh = kDigit + 1;

bool is_mark(char c) { return c == kMark || c == kFloatMark || c == kDoubleMark; }

thread_local bool is_open = false, is_wide = false;
thread_local SizeNames* names = nullptr;

std::string place(char mark, uint64_t bits) {
  std::string text(1, mark);
  for (int i = kDigits; i-- > 0;) text += static_cast<char>(kHigh | (bits >> (i * kBits) & kDigit));
  return text;
}

}  // namespace

bool has_open_numbers() { return is_open; }

OpenNumbers::OpenNumbers(bool open) : before_(std::exchange(is_open, open)) {}
OpenNumbers::~OpenNumbers() { is_open = before_; }

NamedNumbers::NamedNumbers(SizeNames& now) : before_(std::exchange(names, &now)) {}
NamedNumbers::~NamedNumbers() { names = before_; }

SizeNames* current_names() { return names; }

WideIndices::WideIndices(bool wide) : before_(is_wide) { is_wide = wide; }
WideIndices::~WideIndices() { is_wide = before_; }
bool has_wide_indices() { return is_wide; }
const char* index_type() { return is_wide ? "int64_t" : "int"; }
bool is_open_number(int64_t value) { return names != nullptr ? names->has(value) : is_open; }

std::string bare_number(int64_t value) {
  return names != nullptr ? names->text(value) : open_number(value);
}

std::string open_number(int64_t value) {
  if (names != nullptr) {
    const std::string text = names->text(value);
    return text.find(' ') == std::string::npos ? text : "(" + text + ")";
  }
  if (!is_open || value == std::numeric_limits<int64_t>::min()) return std::to_string(value);
  const std::string text = place(kMark, static_cast<uint64_t>(std::abs(value)));
  return value < 0 ? "-" + text : text;
}
std::string open_real(double value, composit::DType dtype) {
  if (!is_open || !std::isfinite(value)) return literal(value, dtype);
  const std::string text = place(dtype == composit::DType::float32 ? kFloatMark : kDoubleMark,
                                 std::bit_cast<uint64_t>(std::abs(value)));
  return std::signbit(value) ? "-" + text : text;
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
    if (!is_mark(text[i])) continue;
    split.dtypes.push_back(text[i] == kMark        ? composit::DType::int64
                           : text[i] == kFloatMark ? composit::DType::float32
                                                   : composit::DType::float64);
    COMPOSIT_ASSERT(i + kDigits < text.size(), "a place is whole");
    uint64_t value = 0;
    for (int digit = 0; digit < kDigits; ++digit)
      value = value << kBits | (static_cast<unsigned char>(text[++i]) & kDigit);
    split.numbers.push_back(static_cast<int64_t>(value));
  }
  return split;
}

std::string constant_text(const OpenText& text, size_t place) {
  const int64_t number = text.numbers[place];
  const composit::DType dtype = text.dtypes[place];
  return dtype == composit::DType::int64 ? std::to_string(number)
                                         : literal(std::bit_cast<double>(number), dtype);
}

std::string filled(const OpenText& text, const std::function<std::string(size_t place)>& fill) {
  std::string all;
  size_t next = 0;
  for (const char c : text.text) {
    if (is_mark(c))
      all += fill(next++);
    else
      all += c;
  }
  return all;
}

}  // namespace flashlight::text
