#include "composit/ir/literal.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "composit/ir/error.h"

namespace composit {
namespace {

constexpr std::string_view kHexPrefix = "0x";
constexpr std::string_view kHexDigits = "0123456789abcdef";

template <class T>
void append_chars(std::string& text, T value) {
  char buffer[32];
  const auto result = std::to_chars(std::begin(buffer), std::end(buffer), value);
  text.append(buffer, result.ptr);
}

template <class T, class... Base>
std::optional<T> parse_chars(std::string_view text, Base... base) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base...);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

void append_bits(std::string& text, uint64_t bits, size_t bytes) {
  text += kHexPrefix;
  for (size_t digit = 2 * bytes; digit-- > 0;) text += kHexDigits[(bits >> (4 * digit)) & 15];
}

std::optional<uint64_t> parse_bits(std::string_view text, size_t bytes) {
  if (!text.starts_with(kHexPrefix)) return std::nullopt;
  text.remove_prefix(kHexPrefix.size());
  if (text.empty() || text.size() > 2 * bytes) return std::nullopt;
  return parse_chars<uint64_t>(text, 16);
}

// ---- floats -------------------------------------------------------------------------------------

// IEEE 754's interchange formats, and bfloat16, by their number of bits.
struct FloatFormat {
  int bits, fraction;
  uint64_t sign() const { return uint64_t{1} << (bits - 1); }
  uint64_t infinity() const { return sign() - (uint64_t{1} << fraction); }
  uint64_t quiet_nan() const { return infinity() | uint64_t{1} << (fraction - 1); }
  bool is_nan(uint64_t word) const { return (word & ~sign()) > infinity(); }
};
constexpr FloatFormat kHalf{16, 10}, kBFloat{16, 7}, kSingle{32, 23}, kDouble{64, 52};

// The text of a number that has no digits: "inf", "-nan", ... Only the NaN that arithmetic makes
// has a name; other NaNs have none.
std::optional<std::string_view> special_name(const FloatFormat& format, uint64_t word) {
  const bool negative = (word & format.sign()) != 0;
  const uint64_t magnitude = word & ~format.sign();
  if (magnitude == format.infinity()) return negative ? "-inf" : "inf";
  if (magnitude == format.quiet_nan()) return negative ? "-nan" : "nan";
  return std::nullopt;
}

std::optional<uint64_t> special_bits(const FloatFormat& format, std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const uint64_t sign = negative ? format.sign() : 0;
  if (text == "inf") return sign | format.infinity();
  if (text == "nan") return sign | format.quiet_nan();
  return std::nullopt;
}

// The 16-bit format's value; exact. Not for NaN and infinity.
float widen(const FloatFormat& format, uint64_t word) {
  const int bias = (1 << (format.bits - 2 - format.fraction)) - 1;
  const auto exponent = static_cast<int>((word & ~format.sign()) >> format.fraction);
  auto significand = static_cast<int>(word & ((uint64_t{1} << format.fraction) - 1));
  if (exponent > 0) significand |= 1 << format.fraction;
  const float magnitude =
      std::ldexp(static_cast<float>(significand), std::max(exponent, 1) - bias - format.fraction);
  return (word & format.sign()) != 0 ? -magnitude : magnitude;
}

// Rounds to the nearest, ties to even. Nothing when `value` is too large.
std::optional<uint64_t> narrow(const FloatFormat& format, float value) {
  const int bias = (1 << (format.bits - 2 - format.fraction)) - 1;
  const uint64_t sign = std::signbit(value) ? format.sign() : 0;
  if (value == 0) return sign;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int biased = std::max(exponent - 1 + bias, 1);
  const double significand = std::ldexp(std::abs(double{value}), format.fraction + bias - biased);
  // A significand that rounds up into the next binade carries into the exponent by itself.
  const auto rounded = static_cast<uint64_t>(std::nearbyint(significand));
  const uint64_t hidden = uint64_t{1} << format.fraction;
  const uint64_t word = rounded + (static_cast<uint64_t>(biased) << format.fraction) - hidden;
  if (word >= format.infinity()) return std::nullopt;
  return word | sign;
}

const FloatFormat* float_format(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return &kHalf;
    case DType::bfloat16:
      return &kBFloat;
    case DType::float32:
      return &kSingle;
    case DType::float64:
      return &kDouble;
    default:
      return nullptr;
  }
}

void append_float_word(std::string& text, const FloatFormat& format, uint64_t word) {
  if (const auto name = special_name(format, word)) {
    text += *name;
  } else if (format.is_nan(word)) {
    append_bits(text, word, static_cast<size_t>(format.bits) / 8);
  } else if (format.bits == 64) {
    append_chars(text, std::bit_cast<double>(word));
  } else {
    append_chars(text, format.bits == 32 ? std::bit_cast<float>(static_cast<uint32_t>(word))
                                         : widen(format, word));
  }
}

