// The state of printing. For print.cpp and print_value.cpp only.
#pragma once

#include <ostream>
#include <string>
#include <string_view>

#include "composit/ir/print.h"

namespace composit {

class Printer {
 public:
  explicit Printer(const PrintOptions& options, std::ostream* sink = nullptr)
      : options_(options), sink_(sink) {}

  void graph(const Graph& graph, std::string_view keyword);
  void node(const Node& node, const Names& names);
  void type(const Type& type);
  void value(const Attribute& attribute);

  std::string take() { return std::move(text_); }
  // Hands the text to the sink, if there is one.
  void flush();

 private:
  // The attribute or output that is being printed, if its node has formulas.
  struct Place {
    const NodeFormulas* formulas = nullptr;
    const Names* names = nullptr;
    IntegerFormula::Of of = IntegerFormula::Of::attribute;
    size_t number = 0, position = 0;  // position: of the next integer
  };

  void header(const Graph& graph, const Names& names, std::string_view keyword);
  void input(const Node& node, const Names& names, InputKind unmarked);
  void statements(const Graph& graph, const Names& names);
  void operands(const Node& node, const Names& names, bool& first);
  void attributes(const Attributes& attributes, IntegerFormula::Of of, std::string_view array_hint,
                  bool& first);
  void annotations(const Node& node);
  void key(std::string_view key);
  void new_line() { text_.append(1, '\n').append(2 * indent_, ' '); }
  void separate(bool& first);

  void integer(int64_t value);  // or the formula at the place, which moves on
  void scalar(const Scalar& scalar);
  void complex(std::complex<double> value);
  void list(const List& list);
  void array(const Array& array);
  void elements(const Array& array);
  void region(const Region& region);
  void call(std::string_view function, std::string_view word);
  void call_quoted(std::string_view function, std::string_view text);

  const PrintOptions& options_;
  std::ostream* sink_;
  std::string text_;
  size_t indent_ = 0;
  Place place_;
  std::string_view array_hint_;  // a name for an array that goes to the store
};

}  // namespace composit
