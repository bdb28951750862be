#include "frontends/ks/tokens.h"

#include <algorithm>
#include <cctype>

#include "frontends/ks/parse.h"

namespace flashlight::ks {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_':!$%&*+.,/<=>?@\\^|-~").find(c) != std::string_view::npos;
}
bool continues_word(char c) { return is_digit(c) || starts_word(c); }

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::vector<Token> run() {
    if (text_.starts_with("\xef\xbb\xbf")) next_ = 3;  // the mark that some editors begin with
    for (skip(); next_ < text_.size(); skip()) one();
    add(Token::Kind::end, "", at_);
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const {
    return next_ + ahead < text_.size() ? text_[next_ + ahead] : '\0';
  }
  char take() {
    const char c = text_[next_++];
    at_ = c == '\n' ? Position{at_.line + 1, 1} : Position{at_.line, at_.column + 1};
    return c;
  }
  void add(Token::Kind kind, std::string text, Position at) {
    tokens_.push_back({kind, std::move(text), at});
  }

  // White space and comments.
  void skip() {
    for (;;) {
      if (std::isspace(static_cast<unsigned char>(peek())) != 0) {
        take();
      } else if (peek() == ';') {
        while (next_ < text_.size() && peek() != '\n') take();
      } else if (peek() == '#' && peek(1) == '|') {
        skip_block();
      } else {
        return;
      }
    }
  }
  // These nest.
  void skip_block() {
    const Position begin = at_;
    int depth = 0;
    do {
      if (next_ >= text_.size()) refuse(file_, begin, "a comment that does not end: expected |#");
      const bool opens = peek() == '#' && peek(1) == '|', closes = peek() == '|' && peek(1) == '#';
      depth += opens ? 1 : closes ? -1 : 0;
      if (opens || closes) take();
      take();
    } while (depth > 0);
  }

  void one() {
    const Position at = at_;
    const char c = peek();
    const bool is_signed = (c == '-' || c == '+') && is_digit(peek(1));
    if (c == '(' || c == ')' || c == '[' || c == ']') {
      take();
      add(c == '('   ? Token::Kind::open
          : c == ')' ? Token::Kind::close
          : c == '[' ? Token::Kind::open_name
                     : Token::Kind::close_name,
          std::string(1, c), at);
    } else if (c == '"') {
      add(Token::Kind::string, string(), at);
    } else if (is_digit(c) || is_signed) {
      std::string number;
      const auto is_exponent = [&] {
        return (peek() == '-' || peek() == '+') && (number.back() == 'e' || number.back() == 'E');
      };
      do number += take();
      while (is_digit(peek()) || peek() == '.' || peek() == 'e' || peek() == 'E' || is_exponent());
      if (continues_word(peek()))
        refuse(file_, at_,
               "expected a blank after the number " + number + ", received '" + character_here() +
                   "'");
      add(Token::Kind::number, number, at);
    } else if (starts_word(c)) {
      std::string word;
      while (continues_word(peek())) word += take();
      add(Token::Kind::word, word, at);
    } else {
      refuse(file_, at,
             "expected a word, a number, a string or a parenthesis, received '" + character_here() +
                 "'");
    }
  }
  // All bytes of a character of UTF-8; others that no terminal shows as \\x00.
  std::string character_here() const {
    const auto first = static_cast<unsigned char>(peek());
    const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    const auto follows = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
    const std::string_view all = text_.substr(next_, bytes);
    const bool whole = all.size() == bytes && std::all_of(all.begin() + 1, all.end(), follows);
    if (whole && (bytes > 1 || std::isprint(first) != 0)) return std::string(all);
    constexpr std::string_view kDigits = "0123456789abcdef";
    return std::string("\\x") + kDigits[first >> 4] + kDigits[first & 15];
  }

  std::string string() {
    const Position begin = at_;
    std::string value;
    for (take(); peek() != '"'; value += character())
      if (next_ >= text_.size()) refuse(file_, begin, "a string that does not end: expected \"");
    take();
    return value;
  }
  char character() {
    const Position at = at_;
    const char c = take();
    if (c != '\\') return c;
    switch (next_ < text_.size() ? take() : '\0') {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case '"':
        return '"';
      case '\\':
        return '\\';
      default:
        refuse(file_, at, R"(expected one of \n \t \" \\ in a string)");
    }
  }

  std::string_view text_;
  const std::string& file_;
  size_t next_ = 0;
  Position at_ = {1, 1};
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text, const std::string& file) {
  return Lexer(text, file).run();
}

}  // namespace flashlight::ks
