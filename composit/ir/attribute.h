// Attributes: the arguments of an operation that are not tensors. They are data that is printed,
// parsed, hashed and compared without code for each operation.
//
//   Attribute alpha = Scalar(1.5);   Attribute dims = int_list({0, -1});   alpha == Scalar(1.5);
//
// Doubles compare by their bits: NaN equals the same NaN, +0 differs from -0.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "composit/ir/array.h"
#include "composit/ir/dtype.h"
#include "composit/ir/hash.h"
#include "composit/ir/symbol.h"

namespace composit {

class Attribute;
class Graph;

// A number with its kind, as `alpha` of `add`. `wrapped` is torch's bit of the same name: the
// number was written in the program next to a tensor, and only its category (bool, integer, float)
// counts in type promotion.
struct Scalar {
  using Value = std::variant<bool, int64_t, double, std::complex<double>>;  // the kinds of number
  Value value = int64_t{0};                                                 // the number
  bool wrapped = false;                                                     // as above

  Scalar() = default;
  // `value` as it is; see `wrapped` above.
  explicit Scalar(Value value, bool wrapped = false) : value(value), wrapped(wrapped) {}
  bool operator==(const Scalar& other) const;
};

// A random generator by its role: "default", or the name of an explicit one ("generator_0").
struct Generator {
  std::string role;  // "default", "generator_0"
  bool operator==(const Generator&) const = default;
};

// An object only the running process knows (a TorchBind class). Compared by address; it cannot be
// saved.
struct Opaque {
  std::string description;             // for people
  std::shared_ptr<const void> object;  // its type is known to its user only
  bool operator==(const Opaque& other) const { return object == other.object; }
};

// A graph that a node runs: a branch, the body of a loop, the inside of a composite.
using Region = std::shared_ptr<const Graph>;

// The kinds of attribute. An integer in a graph's text has the kind `dim`.
enum class AttributeKind : uint8_t {
  none,
  boolean,
  dim,
  float_,
  complex,
  string,
  dtype,
  device,
  layout,
  memory_format,
  generator,
  scalar,
  list,
  array,
  region,
  opaque
};
// "none", "boolean", "dim", …
std::string_view name(AttributeKind kind);

// A list stores the kind of its elements, so an empty list has a type, too. Elements may be none
// (optional elements).
struct List {
  AttributeKind element = AttributeKind::none;  // kind of the items that are not none
  std::vector<Attribute> items;                 // in order
  bool operator==(const List& other) const;
};
// The kind that all elements other than none have; `none` if there are no such elements or several
// kinds.
AttributeKind common_kind(const List& list);

class Attribute {
 public:
  // The alternatives stand in the order of AttributeKind.
  using Value =
      std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string, DType,
                   Device, Layout, MemoryFormat, Generator, Scalar, List, Array, Region, Opaque>;

  Attribute() = default;
  // An attribute that holds `value`, one of the alternatives.
  template <class T,
            class = std::enable_if_t<std::is_constructible_v<Value, std::in_place_type_t<T>, T>>>
  Attribute(T value)
      : value_(std::in_place_type<T>, std::move(value)) {
  }  // NOLINT: every alternative is an Attribute
  // A string.
  Attribute(const char* text) : value_(std::string(text)) {}  // NOLINT
  // An integer, as a dim.
  Attribute(int value) : value_(int64_t{value}) {}  // NOLINT

  // The kind of the value.
  AttributeKind kind() const { return static_cast<AttributeKind>(value_.index()); }
  const Value& value() const { return value_; }  // the alternative that it holds
  // True for an optional argument that is left out.
  bool is_none() const { return value_.index() == 0; }

  // The value as T, one of the alternatives. Throws UserError naming both kinds when it is another.
  template <class T>
  const T& as() const {
    if (const T* value = std::get_if<T>(&value_)) return *value;
    throw_wrong_kind(Value(std::in_place_type<T>).index());
  }
  // The same; nullptr for a value of another kind.
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&value_);
  }
  // The integer of a dim; UserError for a value of another kind.
  int64_t as_int() const { return as<int64_t>(); }

  bool operator==(const Attribute& other) const;
  // Kind and value, doubles by their bits.
  void add_to(Hasher& hasher) const;

 private:
  [[noreturn]] void throw_wrong_kind(size_t expected) const;
  Value value_;
};

// An attribute of a node, by the name of the schema's argument.
struct NamedAttribute {
  std::string_view key() const { return name.str(); }  // the name as text
  Symbol name;                                         // of the argument
  Attribute value;                                     // of the argument
  bool operator==(const NamedAttribute&) const = default;
};
// The attributes of a node, in the order of its schema.
using Attributes = std::vector<NamedAttribute>;
// The value of the attribute `name`; nullptr if there is none.
const Attribute* find(const Attributes& attributes, Symbol name);

// Lists of one kind.
List int_list(const std::vector<int64_t>& values);
List bool_list(const std::vector<bool>& values);
List float_list(const std::vector<double>& values);
// The integers of a list of Dims; UserError for other lists.
std::vector<int64_t> to_ints(const Attribute& attribute);

}  // namespace composit
