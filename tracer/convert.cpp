#include "tracer/convert.h"

#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <mutex>
#include <unordered_map>

#include "composit/ir/error.h"
#include "tracer/dispatch_key.h"
#include "tracer/distributed.h"
#include "tracer/geometry.h"

namespace flashlight::tracer {
namespace {

using composit::Attribute;
using composit::AttributeKind;

static_assert(static_cast<int>(composit::DType::bfloat16) ==
              static_cast<int>(c10::ScalarType::BFloat16));
static_assert(static_cast<int>(composit::DType::float4_e2m1fn_x2) ==
              static_cast<int>(c10::ScalarType::Float4_e2m1fn_x2));
static_assert(static_cast<int>(composit::DType::count_) ==
              static_cast<int>(c10::ScalarType::Undefined));
static_assert(static_cast<int>(composit::Layout::jagged) == static_cast<int>(c10::Layout::Jagged));
static_assert(static_cast<int>(composit::MemoryFormat::channels_last_3d) ==
              static_cast<int>(c10::MemoryFormat::ChannelsLast3d));

c10::TypePtr without_optional(const c10::TypePtr& type) {
  if (const auto* optional = type->castRaw<c10::OptionalType>()) return optional->getElementType();
  return type;
}

// Schemas spell dtype, layout and memory format as enumerations of their own, but carry them as
// int.
Attribute int_attribute(int64_t value, const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::ScalarTypeType:
      return static_cast<composit::DType>(value);
    case c10::TypeKind::LayoutType:
      return static_cast<composit::Layout>(value);
    case c10::TypeKind::MemoryFormatType:
      return static_cast<composit::MemoryFormat>(value);
    case c10::TypeKind::NumberType:
      return composit::Scalar(value);
    default:
      return value;
  }
}

AttributeKind element_kind(const c10::TypePtr& type) {
  switch (without_optional(type)->kind()) {
    case c10::TypeKind::BoolType:
      return AttributeKind::boolean;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return AttributeKind::dim;
    case c10::TypeKind::FloatType:
      return AttributeKind::float_;
    case c10::TypeKind::ComplexType:
      return AttributeKind::complex;
    case c10::TypeKind::StringType:
      return AttributeKind::string;
    case c10::TypeKind::NumberType:
      return AttributeKind::scalar;
    case c10::TypeKind::ScalarTypeType:
      return AttributeKind::dtype;
    case c10::TypeKind::ListType:
      return AttributeKind::list;
    default:
      return AttributeKind::none;
  }
}

// LibTorch wraps an object anew for each call: equal is what holds the same one.
std::shared_ptr<const c10::IValue> one_for_all(const c10::IValue& value) {
  if (!value.isObject() || value.toObjectRef().slots().empty() ||
      !value.toObjectRef().getSlot(0).isCapsule())
    return std::make_shared<c10::IValue>(value);
  static auto* mutex = new std::mutex;
  static auto* known = new std::unordered_map<const void*, std::weak_ptr<const c10::IValue>>;
  std::lock_guard lock(*mutex);
  std::weak_ptr<const c10::IValue>& first =
      (*known)[value.toObjectRef().getSlot(0).toCapsule().get()];
  if (auto alive = first.lock()) return alive;
  auto fresh = std::make_shared<const c10::IValue>(value);
  first = fresh;
  return fresh;
}

Attribute opaque(const c10::IValue& value) {
  return composit::Opaque{value.tagKind(), one_for_all(same_object(value))};
}

Attribute list_attribute(const c10::IValue& value, const c10::TypePtr& type) {
  const c10::List<c10::IValue> items = value.toList();
  const auto* list_type = type->castRaw<c10::ListType>();
  const c10::TypePtr element = list_type ? list_type->getElementType() : items.elementType();
  composit::List list{element_kind(element), {}};
  list.items.reserve(items.size());
  for (const c10::IValue& item : items) list.items.push_back(to_attribute(item, element));
  return list;
}

c10::IValue list_ivalue(const composit::List& list, const c10::TypePtr& type,
                        const GeneratorOf& generator) {
  const auto list_type = type->cast<c10::ListType>();
  COMPOSIT_ASSERT(list_type, "a list attribute where the schema has " + type->str());
  const c10::TypePtr element = list_type->getElementType();
  // The dispatcher unboxes lists of the types' real element: a ScalarType is an int there.
  const c10::TypeKind kind = element->kind();
  const bool as_int = kind == c10::TypeKind::ScalarTypeType || kind == c10::TypeKind::SymIntType;
  c10::impl::GenericList result(as_int ? c10::TypePtr(c10::IntType::get()) : element);
  result.reserve(list.items.size());
  for (const Attribute& item : list.items) result.push_back(to_ivalue(item, element, generator));
  return result;
}

}  // namespace

composit::DType to_composit(c10::ScalarType dtype) { return static_cast<composit::DType>(dtype); }
composit::Layout to_composit(c10::Layout layout) { return static_cast<composit::Layout>(layout); }
composit::Device to_composit(c10::Device device) {
  return {static_cast<int8_t>(device.type()), static_cast<int8_t>(device.index())};
}
c10::ScalarType to_c10(composit::DType dtype) { return static_cast<c10::ScalarType>(dtype); }
c10::Layout to_c10(composit::Layout layout) { return static_cast<c10::Layout>(layout); }
c10::Device to_c10(composit::Device device) {
  return c10::Device(static_cast<c10::DeviceType>(device.type), device.index);
}

bool is_readable(const at::Tensor& tensor) {
  return tensor.has_storage() && tensor.layout() == c10::Layout::Strided && !tensor.is_meta() &&
         !at::isTensorSubclassLike(tensor);
}

