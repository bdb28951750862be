// Splits text into tokens. For parsers only.
//
//   Lexer lexer(text, file, 1);
//   if (lexer.accept("(")) name = lexer.take(TokenKind::name, "a name").text;
#pragma once

#include <string>
#include <string_view>

#include "composit/ir/literal.h"

namespace composit {

enum class TokenKind : uint8_t { end, name, word, number, string, symbol };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  // a name without its "%", a string with its quotes
  size_t offset = 0;      // in the text
};

// The rules by which words and operators are told apart.
enum class LexerStyle : uint8_t {
  graph,      // words as in `is_word`, "-inf" among them; symbols of one character
  expression  // words without '.' and ':', "-" never part of a token but "->"; operators as in C++
};

class Lexer {
 public:
  // Errors call the text `file`, and its first line `first_line`.
  Lexer(std::string_view text, std::string_view file, int first_line,
        LexerStyle style = LexerStyle::graph);

  const Token& peek() const { return token_; }
  bool at(std::string_view text) const;  // a symbol or word
  Token take();
  Token take(TokenKind kind, std::string_view expected);  // UserError for other kinds
  bool accept(std::string_view text);
  void expect(std::string_view text);
  // The content of a string token.
  std::string take_string(std::string_view expected);

  // The comment after the token taken last, on its line; without "#".
  std::string_view comment() const { return comment_; }

  [[noreturn]] void fail_expected(std::string_view expected) const;
  [[noreturn]] void fail(size_t offset, const std::string& message) const;

 private:
  void advance();
  void skip_space();
  Token scan() const;
  Token scan_expression(size_t begin) const;
  Token scan_string() const;
  Token token(TokenKind kind, size_t begin, size_t end) const;
  template <class Predicate>
  size_t end_of_run(size_t begin, Predicate predicate) const;
  size_t end_of_number(size_t begin) const;

  std::string_view text_, file_;
  int first_line_;
  LexerStyle style_;
  size_t position_ = 0;  // after `token_`
  Token token_;
  std::string_view comment_;
};

}  // namespace composit
