// One application of an operation: its arguments in the order of the schema, defaults filled in.
//
//   Call from_node = call_of(node, schema);      // of a node of a graph
//   Call call(schema, {x, Ints{1}, true});       // of values, in order; trailing ones may miss
//   NodePtr made = call.node(types);
#pragma once

#include <initializer_list>
#include <optional>
#include <variant>
#include <vector>

#include "composit/ir/node.h"
#include "composit/op/schema.h"

namespace composit {

// A value for an argument: a tensor (absent for an optional one that is missing), a list of
// tensors, or data.
class ArgumentValue {
 public:
  ArgumentValue() = default;                                       // none
  ArgumentValue(LazyTensor tensor) : value_(std::move(tensor)) {}  // NOLINT: any of these is one
  // No tensor is an absent one.
  ArgumentValue(std::optional<LazyTensor> x) : value_(x.value_or(LazyTensor())) {}  // NOLINT
  ArgumentValue(LazyTensors tensors) : value_(std::move(tensors)) {}                // NOLINT
  ArgumentValue(Attribute data) : value_(std::move(data)) {}                        // NOLINT
  ArgumentValue(bool data) : value_(Attribute(data)) {}                             // NOLINT
  ArgumentValue(int data) : value_(Attribute(data)) {}                              // NOLINT
  ArgumentValue(int64_t data) : value_(Attribute(data)) {}                          // NOLINT
  ArgumentValue(double data) : value_(Attribute(data)) {}                           // NOLINT
  ArgumentValue(const char* data) : value_(Attribute(data)) {}                      // NOLINT
  ArgumentValue(std::string data) : value_(Attribute(std::move(data))) {}           // NOLINT
  ArgumentValue(DType data) : value_(Attribute(data)) {}                            // NOLINT
  ArgumentValue(std::optional<DType> data) {                                        // NOLINT
    if (data) value_ = Attribute(*data);
  }
  ArgumentValue(Scalar data) : value_(Attribute(std::move(data))) {}                      // NOLINT
  ArgumentValue(const std::vector<int64_t>& data) : value_(Attribute(int_list(data))) {}  // NOLINT
  ArgumentValue(const std::vector<bool>& data) : value_(Attribute(bool_list(data))) {}    // NOLINT

  // A tensor, defined or absent.
  bool is_tensor() const { return std::holds_alternative<LazyTensor>(value_); }
  bool is_list() const { return std::holds_alternative<LazyTensors>(value_); }  // a list of tensors
  bool is_none() const;  // a tensor or data that is not there
  // std::bad_variant_access where it is something else.
  const LazyTensor& tensor() const { return std::get<LazyTensor>(value_); }
  // The list of tensors, or the data; std::bad_variant_access for another kind.
  const LazyTensors& tensors() const { return std::get<LazyTensors>(value_); }
  const Attribute& data() const { return std::get<Attribute>(value_); }

 private:
  std::variant<Attribute, LazyTensor, LazyTensors> value_;
};

class Call {
 public:
  // Brings data to the kind the schema says: an integer for a Scalar becomes a Scalar, one number
  // for "int[2]" a list of two, a number for a Tensor a wrapped zero-dimensional constant.
  // UserError naming operation and argument: too many, one without default missing, another kind.
  Call(const Schema& schema, std::vector<ArgumentValue> values);

  const Schema& schema() const { return *schema_; }  // which has to outlive the call
  // An argument by its index in the schema.
  const ArgumentValue& operator[](size_t argument) const { return arguments_[argument]; }
  const ArgumentValue& operator[](std::string_view name) const;  // InternalError: no such argument
  size_t size() const { return arguments_.size(); }              // number of arguments

  // Tensors in the order of the schema: one entry per tensor argument (absent if it is missing) and
  // per item of a list.
  const LazyTensors& tensors() const { return tensors_; }
  // For a tensor argument: the index of its first entry in `tensors`, and its operand number in the
  // node and in the loop form. Operand numbers count the tensors that are defined, and every item
  // of a list.
  size_t first_tensor(size_t argument) const { return first_tensor_[argument]; }
  size_t operand(size_t tensor) const { return operands_[tensor]; }
  // By operand number; undefined_type for an item of a list that is missing.
  const std::vector<Type>& operand_types() const { return operand_types_; }

  // A new node of the operation with these types of outputs.
  NodePtr node(std::vector<Type> results) const;

 private:
  friend Call call_of(const Node& node, const Schema& schema, const LazyTensors& operands);
  explicit Call(const Schema& schema) : schema_(&schema) {}
  void number_tensors();

  const Schema* schema_;
  std::vector<ArgumentValue> arguments_;
  LazyTensors tensors_;
  std::vector<size_t> first_tensor_, operands_;
  std::vector<Type> operand_types_;
};

// True if `tensor` is a number that the program wrote beside tensors: torch's wrapped number.
bool is_wrapped_number(const LazyTensor& tensor);

// `schema` must outlive the result. Operands beyond the schema's (what a closed composite takes
// from outside) are left out.
Call call_of(const Node& node, const Schema& schema);
// The same call with other operands, as many.
Call call_of(const Node& node, const Schema& schema, const LazyTensors& operands);

}  // namespace composit
