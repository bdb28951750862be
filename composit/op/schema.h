// ATen's schemas: "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *,
// ScalarType? dtype=None) -> Tensor".
//
//   Schema schema = parse_schema(text);   schema.arguments[1].name == "dim";
//   print(schema) == text;
//
// Grammar and types are those of torch's native_functions README. Alias annotations ("(a!)") are
// kept: they say what is written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/attribute.h"
#include "composit/ir/symbol.h"

namespace composit {

// The types of arguments there are.
enum class ArgumentType : uint8_t {
  tensor,
  scalar,
  integer,
  symint,
  floating,
  boolean,
  complex,
  string,
  dtype,
  layout,
  device,
  memory_format,
  generator,
  dimname,
  stream,
  storage,
  other  // other: a class, by its name
};

// An argument, or a result.
struct SchemaArgument {
  ArgumentType type = ArgumentType::tensor;  // type; for a list, that of its items
  std::string type_name;                     // as written: "Tensor", "SymInt", "__torch__.Stack"
  bool optional = false;          // "Tensor?", and of a list: the list may be missing ("int[]?")
  bool list = false;              // "Tensor[]", "int[2]"
  bool optional_items = false;    // "Tensor?[]"
  std::optional<int64_t> length;  // "int[2]": also accepts one number for all
  std::string alias;              // alias of a tensor: "a", "a!", "a! -> b"; empty
  std::string list_alias;         // alias of the list itself: "Tensor[](a!)"
  std::string name;               // empty for a result without one
  std::optional<std::string> default_text;  // as written: "1", "None", "[]", "Mean"
  bool keyword_only = false;                // comes after "*"

  // True for a tensor; true for a list of tensors.
  bool is_tensor() const { return type == ArgumentType::tensor; }
  // True if the operation writes to the tensor, or to the tensors of the list.
  bool written() const { return alias.find('!') != std::string::npos; }
};

struct Schema {
  Symbol name;                            // with overload: "aten::sum.dim_IntList"
  std::vector<SchemaArgument> arguments;  // in order
  std::vector<SchemaArgument> results;    // in order
};

// UserError with the place in `text`.
Schema parse_schema(std::string_view text);
// The text that is parsed to this schema.
std::string print(const Schema& schema);
// The default as an attribute of the kind that the tracer records for the type; nothing where the
// schema gives none. "Mean" and "Sum" are 1 and 2, as in torch's reductions; "contiguous_format" a
// memory format.
std::optional<Attribute> default_of(const SchemaArgument& argument);

}  // namespace composit
