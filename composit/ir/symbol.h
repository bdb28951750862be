// An interned name: operation, attribute or annotation key.
//
//   Symbol op("aten::add.Tensor");
//   op == Symbol("aten::add.Tensor");   // compares one pointer
//
// The text lives as long as the process. Only text is interned, never nodes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace composit {

class Symbol {
 public:
  Symbol() : Symbol(std::string_view()) {}  // the empty name
  // Looks the text up, or keeps it for good. Thread-safe.
  explicit Symbol(std::string_view text);

  const std::string& str() const { return *text_; }  // the text
  bool empty() const { return text_->empty(); }      // true for the empty name

  // "aten" of "aten::add.Tensor"; empty without "::".
  std::string_view domain() const;
  // "add" of "aten::add.Tensor".
  std::string_view base_name() const;

  // True if both are the same name.
  bool operator==(const Symbol& other) const { return text_ == other.text_; }

 private:
  const std::string* text_;
};

}  // namespace composit

template <>
struct std::hash<composit::Symbol> {
  size_t operator()(const composit::Symbol& symbol) const noexcept {
    return std::hash<const std::string*>()(&symbol.str());
  }
};