std::optional<uint64_t> parse_float_word(std::string_view text, const FloatFormat& format) {
  if (const auto bits = parse_bits(text, static_cast<size_t>(format.bits) / 8)) return bits;
  if (const auto bits = special_bits(format, text)) return bits;
  if (text.empty() || text.find_first_of("nx") != std::string_view::npos) return std::nullopt;
  if (format.bits == 64) {
    const auto value = parse_chars<double>(text);
    return value ? std::optional(std::bit_cast<uint64_t>(*value)) : std::nullopt;
  }
  const auto value = parse_chars<float>(text);
  if (!value) return std::nullopt;
  return format.bits == 32 ? std::bit_cast<uint32_t>(*value) : narrow(format, *value);
}

// ---- elements -----------------------------------------------------------------------------------

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

uint64_t load_word(const std::byte* from, size_t size) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t word = 0;
  std::memcpy(&word, from, size);
  return word;
}

// Calls `visit` with a value of the C++ type of an integer dtype; false for other dtypes.
template <class Visit>
bool visit_integer(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::uint8:
      return visit(uint8_t{});
    case DType::int8:
      return visit(int8_t{});
    case DType::int16:
      return visit(int16_t{});
    case DType::int32:
      return visit(int32_t{});
    case DType::int64:
      return visit(int64_t{});
    case DType::uint16:
      return visit(uint16_t{});
    case DType::uint32:
      return visit(uint32_t{});
    case DType::uint64:
      return visit(uint64_t{});
    default:
      return false;
  }
}

std::optional<uint64_t> parse_word(std::string_view text, DType dtype) {
  if (const FloatFormat* format = float_format(dtype)) return parse_float_word(text, *format);
  if (dtype == DType::bool_ && (text == "true" || text == "false")) return text == "true";
  std::optional<uint64_t> word;
  visit_integer(dtype, [&]<class T>(T) {
    if (const auto value = parse_chars<T>(text)) word = static_cast<uint64_t>(*value);
    return true;
  });
  return word ? word : parse_bits(text, item_size(dtype));
}

}  // namespace

void append_int(std::string& text, int64_t value) { append_chars(text, value); }
std::optional<int64_t> parse_int(std::string_view text) { return parse_chars<int64_t>(text); }

void append_float(std::string& text, double value) {
  const size_t begin = text.size();
  append_float_word(text, kDouble, std::bit_cast<uint64_t>(value));
  if (text.find_first_of(".enx", begin) == std::string::npos) text += ".0";
}

std::optional<double> parse_float(std::string_view text) {
  const auto word = parse_float_word(text, kDouble);
  return word ? std::optional(std::bit_cast<double>(*word)) : std::nullopt;
}

bool looks_like_float(std::string_view text) {
  return text.starts_with(kHexPrefix) || text.find_first_of(".eE") != std::string_view::npos;
}

void append_quoted(std::string& text, std::string_view value) {
  text += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += {'\\', c};
    } else if (c == '\n') {
      text += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      text += {'\\', 'x', kHexDigits[byte >> 4], kHexDigits[byte & 15]};
    } else {
      text += c;
    }
  }
  text += '"';
}

std::optional<std::string> parse_quoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::string value;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      value += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    if (text[i] == 'n') {
      value += '\n';
    } else if (text[i] == '"' || text[i] == '\\') {
      value += text[i];
    } else if (text[i] == 'x' && i + 2 < text.size()) {
      const auto byte = parse_chars<uint8_t>(text.substr(i + 1, 2), 16);
      if (!byte) return std::nullopt;
      value += static_cast<char>(*byte);
      i += 2;
    } else {
      return std::nullopt;
    }
  }
  return value;
}

bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool is_word_char(char c) {
  return is_word_start(c) || (c >= '0' && c <= '9') || c == '.' || c == ':';
}

bool is_word(std::string_view text) {
  if (text.empty() || !is_word_start(text[0])) return false;
  for (const char c : text)
    if (!is_word_char(c)) return false;
  return true;
}

std::optional<DType> part_of_complex(DType dtype) {
  switch (dtype) {
    case DType::complex32:
      return DType::float16;
    case DType::complex64:
      return DType::float32;
    case DType::complex128:
      return DType::float64;
    default:
      return std::nullopt;
  }
}

void append_element(std::string& text, DType dtype, const std::byte* element) {
  const size_t size = item_size(dtype);
  const uint64_t word = load_word(element, size);
  if (const FloatFormat* format = float_format(dtype)) {
    append_float_word(text, *format, word);
  } else if (dtype == DType::bool_ && word <= 1) {
    text += word == 1 ? "true" : "false";
  } else if (!visit_integer(dtype, [&]<class T>(T) {
               append_chars(text, load<T>(element));
               return true;
             })) {
    append_bits(text, word, size);
  }
}

bool parse_element(std::string_view text, DType dtype, std::byte* element) {
  const auto word = parse_word(text, dtype);
  if (!word) return false;
  std::memcpy(element, &*word, item_size(dtype));
  return true;
}

}  // namespace composit
