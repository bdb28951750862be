#include "composit/interchange/onnx_read/inputs.h"

#include "composit/interchange/onnx_read/arrays.h"
#include "composit/ir/error.h"

namespace composit::onnx_read {
namespace {

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

}  // namespace

int64_t Sizes::size_of(const ValueInfoProto& input, size_t axis) {
  const DimensionProto& dimension = (*input.shape)[axis];
  // Exporters write sizes that they do not know as -1, or call them all "?".
  if (dimension.value && *dimension.value >= 0) return *dimension.value;
  const std::string by_place = std::string(input.name) + "." + std::to_string(axis);
  const bool named = !dimension.parameter.empty() && dimension.parameter != "?";
  const std::string name(named ? dimension.parameter : by_place);
  known_.insert(name);
  for (const std::string& key : {by_place, name}) {
    const auto given = given_.find(key);
    if (given == given_.end()) continue;
    used_.insert(key);
    if (given->second < 0)
      throw UserError("the size '" + key + "' is given as " + std::to_string(given->second));
    return given->second;
  }
  missing_.insert(name);
  return 1;
}

Type Sizes::type_of(const ValueInfoProto& input) {
  const std::string name = "input '" + std::string(input.name) + "'";
  if (!input.is_tensor) throw UserError(name + " is no tensor: sequences and maps are not read");
  if (!input.shape) throw UserError(name + " has no shape in the model");
  Dims sizes;
  for (size_t axis = 0; axis < input.shape->size(); ++axis) sizes.push_back(size_of(input, axis));
  try {
    return onnx_read::type_of(input.data_type, sizes);
  } catch (const UserError& error) {
    throw UserError(name + ": " + error.what());
  }
}

std::optional<int64_t> Sizes::value_of(const ValueInfoProto& input, const Type& type) {
  const std::string name(input.name);
  const auto given = given_.find(name);
  const bool is_integer = type.dtype == DType::int64 || type.dtype == DType::int32;
  if (given == given_.end() || !is_integer || type.numel() != 1) return std::nullopt;
  used_.insert(name);
  return given->second;
}

void Sizes::expect_all_given() const {
  if (!missing_.empty())
    throw UserError("the model leaves these sizes open: " + joined(missing_) +
                    "; give them as in sizes={\"" + *missing_.begin() + "\": 2}, or --size " +
                    *missing_.begin() + "=2");
  for (const auto& [name, size] : given_)
    if (!used_.contains(name))
      throw UserError("the model has no open size '" + name + "'" +
                      (known_.empty() ? "" : "; it has " + joined(known_)));
}

}  // namespace composit::onnx_read
