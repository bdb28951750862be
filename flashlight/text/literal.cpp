#include "flashlight/text/literal.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>

#include "composit/ir/error.h"
#include "flashlight/text/open_numbers.h"

namespace flashlight::text {
namespace {

using composit::DType;
using composit::Scalar;

template <class T>
std::string shortest(T value) {
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return std::string(buffer.data(), end);
}

template <class T>
std::string real(T value, std::string_view suffix) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  std::string text = shortest(value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text.append(suffix);
}

std::string integer(int64_t value, DType dtype) {
  if (value == INT64_MIN) return "INT64_MIN";
  if (dtype == DType::uint64 && value < 0)
    return std::to_string(static_cast<uint64_t>(value)) + "u";
  return std::to_string(value);
}

thread_local bool is_device = false;

}  // namespace

DeviceText::DeviceText() : before_(is_device) { is_device = true; }
DeviceText::~DeviceText() { is_device = before_; }
bool is_device_text() { return is_device; }
const char* complex_namespace() { return is_device ? "fl::" : "std::"; }

std::string type_name(DType dtype) {
  // clang-format off
  switch (dtype) {
    case DType::bool_: return "bool";
    case DType::uint8: return "uint8_t";
    case DType::uint16: return "uint16_t";
    case DType::uint32: return "uint32_t";
    case DType::uint64: return "uint64_t";
    case DType::int8: return "int8_t";
    case DType::int16: return "int16_t";
    case DType::int32: return "int32_t";
    case DType::int64: return "int64_t";
    case DType::float16: return "fl::float16";
    case DType::bfloat16: return "fl::bfloat16";
    case DType::float32: return "float";
    case DType::float64: return "double";
    case DType::complex64: return std::string(complex_namespace()) + "complex<float>";
    case DType::complex128: return std::string(complex_namespace()) + "complex<double>";
    default: throw composit::UserError("[compile] no C++ type for " + std::string(name(dtype)));
  }
  // clang-format on
}

std::string compute_type_name(DType dtype) { return is_half(dtype) ? "float" : type_name(dtype); }

std::string brackets(const composit::Type& type, const std::vector<bool>* kept) {
  std::string text;
  for (size_t i = 0; i < type.rank(); ++i)
    if (kept == nullptr || (*kept)[i]) text += "[" + open_number(type.sizes[i]) + "]";
  return text;
}

std::string array_type(const composit::Type& type) {
  return type_name(type.dtype) + brackets(type);
}

std::string literal(const Scalar::Value& value, DType dtype) {
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&value)) return integer(*number, dtype);
  if (const auto* number = std::get_if<double>(&value))
    return dtype == DType::float64 ? real(*number, "") : real(static_cast<float>(*number), "f");
  const auto parts = std::get<std::complex<double>>(value);
  const DType part = dtype == DType::complex128 ? DType::float64 : DType::float32;
  return type_name(dtype) + "(" + literal(parts.real(), part) + ", " + literal(parts.imag(), part) +
         ")";
}

std::string identifier(std::string_view text) {
  static const std::set<std::string, std::less<>> kReserved = {
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
      "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return",
      "co_yield", "compl", "concept", "const", "const_cast", "consteval", "constexpr", "constinit",
      "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
      "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
      "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
      "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
      "requires", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast",
      "struct", "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef",
      "typeid", "typename", "typeof", "union", "unsigned", "using", "virtual", "void", "volatile",
      "wchar_t", "while", "xor", "xor_eq",
      // Types that generated text names, and macros of compilers that speak GNU's C++.
      "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t",
      "size_t", "linux", "unix",
      // Names that generated text has for its own.
      "fl", "std", "main", "weights", "arena", "generator", "memory", "frame", "sizes"};
  std::string name;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (std::isupper(c) && i > 0 && std::islower(static_cast<unsigned char>(text[i - 1])))
      name += '_';
    if (std::isalnum(c))
      name += static_cast<char>(std::tolower(c));
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "x" + name;
  return kReserved.contains(name) ? name + "_" : name;
}

bool is_of_c(std::string_view name) {
  static const std::set<std::string, std::less<>> kOfC = {
      "abort",  "abs",      "access",       "acct",        "acos",      "acosh",     "alarm",
      "asin",   "asinh",    "atan",         "atan2",       "atanh",     "atexit",    "basename",
      "bind",   "brk",      "canonicalize", "cbrt",        "ceil",      "chdir",     "chmod",
      "chown",  "clock",    "clone",        "close",       "connect",   "copysign",  "cos",
      "cosh",   "crypt",    "daemon",       "daylight",    "div",       "drem",      "dup",
      "erf",    "erfc",     "exit",         "exp",         "exp2",      "expm1",     "fabs",
      "fadd",   "fdim",     "fdiv",         "finite",      "floor",     "fma",       "fmax",
      "fmin",   "fmod",     "fmul",         "fork",        "free",      "frexp",     "fsqrt",
      "fsub",   "fsync",    "gamma",        "hypot",       "index",     "iovec",     "j0",
      "j1",     "jn",       "kill",         "labs",        "ldexp",     "lgamma",    "link",
      "listen", "log",      "log10",        "log1p",       "log2",      "logb",      "malloc",
      "mkdir",  "mmap",     "modf",         "mount",       "nan",       "nearbyint", "nextafter",
      "nice",   "obstack",  "open",         "optarg",      "optind",    "pause",     "pipe",
      "poll",   "pow",      "printf",       "profil",      "puts",      "qsort",     "raise",
      "rand",   "random",   "read",         "realloc",     "remainder", "remove",    "rename",
      "revoke", "rewind",   "rindex",       "rint",        "round",     "scalb",     "scanf",
      "select", "send",     "setns",        "significand", "signal",    "signgam",   "sin",
      "sincos", "sinh",     "sleep",        "socket",      "splice",    "sqrt",      "stat",
      "swab",   "symlink",  "sync",         "syscall",     "system",    "tan",       "tanh",
      "tee",    "tgamma",   "time",         "timer",       "times",     "timezone",  "tmpfile",
      "trunc",  "truncate", "umask",        "ungetc",      "unlink",    "utimes",    "wait",
      "warn",   "write",    "y0",           "y1",          "yn"};
  return kOfC.contains(name);
}

std::string namespace_name(std::string_view text) {
  const std::string name = identifier(text);
  if (name.back() == '_') return name + "program";  // a reserved word
  const bool is_letter_of_macros =
      name == "f" || name == "r" || name == "w" || name == "x";  // F_OK
  return is_of_c(name) || is_letter_of_macros ? name + "_program" : name;
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    if (c == '\\') c = '/';
  }
  return text;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\{:03o}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + "\"";
}

}  // namespace flashlight::text
