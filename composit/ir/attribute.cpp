#include "composit/ir/attribute.h"

#include <array>
#include <bit>

#include "composit/ir/error.h"
#include "composit/ir/graph.h"
#include "composit/ir/overload.h"

namespace composit {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<Attribute::Value>> kKindNames = {
    "none",   "bool",          "int",       "float",  "complex", "string", "dtype",  "device",
    "layout", "memory_format", "generator", "scalar", "list",    "array",  "region", "opaque"};

uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }

Hash hash_of(const Attribute& attribute) {
  Hasher hasher;
  attribute.add_to(hasher);
  return hasher.finish();
}

void add_complex(Hasher& hasher, std::complex<double> value) {
  hasher.add(bits(value.real()));
  hasher.add(bits(value.imag()));
}

void add_scalar(Hasher& hasher, const Scalar& scalar) {
  hasher.add(scalar.value.index() | static_cast<uint64_t>(scalar.wrapped) << 8);
  std::visit(Overload{[&](bool value) { hasher.add(static_cast<uint64_t>(value)); },
                      [&](int64_t value) { hasher.add(static_cast<uint64_t>(value)); },
                      [&](double value) { hasher.add(bits(value)); },
                      [&](std::complex<double> value) { add_complex(hasher, value); }},
             scalar.value);
}

void add_list(Hasher& hasher, const List& list) {
  hasher.add(static_cast<uint64_t>(list.element));
  hasher.add(static_cast<uint64_t>(list.items.size()));
  for (const Attribute& item : list.items) item.add_to(hasher);
}

template <class T>
List make_list(AttributeKind element, const std::vector<T>& values) {
  List list{element, {}};
  list.items.reserve(values.size());
  for (const auto& value : values) list.items.emplace_back(static_cast<T>(value));
  return list;
}

}  // namespace

std::string_view name(AttributeKind kind) { return kKindNames.at(static_cast<size_t>(kind)); }

bool Scalar::operator==(const Scalar& other) const {
  return hash_of(Attribute(*this)) == hash_of(Attribute(other));
}

bool List::operator==(const List& other) const {
  return element == other.element && items == other.items;
}

AttributeKind common_kind(const List& list) {
  AttributeKind kind = AttributeKind::none;
  for (const Attribute& item : list.items) {
    if (item.is_none() || item.kind() == kind) continue;
    if (kind != AttributeKind::none) return AttributeKind::none;
    kind = item.kind();
  }
  return kind;
}

void Attribute::add_to(Hasher& hasher) const {
  hasher.add(value_.index());
  const auto add = [&](auto word) { hasher.add(static_cast<uint64_t>(word)); };
  std::visit(
      Overload{[](std::monostate) {}, [&](bool value) { add(value); },
               [&](int64_t dim) { add(dim); }, [&](double value) { add(bits(value)); },
               [&](std::complex<double> value) { add_complex(hasher, value); },
               [&](const std::string& text) { hasher.add(std::string_view(text)); },
               [&](Device device) { add(device.type << 8 | (device.index & 0xff)); },
               [&](const Generator& generator) { hasher.add(std::string_view(generator.role)); },
               [&](const Scalar& scalar) { add_scalar(hasher, scalar); },
               [&](const List& list) { add_list(hasher, list); },
               [&](const Array& array) { hasher.add(array.content_hash()); },
               [&](const Region& region) { hasher.add(region->hash()); },
               [&](const Opaque& opaque) { add(reinterpret_cast<uintptr_t>(opaque.object.get())); },
               [&](auto enumerator) { add(enumerator); }},  // dtype, layout, memory format
      value_);
}

bool Attribute::operator==(const Attribute& other) const {
  return value_.index() == other.value_.index() && hash_of(*this) == hash_of(other);
}

void Attribute::throw_wrong_kind(size_t expected) const {
  throw UserError("[attribute] expected " + std::string(kKindNames.at(expected)) + ", received " +
                  std::string(name(kind())));
}

const Attribute* find(const Attributes& attributes, Symbol name) {
  for (const NamedAttribute& attribute : attributes)
    if (attribute.name == name) return &attribute.value;
  return nullptr;
}

List int_list(const std::vector<int64_t>& values) { return make_list(AttributeKind::dim, values); }
List bool_list(const std::vector<bool>& values) {
  return make_list(AttributeKind::boolean, values);
}
List float_list(const std::vector<double>& values) {
  return make_list(AttributeKind::float_, values);
}

std::vector<int64_t> to_ints(const Attribute& attribute) {
  const List& list = attribute.as<List>();
  std::vector<int64_t> values;
  values.reserve(list.items.size());
  for (const Attribute& item : list.items) values.push_back(item.as_int());
  return values;
}

}  // namespace composit
