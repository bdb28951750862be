#include "composit/ir/integers.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <string>

#include "composit/ir/error.h"
#include "composit/ir/literal.h"

namespace composit {
namespace {

// Calls `visit` for each integer, and sets it to the result.
using Visit = std::function<int64_t(int64_t)>;

template <class T>
void visit_elements(std::byte* data, int64_t count, const Visit& visit) {
  for (int64_t i = 0; i < count; ++i, data += sizeof(T)) {
    T element;
    std::memcpy(&element, data, sizeof(T));
    const int64_t now = visit(static_cast<int64_t>(element));
    element = static_cast<T>(now);
    if (static_cast<int64_t>(element) != now)
      throw UserError("[size formula] an array of integers of " + std::to_string(8 * sizeof(T)) +
                      " bits cannot hold " + std::to_string(now));
    std::memcpy(data, &element, sizeof(T));
  }
}

Array visit_array(const Array& array, const Visit& visit) {
  const bool is_integer =
      array.defined() && (array.type().dtype == DType::int64 || array.type().dtype == DType::int32);
  if (!is_integer || array.type().numel() > kMaxIntegerArray) return array;
  const Array dense = array.contiguous();
  std::vector<std::byte> bytes(dense.data(), dense.data() + dense.type().nbytes());
  const int64_t count = dense.type().numel();
  if (array.type().dtype == DType::int64)
    visit_elements<int64_t>(bytes.data(), count, visit);
  else
    visit_elements<int32_t>(bytes.data(), count, visit);
  return Array::copy_of(dense.type(), bytes.data()).with_strides(array.type().strides);
}

Attribute visit_integers(const Attribute& attribute, const Visit& visit) {
  if (const auto* dim = attribute.get_if<int64_t>()) return visit(*dim);
  if (const auto* scalar = attribute.get_if<Scalar>()) {
    const auto* integer = std::get_if<int64_t>(&scalar->value);
    return integer == nullptr ? attribute : Attribute(Scalar(visit(*integer), scalar->wrapped));
  }
  if (const auto* list = attribute.get_if<List>()) {
    List result{list->element, {}};
    for (const Attribute& item : list->items) result.items.push_back(visit_integers(item, visit));
    return result;
  }
  if (const auto* array = attribute.get_if<Array>()) return visit_array(*array, visit);
  return attribute;
}

// What is left of an attribute without its integers.
Attribute form_of(const Attribute& attribute) {
  return visit_integers(attribute, [](int64_t) { return 0; });
}

}  // namespace

std::vector<int64_t> integers_of(const Attribute& attribute) {
  std::vector<int64_t> integers;
  visit_integers(attribute, [&](int64_t integer) {
    integers.push_back(integer);
    return integer;
  });
  return integers;
}

Attribute with_integers(const Attribute& attribute, const std::vector<int64_t>& integers) {
  size_t next = 0;
  return visit_integers(attribute, [&](int64_t) { return integers.at(next++); });
}

bool same_form(const Attribute& a, const Attribute& b) {
  if (a.kind() == AttributeKind::region) return b.kind() == AttributeKind::region;
  return form_of(a) == form_of(b);
}

namespace {

std::optional<double> real_number_of(const Scalar& scalar) {
  if (const auto* whole = std::get_if<int64_t>(&scalar.value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&scalar.value)) return *number;
  return std::nullopt;
}

int64_t whole(double number) {
  constexpr double kLimit = 9007199254740992;  // 2^53: below it every integer has a double
  if (number != std::floor(number) || std::abs(number) > kLimit) {
    std::string text;
    append_float(text, number);
    throw UserError("[number] expected an integer, received " + text);
  }
  return static_cast<int64_t>(number);
}

template <class T>
Array array_of(const Type& type, T element) {
  return Array::copy_of(type, reinterpret_cast<const std::byte*>(&element));
}

}  // namespace

std::optional<double> real_number_of(const Attribute& attribute) {
  if (const auto* scalar = attribute.get_if<Scalar>()) return real_number_of(*scalar);
  if (const auto* number = attribute.get_if<double>()) return *number;
  if (const auto* dim = attribute.get_if<int64_t>()) return static_cast<double>(*dim);
  const auto* array = attribute.get_if<Array>();
  if (array == nullptr || !array->defined() || array->type().rank() != 0) return std::nullopt;
  if (array->type().dtype == DType::float64) return *reinterpret_cast<const double*>(array->data());
  if (array->type().dtype == DType::int64)
    return static_cast<double>(*reinterpret_cast<const int64_t*>(array->data()));
  return std::nullopt;
}

Attribute with_real_number(const Attribute& attribute, double number) {
  if (const auto* scalar = attribute.get_if<Scalar>())
    return std::holds_alternative<double>(scalar->value) ? Scalar(number, scalar->wrapped)
                                                         : Scalar(whole(number), scalar->wrapped);
  if (attribute.get_if<double>() != nullptr) return number;
  if (attribute.get_if<int64_t>() != nullptr) return whole(number);
  const Type& type = attribute.as<Array>().type();
  return type.dtype == DType::float64 ? array_of(type, number) : array_of(type, whole(number));
}

}  // namespace composit
