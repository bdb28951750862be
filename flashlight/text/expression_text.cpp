#include "flashlight/text/expression_text.h"

namespace flashlight::text {

ExpressionText ExpressionText::accumulator(const std::string& text) {
  ExpressionText result = text;
  result.holes_.push_back({0, text.size()});
  return result;
}

ExpressionText operator+(ExpressionText x, const ExpressionText& y) {
  x.cuts_.clear();
  for (const ExpressionText::Hole& hole : y.holes_)
    x.holes_.push_back({x.size() + hole.at, hole.size});
  x.text_ += y.text_;
  return x;
}

ExpressionText ExpressionText::binary(const ExpressionText& x, const std::string& sign,
                                      const ExpressionText& y) {
  ExpressionText result = x + " " + sign + " ";
  const size_t second = result.size();
  result = result + y;
  const auto take = [&](const ExpressionText& side, size_t from) {
    for (const Place& cut : side.cuts_)
      if (cut.kind != Cut::subscript) result.add_cut(cut.kind, from + cut.at);
  };
  take(x, 0);
  if (sign == "+" || sign == "-") result.add_cut(Cut::sum, second - 1);
  if (sign == "*" || sign == "/") result.add_cut(Cut::factor, second - 1);
  take(y, second);
  return result;
}

size_t ExpressionText::last_cut(Cut kind, size_t most) const {
  size_t last = 0;
  for (const Place& cut : cuts_)
    if (cut.kind == kind && cut.at <= most) last = cut.at;
  return last;
}

size_t ExpressionText::first_cut(Cut kind) const {
  for (const Place& cut : cuts_)
    if (cut.kind == kind) return cut.at;
  return size();
}

ExpressionText ExpressionText::fill(const std::string& value) const {
  const Hole& hole = holes_.at(0);
  return text_.substr(0, hole.at) + value + text_.substr(hole.at + hole.size);
}

ExpressionText Element::text() const {
  ExpressionText result = name;
  std::vector<size_t> cuts;
  for (const std::string& index : indices) {
    cuts.push_back(result.size());
    result = result + ("[" + index + "]");
  }
  for (const size_t cut : cuts) result.add_cut(ExpressionText::Cut::subscript, cut);
  return result;
}

}  // namespace flashlight::text
