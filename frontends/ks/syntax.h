// Programs of Knossos' language as trees.
//
// ```text
//   (def relu3 Float (x : Float)
//     (if (lt x 0.0) 0.0 (mul x (mul x x))))
//   (gdef rev [relu3 Float])
// ```
//
// A function has one argument: several ones are a tuple.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace flashlight::ks {

// Counted from 1.
struct Position {
  int line = 0, column = 0;
};

struct Type {
  enum class Kind : uint8_t {
    integer,
    floating,
    boolean,
    string,
    tuple,
    tensor,
    lambda,
    linear_map
  };
  Kind kind = Kind::tuple;
  int rank = 0;                  // of a tensor
  std::vector<Type> parts = {};  // of a tuple; a tensor's element; domain and range of a function
  bool operator==(const Type&) const = default;
};

// "relu3", "[relu3 Float]", "[rev [relu3 Float]]".
struct Name {
  std::vector<std::string> derivations = {};  // the outermost first
  std::string function;
  std::optional<Type> argument = {};  // chooses among functions of one name
  bool operator==(const Name&) const = default;
};

struct Expression;
using ExpressionPtr = std::shared_ptr<const Expression>;  // never null

// Names of a variable, or of the items of a tuple.
struct Pattern {
  std::vector<std::string> names;
  bool is_tuple = false;
};

struct Constant {
  std::variant<int64_t, double, bool, std::string> value;
};
struct Variable {
  std::string name;
};
struct Call {
  Name function;
  std::vector<ExpressionPtr> arguments;
};
struct Let {
  Pattern pattern;
  ExpressionPtr value, body;
};
struct If {
  ExpressionPtr condition, then, otherwise;
};
struct Assert {
  ExpressionPtr condition, body;
};
struct Lambda {
  std::string parameter;
  Type type;  // of the parameter
  ExpressionPtr body;
};
struct TupleOf {
  std::vector<ExpressionPtr> items;
};
// A value of a type that nobody reads.
struct Dummy {
  Type type;
};

struct Expression {
  Position at;
  std::variant<Constant, Variable, Call, Let, If, Assert, Lambda, TupleOf, Dummy> form;
};

struct Parameter {
  std::string name;
  Type type;
  bool operator==(const Parameter&) const = default;
};

// The definition of a function.
struct Def {
  Name name;
  Type result;
  std::vector<Parameter> parameters;
  ExpressionPtr body;
};
// A function that is defined elsewhere.
struct Edef {
  Name name;
  Type result, argument;
};
// Asks for a derivative: "rev" of a function.
struct Gdef {
  std::string derivation;
  Name name;
};
// A rewrite: `left` equals `right` for all values of the parameters.
struct Rule {
  std::string name;
  std::vector<Parameter> parameters;
  ExpressionPtr left, right;
};

struct Declaration {
  Position at;
  std::variant<Def, Edef, Gdef, Rule> form;
};

struct Program {
  std::string file;
  std::vector<Declaration> declarations;
};

}  // namespace flashlight::ks
