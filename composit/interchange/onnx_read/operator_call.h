// One node of a model, as rules of operators see it.
//
//   LazyTensors relu(const OperatorCall& call) { return {relu(call.operand(0))}; }
//
// What a file may have wrong is UserError: an operand that is missing, an attribute of another
// kind, a value that a rule needs and that depends on inputs.
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "composit/interchange/onnx_read/arrays.h"
#include "composit/interchange/onnx_read/known.h"
#include "composit/interchange/onnx_read/proto.h"
#include "composit/ir/node.h"

namespace composit::onnx_read {

using Ints = std::vector<int64_t>;

class OperatorCall {
 public:
  // `attributes`: those of the node, with what the function around it was called with. `version`:
  // of the operator's domain.
  OperatorCall(const NodeProto& node, LazyTensors operands,
               std::vector<const AttributeProto*> attributes, int64_t version, Known& known,
               TensorReader& tensors)
      : node_(node),
        operands_(std::move(operands)),
        attributes_(std::move(attributes)),
        version_(version),
        known_(known),
        tensors_(tensors) {}

  const NodeProto& node() const { return node_; }
  int64_t version() const { return version_; }

  // Number of operands, absent ones at the end left out.
  size_t size() const;
  const LazyTensors& operands() const {
    read_operands_ = operands_.size();
    return operands_;
  }
  // UserError where it is absent.
  const LazyTensor& operand(size_t index) const;
  // Absent where it is.
  LazyTensor optional(size_t index) const;

  size_t results() const { return node_.outputs.size(); }
  // True if the result has a name.
  bool wants(size_t result) const;

  bool has(std::string_view attribute) const { return find(attribute) != nullptr; }
  int64_t integer(std::string_view attribute, std::optional<int64_t> otherwise = {}) const;
  bool flag(std::string_view attribute, bool otherwise = false) const;
  double real(std::string_view attribute, std::optional<double> otherwise = {}) const;
  std::string text(std::string_view attribute, std::optional<std::string> otherwise = {}) const;
  Ints ints(std::string_view attribute) const;                       // empty where it is not there
  std::vector<double> reals(std::string_view attribute) const;       // the same
  std::vector<std::string> texts(std::string_view attribute) const;  // the same
  Array tensor(std::string_view attribute) const;
  DType dtype(std::string_view attribute, std::optional<DType> otherwise = {}) const;
  // An axis of `x` counted from the front.
  int64_t axis(std::string_view attribute, std::optional<int64_t> otherwise,
               const LazyTensor& x) const;

  // The value of an operand, which may not depend on inputs.
  Array value(size_t index) const;
  std::optional<Array> find_value(size_t index) const;
  // True where values that are known become constants of the graph: see Known.
  bool folds() const { return known_.folds(); }
  Ints known_ints(size_t index) const;  // of any rank, row by row
  std::vector<double> known_reals(size_t index) const;
  int64_t known_int(size_t index) const;  // of one element
  double known_real(size_t index) const;  // the same
  // By the operand, where that is there, else by the attribute: ONNX made one of the other.
  std::optional<Ints> ints_of(size_t index, std::string_view attribute) const;

  // Says that a rule knows attributes and operands that it does not ask for in this case.
  void pass_over(std::initializer_list<std::string_view> attributes, size_t operands = 0) const;
  // UserError where there are attributes or operands that the rule did not ask for: they may change
  // what the operator means.
  void expect_all_read() const;
  // UserError: this call is not understood.
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  const AttributeProto* find(std::string_view attribute) const;
  const AttributeProto& get(std::string_view attribute, int64_t type) const;

  const NodeProto& node_;
  LazyTensors operands_;
  std::vector<const AttributeProto*> attributes_;
  int64_t version_;
  Known& known_;
  TensorReader& tensors_;
  mutable std::set<std::string_view> read_attributes_;
  mutable size_t read_operands_ = 0;  // from the first one on
};

// The axis of `rank` counted from the front. UserError where there is no such axis; unlike
// torch's, a number has none.
int64_t axis_of_rank(int64_t axis, int64_t rank);

}  // namespace composit::onnx_read