bool has_memory(const at::Tensor& tensor) {
  return is_readable(tensor) && tensor.device().is_cpu();
}

at::Tensor on_host(const at::Tensor& tensor) {
  if (!tensor.defined() || !is_readable(tensor)) return {};
  if (tensor.device().is_cpu()) return tensor;
  const Unseen unseen;
  return tensor.to(c10::Device(c10::kCPU));
}

composit::Array to_array(const at::Tensor& tensor) {
  if (!has_memory(tensor))
    throw composit::UserError("[array] expected a strided tensor on the CPU, received " +
                              tensor.toString());
  // Autograd's zeros have no memory.
  if (tensor._is_zerotensor()) return to_array(at::zeros(tensor.sizes(), tensor.options()));
  auto owner = std::make_shared<at::Tensor>(tensor);
  const void* data = tensor.const_data_ptr();
  return composit::Array(type_of(tensor), std::move(owner), data);
}

at::Tensor to_tensor(const composit::Array& array) {
  const composit::Type& type = array.type();
  const auto options = at::TensorOptions().dtype(to_c10(type.dtype));
  auto* data = const_cast<std::byte*>(array.data());  // from_blob has no const form
  at::Tensor tensor = at::from_blob(
      data, type.sizes, type.strides, [owner = array.owner()](void*) {}, options);
  if (type.conj) tensor._set_conj(true);
  if (type.neg) tensor._set_neg(true);
  return tensor;
}

composit::Scalar to_composit(const c10::Scalar& scalar) {
  if (scalar.isBoolean()) return composit::Scalar(scalar.toBool());
  if (scalar.isIntegral(false)) return composit::Scalar(scalar.toLong());
  if (scalar.isFloatingPoint()) return composit::Scalar(scalar.toDouble());
  const auto value = scalar.toComplexDouble();
  return composit::Scalar(std::complex<double>(value.real(), value.imag()));
}

c10::Scalar to_c10(const composit::Scalar& scalar) {
  return std::visit(
      [](auto value) -> c10::Scalar {
        if constexpr (std::is_same_v<decltype(value), std::complex<double>>)
          return c10::complex<double>(value.real(), value.imag());
        else
          return value;
      },
      scalar.value);
}

Attribute numbers_attribute(const std::vector<c10::IValue>& numbers) {
  composit::List list{composit::AttributeKind::scalar, {}};
  for (const c10::IValue& number : numbers)
    list.items.push_back(to_attribute(number, c10::NumberType::get()));
  return list;
}

Attribute constant_attribute(const at::Tensor& tensor) {
  if (tensor.layout() == c10::Layout::Strided && tensor.device().is_cpu()) return to_array(tensor);
  return composit::Opaque{tensor.toString(), std::make_shared<c10::IValue>(tensor)};
}

Attribute to_attribute(const c10::IValue& value, const c10::TypePtr& declared) {
  const c10::TypePtr type = without_optional(declared);
  const bool number = type->kind() == c10::TypeKind::NumberType;
  if (value.isNone()) return {};
  if (value.isBool())
    return number ? Attribute(composit::Scalar(value.toBool())) : Attribute(value.toBool());
  if (value.isInt()) return int_attribute(value.toInt(), type);
  if (value.isDouble())
    return number ? Attribute(composit::Scalar(value.toDouble())) : Attribute(value.toDouble());
  if (value.isComplexDouble()) {
    const auto number_value = value.toComplexDouble();
    const std::complex<double> plain(number_value.real(), number_value.imag());
    return number ? Attribute(composit::Scalar(plain)) : Attribute(plain);
  }
  if (value.isString() && type->kind() == c10::TypeKind::GeneratorType)
    return composit::Generator{value.toStringRef()};
  if (value.isString()) return value.toStringRef();
  if (value.isDevice()) return to_composit(value.toDevice());
  if (value.isList()) return list_attribute(value, type);
  return opaque(value);
}

c10::IValue to_ivalue(const Attribute& attribute, const c10::TypePtr& declared,
                      const GeneratorOf& generator) {
  const c10::TypePtr type = without_optional(declared);
  switch (attribute.kind()) {
    case AttributeKind::none:
      return {};
    case AttributeKind::boolean:
      return attribute.as<bool>();
    case AttributeKind::dim:
      return attribute.as_int();
    case AttributeKind::float_:
      return attribute.as<double>();
    case AttributeKind::complex: {
      const auto value = attribute.as<std::complex<double>>();
      return c10::complex<double>(value.real(), value.imag());
    }
    case AttributeKind::string:
      return attribute.as<std::string>();
    case AttributeKind::dtype:
      return static_cast<int64_t>(attribute.as<composit::DType>());
    case AttributeKind::layout:
      return static_cast<int64_t>(attribute.as<composit::Layout>());
    case AttributeKind::memory_format:
      return static_cast<int64_t>(attribute.as<composit::MemoryFormat>());
    case AttributeKind::device:
      return to_c10(attribute.as<composit::Device>());
    case AttributeKind::generator:
      return generator(attribute.as<composit::Generator>().role);
    case AttributeKind::scalar:
      return to_c10(attribute.as<composit::Scalar>());
    case AttributeKind::list:
      return list_ivalue(attribute.as<composit::List>(), type, generator);
    case AttributeKind::opaque:
      return *static_cast<const c10::IValue*>(attribute.as<composit::Opaque>().object.get());
    case AttributeKind::array:
    case AttributeKind::region:
      break;
  }
  throw composit::UserError("an attribute of kind " +
                            std::string(composit::name(attribute.kind())) +
                            " cannot be passed to LibTorch as " + type->str());
}

}  // namespace flashlight::tracer
