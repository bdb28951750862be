#include "composit/interchange/onnx_read/operator_call.h"

#include <algorithm>

#include "composit/interchange/onnx/dtypes.h"
#include "composit/interchange/onnx/fields.h"
#include "composit/ir/error.h"
#include "composit/ops/native.h"

namespace composit::onnx_read {

namespace field = onnx::field;

size_t OperatorCall::size() const {
  size_t size = read_operands_ = operands_.size();
  while (size > 0 && !operands_[size - 1]) --size;
  return size;
}

const LazyTensor& OperatorCall::operand(size_t index) const {
  read_operands_ = std::max(read_operands_, index + 1);
  if (index >= operands_.size() || !operands_[index])
    throw UserError("operand " + std::to_string(index) + " is missing");
  return operands_[index];
}

LazyTensor OperatorCall::optional(size_t index) const {
  read_operands_ = std::max(read_operands_, index + 1);
  return index < operands_.size() ? operands_[index] : LazyTensor();
}

bool OperatorCall::wants(size_t result) const {
  return result < node_.outputs.size() && !node_.outputs[result].empty();
}

const AttributeProto* OperatorCall::find(std::string_view attribute) const {
  read_attributes_.insert(attribute);
  for (const AttributeProto* one : attributes_)
    if (one->name == attribute) return one;
  return nullptr;
}

const AttributeProto& OperatorCall::get(std::string_view attribute, int64_t type) const {
  const AttributeProto* found = find(attribute);
  if (found == nullptr) throw UserError("attribute '" + std::string(attribute) + "' is missing");
  if (found->type != type)
    throw UserError("attribute '" + std::string(attribute) + "' is of the kind " +
                    std::to_string(found->type) + ", expected " + std::to_string(type));
  return *found;
}

int64_t OperatorCall::integer(std::string_view attribute, std::optional<int64_t> otherwise) const {
  if (otherwise && !has(attribute)) return *otherwise;
  return get(attribute, field::kInt).i;
}

bool OperatorCall::flag(std::string_view attribute, bool otherwise) const {
  return integer(attribute, otherwise ? 1 : 0) != 0;
}

double OperatorCall::real(std::string_view attribute, std::optional<double> otherwise) const {
  if (otherwise && !has(attribute)) return *otherwise;
  return get(attribute, field::kFloat).f;
}

std::string OperatorCall::text(std::string_view attribute,
                               std::optional<std::string> otherwise) const {
  if (otherwise && !has(attribute)) return *otherwise;
  return std::string(get(attribute, field::kString).s);
}

Ints OperatorCall::ints(std::string_view attribute) const {
  return has(attribute) ? get(attribute, field::kInts).ints : Ints();
}

std::vector<double> OperatorCall::reals(std::string_view attribute) const {
  if (!has(attribute)) return {};
  const std::vector<float>& floats = get(attribute, field::kFloats).floats;
  return {floats.begin(), floats.end()};
}

std::vector<std::string> OperatorCall::texts(std::string_view attribute) const {
  if (!has(attribute)) return {};
  const Texts& texts = find(attribute)->strings;
  return {texts.begin(), texts.end()};
}

Array OperatorCall::tensor(std::string_view attribute) const {
  const AttributeProto& found = get(attribute, field::kTensor);
  if (found.t == nullptr) throw UserError("attribute '" + std::string(attribute) + "' is empty");
  return tensors_.read(*found.t);
}

DType OperatorCall::dtype(std::string_view attribute, std::optional<DType> otherwise) const {
  if (otherwise && !has(attribute)) return *otherwise;
  return type_of(integer(attribute), {}).dtype;
}

int64_t OperatorCall::axis(std::string_view attribute, std::optional<int64_t> otherwise,
                           const LazyTensor& x) const {
  return axis_of_rank(integer(attribute, otherwise), x.rank());
}

std::optional<Array> OperatorCall::find_value(size_t index) const {
  return known_.find(operand(index));
}

Array OperatorCall::value(size_t index) const {
  if (auto found = find_value(index)) return *found;
  throw UserError("operand " + std::to_string(index) + ", '" + std::string(node_.inputs[index]) +
                  "', has to be known when the model is read, and follows from its inputs");
}

Ints OperatorCall::known_ints(size_t index) const {
  const Array array = value(index);
  if (is_floating_point(array.type().dtype) || is_complex(array.type().dtype))
    throw UserError("operand " + std::to_string(index) + ": expected integers, received " +
                    std::string(name(array.type().dtype)));
  return elements<int64_t>(array);
}

std::vector<double> OperatorCall::known_reals(size_t index) const {
  return elements<double>(value(index));
}

int64_t OperatorCall::known_int(size_t index) const {
  const Ints values = known_ints(index);
  if (values.size() == 1) return values[0];
  throw UserError("operand " + std::to_string(index) + ": expected one number, received " +
                  std::to_string(values.size()));
}

double OperatorCall::known_real(size_t index) const {
  const std::vector<double> values = known_reals(index);
  if (values.size() == 1) return values[0];
  throw UserError("operand " + std::to_string(index) + ": expected one number, received " +
                  std::to_string(values.size()));
}

std::optional<Ints> OperatorCall::ints_of(size_t index, std::string_view attribute) const {
  if (optional(index)) return known_ints(index);
  if (has(attribute)) return ints(attribute);
  return std::nullopt;
}

void OperatorCall::pass_over(std::initializer_list<std::string_view> attributes,
                             size_t operands) const {
  read_attributes_.insert(attributes.begin(), attributes.end());
  read_operands_ = std::max(read_operands_, operands);
}

void OperatorCall::expect_all_read() const {
  for (const AttributeProto* attribute : attributes_)
    if (attribute->g == nullptr && !read_attributes_.contains(attribute->name))
      throw UserError("attribute '" + std::string(attribute->name) + "' is not understood");
  for (size_t i = read_operands_; i < operands_.size(); ++i)
    if (operands_[i]) throw UserError("operand " + std::to_string(i) + " is not understood");
}

void OperatorCall::refuse(const std::string& why) const { throw UserError(why); }

int64_t axis_of_rank(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    throw UserError("expected an axis of " + std::to_string(rank) + ", received " +
                    std::to_string(axis));
  return axis < 0 ? axis + rank : axis;
}

}  // namespace composit::onnx_read
