#include "composit/ir/lexer.h"

#include <algorithm>
#include <array>

#include "composit/ir/error.h"

namespace composit {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) { return is_word_start(c) || is_digit(c); }

constexpr size_t kShownLength = 40;

constexpr std::array<std::string_view, 10> kOperators = {"<=", ">=", "==", "!=", "&&",
                                                         "||", "<<", ">>", "->", "+="};

}  // namespace

Lexer::Lexer(std::string_view text, std::string_view file, int first_line, LexerStyle style)
    : text_(text), file_(file), first_line_(first_line), style_(style) {
  advance();
}

bool Lexer::at(std::string_view text) const {
  return token_.text == text &&
         (token_.kind == TokenKind::word || token_.kind == TokenKind::symbol);
}

Token Lexer::take() {
  const Token taken = token_;
  advance();
  return taken;
}

Token Lexer::take(TokenKind kind, std::string_view expected) {
  if (token_.kind != kind) fail_expected(expected);
  return take();
}

bool Lexer::accept(std::string_view text) {
  if (!at(text)) return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view text) {
  if (!accept(text)) fail_expected("'" + std::string(text) + "'");
}

std::string Lexer::take_string(std::string_view expected) {
  const Token token = take(TokenKind::string, expected);
  const auto value = parse_quoted(token.text);
  if (!value)
    fail(token.offset, "expected escapes \\\" \\\\ \\n \\xHH, received " + std::string(token.text));
  return *value;
}

void Lexer::fail_expected(std::string_view expected) const {
  std::string received = "the end of the text";
  if (token_.kind != TokenKind::end) {
    received = token_.kind == TokenKind::name ? "%" : "";
    received += token_.text.substr(0, kShownLength);
    if (token_.text.size() > kShownLength) received += "...";
    if (token_.kind != TokenKind::string) received = "'" + received + "'";
  }
  fail(token_.offset, "expected " + std::string(expected) + ", received " + received);
}

void Lexer::fail(size_t offset, const std::string& message) const {
  const std::string_view before = text_.substr(0, offset);
  const auto line = first_line_ + std::count(before.begin(), before.end(), '\n');
  const size_t column = offset - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  throw UserError("[parse] " + std::string(file_) + ":" + std::to_string(line) + ":" +
                  std::to_string(column) + ": " + message);
}

void Lexer::advance() {
  skip_space();
  token_ = scan();
  position_ = token_.offset + token_.text.size() + (token_.kind == TokenKind::name ? 1 : 0);
}

void Lexer::skip_space() {
  comment_ = {};
  bool same_line = position_ > 0;
  for (; position_ < text_.size(); ++position_) {
    const char c = text_[position_];
    if (c == '#') {
      const size_t end = std::min(text_.find('\n', position_), text_.size());
      if (same_line) comment_ = text_.substr(position_ + 1, end - position_ - 1);
      position_ = end - 1;
    } else if (c == '\n') {
      same_line = false;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      return;
    }
  }
}

Token Lexer::token(TokenKind kind, size_t begin, size_t end) const {
  return {kind, text_.substr(begin, end - begin), begin};
}

template <class Predicate>
size_t Lexer::end_of_run(size_t begin, Predicate predicate) const {
  while (begin < text_.size() && predicate(text_[begin])) ++begin;
  return begin;
}

Token Lexer::scan() const {
  const size_t begin = position_;
  if (begin >= text_.size()) return {TokenKind::end, {}, text_.size()};
  if (style_ == LexerStyle::expression) return scan_expression(begin);
  const char c = text_[begin];
  const char next = begin + 1 < text_.size() ? text_[begin + 1] : '\0';
  if (c == '%') {
    Token name = token(TokenKind::name, begin + 1, end_of_run(begin + 1, is_name_char));
    name.offset = begin;
    if (name.text.empty()) fail(begin, "expected a name behind '%'");
    return name;
  }
  if (c == '"') return scan_string();
  if (is_digit(c) || (c == '-' && is_digit(next)))
    return token(TokenKind::number, begin, end_of_number(begin));
  if (is_word_start(c) || (c == '-' && is_word_start(next)))
    return token(TokenKind::word, begin, end_of_run(begin + 1, is_word_char));
  return token(TokenKind::symbol, begin, begin + 1);
}

Token Lexer::scan_expression(size_t begin) const {
  const char c = text_[begin];
  if (is_digit(c)) return token(TokenKind::number, begin, end_of_number(begin));
  if (is_word_start(c)) return token(TokenKind::word, begin, end_of_run(begin, is_name_char));
  const bool pair =
      std::find(kOperators.begin(), kOperators.end(), text_.substr(begin, 2)) != kOperators.end();
  return token(TokenKind::symbol, begin, begin + (pair ? 2 : 1));
}

// Anything that may belong to a number; whether it is one is decided where it is used.
size_t Lexer::end_of_number(size_t begin) const {
  const bool hexadecimal = text_.substr(begin, 2) == "0x";
  for (size_t end = begin + 1;; ++end) {
    if (end == text_.size()) return end;
    const char c = text_[end], before = text_[end - 1];
    const bool exponent = !hexadecimal && (before == 'e' || before == 'E');
    if (!is_name_char(c) && c != '.' && !(exponent && (c == '+' || c == '-'))) return end;
  }
}

Token Lexer::scan_string() const {
  for (size_t end = position_ + 1; end < text_.size() && text_[end] != '\n'; ++end) {
    if (text_[end] == '\\')
      ++end;
    else if (text_[end] == '"')
      return token(TokenKind::string, position_, end + 1);
  }
  fail(position_, "expected '\"' at the end of a string, received the end of the line");
}

}  // namespace composit
