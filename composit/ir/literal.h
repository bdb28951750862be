// Numbers, strings and elements as text that reads back bit for bit.
//
//   append_float(text, 0.1);           // "0.1"; "1.0" for 1, "-0.0", "inf", "nan"
//   parse_float("0x7ff8000000000001"); // a float by its bits, as other NaNs print
//
// For the printer and the parser of graphs. Text is ASCII but for bytes above 127 in strings, which
// stand as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "composit/ir/dtype.h"

namespace composit {

void append_int(std::string& text, int64_t value);
// The whole of `text` must be the number; nothing if it is not, or does not fit.
std::optional<int64_t> parse_int(std::string_view text);

// Shortest decimal form that reads back; always recognisable as a float.
void append_float(std::string& text, double value);
std::optional<double> parse_float(std::string_view text);
// True if a number token is a float: it has a point or an exponent, or it gives the bits.
bool looks_like_float(std::string_view text);

// In double quotes; backslash escapes for quotes, backslashes and control characters.
void append_quoted(std::string& text, std::string_view value);
// `text` with its quotes; nothing if it is not a quoted string.
std::optional<std::string> parse_quoted(std::string_view text);

// A word as the graph's text has them: [A-Za-z_][A-Za-z0-9_.:]*.
bool is_word(std::string_view text);
bool is_word_start(char c);
bool is_word_char(char c);

// The dtype of the two parts of a complex number; nothing for other dtypes.
std::optional<DType> part_of_complex(DType dtype);
// One element, not complex. Decimal for integers and floats, true and false, and the bits in
// hexadecimal for whatever has no such form (quantised, float8, NaNs with a payload).
void append_element(std::string& text, DType dtype, const std::byte* element);
// False if `text` is no element of this dtype, or does not fit.
bool parse_element(std::string_view text, DType dtype, std::byte* element);

}  // namespace composit
