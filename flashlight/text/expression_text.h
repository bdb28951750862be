// The text of a scalar expression, with the positions where a line may break.
//
//   ExpressionText sum = ExpressionText("a * b") + " + c";
#pragma once

#include <string>
#include <vector>

namespace flashlight::text {

class ExpressionText {
 public:
  // After + or -, after * or /, of the outermost level; before a subscript of a single element.
  enum class Cut { sum, factor, subscript };

  ExpressionText(std::string text) : text_(std::move(text)) {}  // NOLINT
  ExpressionText(const char* text) : text_(text) {}             // NOLINT
  static ExpressionText accumulator(const std::string& text);   // fill() replaces it

  const std::string& str() const { return text_; }
  size_t size() const { return text_.size(); }

  // Joins two texts, without their cuts: those are not of the outermost level of a longer text.
  friend ExpressionText operator+(ExpressionText x, const ExpressionText& y);
  // "x + y", which can be broken after the sign, and where x and y can.
  static ExpressionText binary(const ExpressionText& x, const std::string& sign,
                               const ExpressionText& y);

  void add_cut(Cut kind, size_t place) { cuts_.push_back({kind, place}); }
  // The last cut of that kind up to position `most`; 0 if there is none.
  size_t last_cut(Cut kind, size_t most) const;
  // The first cut of that kind; the text's size if there is none.
  size_t first_cut(Cut kind) const;

  size_t accumulators() const { return holes_.size(); }
  // The text with `value` instead of its only accumulator.
  ExpressionText fill(const std::string& value) const;

 private:
  struct Place {
    Cut kind;
    size_t at;
  };
  struct Hole {
    size_t at, size;
  };
  std::string text_;
  std::vector<Place> cuts_;
  std::vector<Hole> holes_;
};

// One element: "x[i][j]".
struct Element {
  std::string name;
  std::vector<std::string> indices = {};

  ExpressionText text() const;
  std::string str() const { return text().str(); }
};

}  // namespace flashlight::text
