// The state of parsing. For parse.cpp and parse_value.cpp only.
#pragma once

#include <string_view>
#include <vector>

#include "composit/ir/flat_map.h"
#include "composit/ir/lexer.h"
#include "composit/ir/parse.h"

namespace composit {

class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options)
      : lexer_(text, options.file, options.first_line),
        arrays_(options.arrays),
        formulas_(options.formulas),
        rest_(options.rest) {}

  Graph run();

 private:
  explicit Parser(const Lexer& lexer) : lexer_(lexer), arrays_(nullptr) {}
  friend Type read_type(Lexer& lexer);
  friend Attribute read_constant(Lexer& lexer);

  // A body that is being read.
  struct Frame {
    FlatMap<std::string_view, LazyTensor> names;
    Graph::Parts parts;
  };

  // ---- graphs and nodes (parse.cpp)
  Graph body(InputKind unmarked);
  void input(InputKind unmarked);
  void statement();
  void mutation();
  void node();
  void argument(NodeSpec& spec);
  NamedAttribute attribute();
  void attributes(Attributes& attributes, std::string_view end);
  void node_attribute(Attributes& attributes, IntegerFormula::Of of);
  void remark(NodeSpec& spec) const;
  LazyTensor value();
  LazyTensors values(std::string_view end);
  NodePtr publish(NodeSpec&& spec, size_t offset);
  void define(const Token& name, LazyTensor value);
  void separator(std::string_view end);  // a comma, unless `end` follows
  Symbol key(std::string_view expected);

  // ---- types and attributes (parse_value.cpp)
  Type type();
  void type_property(Type& type, bool& has_strides);
  int64_t integer();
  int64_t integer_or_formula();  // at the place, which moves on
  double real();
  Attribute constant();
  Attribute word_constant();
  Attribute number_constant();
  Attribute list(AttributeKind element, bool infer);
  Attribute call(const Token& function);
  Device device();
  std::complex<double> complex();
  Scalar scalar();
  Array array();
  Array stored_array(const Type& type);
  Array inline_array(const Type& type, size_t offset);
  void element(DType dtype, std::vector<std::byte>& bytes);
  void part(DType dtype, std::vector<std::byte>& bytes);
  Region region();
  [[noreturn]] void fail_at(const Token& token, std::string_view expected) const;

  Lexer lexer_;
  // The attribute or output that is being read, and the formulas of its node so far.
  struct Place {
    IntegerFormula::Of of = IntegerFormula::Of::attribute;
    size_t number = 0, position = 0;  // position: of the next integer
    NodeFormulas formulas = {};
  };

  const ArrayStore* arrays_;
  Formulas* formulas_ = nullptr;
  std::function<void(Lexer&, const ParseOptions::Find&)> rest_;
  FlatMap<std::string_view, LazyTensor> names_;  // of the graph or region that ended last
  Place place_;
  Frame* frame_ = nullptr;
  size_t region_depth_ = 0, list_depth_ = 0;
  int64_t gaps_ = 0;  // bytes between elements of inline arrays
};

}  // namespace composit
