// The structure of a C++ value (a tuple, a map, a user's struct), which is taken apart into tensors
// before a call and put together after it.
//
//   std::vector<at::Tensor> tensors;
//   Structure s = flatten(value, tensors);
//   str(s) == R"({"tuple":["tensor",{"map":[["mask","tensor"]]},{"value":"3"}]})";
//   auto again = unflatten<Value>(s, tensors);
//
// Tensors, optionals, vectors, arrays, pairs, tuples, maps, numbers, strings, and structs adapted
// with BOOST_HANA_ADAPT_STRUCT or BOOST_HANA_DEFINE_STRUCT, nested at will. Numbers and strings are
// part of the structure: a capture holds for the ones it was made with.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <boost/hana.hpp>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "composit/ir/error.h"

namespace flashlight {

struct Structure {
  // Absent: an undefined tensor, or an optional without value. Value: a number or string. List and
  // tuple have parts in order, a map has them by name.
  enum class Kind { tensor, absent, value, list, tuple, map };
  Kind kind = Kind::tensor;         // kind of this part
  std::string text;                 // Kind::value: the number or string as text
  std::vector<std::string> keys;    // Kind::map: of the children (members of a struct too)
  std::vector<Structure> children;  // parts of a list, tuple or map
  bool operator==(const Structure&) const = default;
};

// As JSON: {"tuple":["tensor",["tensor",null],{"value":"3"}]}.
std::string str(const Structure& structure);
// The inverse of str; UserError that shows what is wrong.
Structure parse_structure(std::string_view text);
// A name for each tensor in order: "input_0", "input_1.mask".
std::vector<std::string> tensor_names(const Structure& structure, const std::string& prefix);

// The numbers among the values, named like tensors: "input_2", "input_lr". Text that reads as a
// number is one.
std::map<std::string, double> numbers_in(const Structure& structure, const std::string& prefix);
// True if both differ in nothing but such numbers.
bool same_but_for_numbers(const Structure& a, const Structure& b);

namespace detail {

template <class T>
struct Codec;

template <class T>
concept AdaptedStruct = boost::hana::Struct<T>::value;

template <class T>
concept Arithmetic = std::is_arithmetic_v<T>;

// Takes tensors in order while a value is put together.
struct Reader {
  const std::vector<at::Tensor>& tensors;
  size_t next = 0;
  at::Tensor take() {
    if (next == tensors.size())
      throw composit::UserError("[structure] fewer tensors than the structure names");
    return tensors[next++];
  }
};

inline void expect(const Structure& structure, Structure::Kind kind, size_t children) {
  if (structure.kind != kind || structure.children.size() != children)
    throw composit::UserError("[structure] the value has another structure than the type: " +
                              str(structure));
}

template <class T>
Structure flatten(const T& value, std::vector<at::Tensor>& tensors) {
  return Codec<std::decay_t<T>>::flatten(value, tensors);
}
template <class T>
T unflatten(const Structure& structure, Reader& reader) {
  return Codec<T>::unflatten(structure, reader);
}

template <>
struct Codec<at::Tensor> {
  static Structure flatten(const at::Tensor& value, std::vector<at::Tensor>& tensors) {
    if (!value.defined()) return {Structure::Kind::absent, {}, {}, {}};
    tensors.push_back(value);
    return {};
  }
  static at::Tensor unflatten(const Structure& structure, Reader& reader) {
    if (structure.kind == Structure::Kind::absent) return {};
    expect(structure, Structure::Kind::tensor, 0);
    return reader.take();
  }
};

template <class T>
struct Codec<std::optional<T>> {
  static Structure flatten(const std::optional<T>& value, std::vector<at::Tensor>& tensors) {
    if (!value) return {Structure::Kind::absent, {}, {}, {}};
    return {Structure::Kind::tuple, {}, {}, {detail::flatten(*value, tensors)}};
  }
  static std::optional<T> unflatten(const Structure& structure, Reader& reader) {
    if (structure.kind == Structure::Kind::absent) return std::nullopt;
    expect(structure, Structure::Kind::tuple, 1);
    return detail::unflatten<T>(structure.children[0], reader);
  }
};

template <Arithmetic T>
struct Codec<T> {
  static Structure flatten(const T& value, std::vector<at::Tensor>&) {
    char text[40];
    if constexpr (std::is_floating_point_v<T>)
      std::snprintf(text, sizeof text, "%a", static_cast<double>(value));  // exact
    else
      std::snprintf(text, sizeof text, "%lld", static_cast<long long>(value));
    return {Structure::Kind::value, text, {}, {}};
  }
  static T unflatten(const Structure& structure, Reader&) {
    expect(structure, Structure::Kind::value, 0);
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(std::strtod(structure.text.c_str(), nullptr));
    return static_cast<T>(std::strtoll(structure.text.c_str(), nullptr, 10));
  }
};

template <>
struct Codec<std::string> {
  static Structure flatten(const std::string& value, std::vector<at::Tensor>&) {
    return {Structure::Kind::value, value, {}, {}};
  }
  static std::string unflatten(const Structure& structure, Reader&) {
    expect(structure, Structure::Kind::value, 0);
    return structure.text;
  }
};

template <class T>
struct Codec<std::vector<T>> {
  static Structure flatten(const std::vector<T>& value, std::vector<at::Tensor>& tensors) {
    Structure structure{Structure::Kind::list, {}, {}, {}};
    for (const auto& element : value)
      structure.children.push_back(detail::flatten<T>(element, tensors));
    return structure;
  }
  static std::vector<T> unflatten(const Structure& structure, Reader& reader) {
    expect(structure, Structure::Kind::list, structure.children.size());
    std::vector<T> value;
    for (const Structure& child : structure.children)
      value.push_back(detail::unflatten<T>(child, reader));
    return value;
  }
};

// Pairs, tuples and arrays: a fixed number of elements.
template <class T>
struct TupleCodec {
  static Structure flatten(const T& value, std::vector<at::Tensor>& tensors) {
    Structure structure{Structure::Kind::tuple, {}, {}, {}};
    std::apply(
        [&](const auto&... element) {
          (structure.children.push_back(detail::flatten(element, tensors)), ...);
        },
        value);
    return structure;
  }
  static T unflatten(const Structure& structure, Reader& reader) {
    expect(structure, Structure::Kind::tuple, std::tuple_size_v<T>);
    return elements(structure, reader, std::make_index_sequence<std::tuple_size_v<T>>());
  }

 private:
  template <size_t... I>
  static T elements([[maybe_unused]] const Structure& structure, [[maybe_unused]] Reader& reader,
                    std::index_sequence<I...>) {
    return T{detail::unflatten<std::decay_t<std::tuple_element_t<I, T>>>(structure.children[I],
                                                                         reader)...};
  }
};
template <class... T>
struct Codec<std::tuple<T...>> : TupleCodec<std::tuple<T...>> {};
template <class A, class B>
struct Codec<std::pair<A, B>> : TupleCodec<std::pair<A, B>> {};
template <class T, size_t N>
struct Codec<std::array<T, N>> : TupleCodec<std::array<T, N>> {};

template <class Key>
std::string key_text(const Key& key) {
  if constexpr (std::is_arithmetic_v<Key>)
    return std::to_string(key);
  else
    return std::string(key);
}
template <class Key>
Key key_from_text(const std::string& text) {
  if constexpr (std::is_arithmetic_v<Key>)
    return static_cast<Key>(std::stoll(text));
  else
    return Key(text);
}

// In the order of the keys, also for a hash map.
template <class Map>
struct MapCodec {
  using Key = typename Map::key_type;
  using Mapped = typename Map::mapped_type;
  static Structure flatten(const Map& value, std::vector<at::Tensor>& tensors) {
    Structure structure{Structure::Kind::map, {}, {}, {}};
    std::map<Key, const Mapped*> ordered;
    for (const auto& [key, mapped] : value) ordered.emplace(key, &mapped);
    for (const auto& [key, mapped] : ordered) {
      structure.keys.push_back(key_text(key));
      structure.children.push_back(detail::flatten(*mapped, tensors));
    }
    return structure;
  }
  static Map unflatten(const Structure& structure, Reader& reader) {
    expect(structure, Structure::Kind::map, structure.keys.size());
    Map value;
    for (size_t i = 0; i < structure.keys.size(); ++i)
      value.emplace(key_from_text<Key>(structure.keys[i]),
                    detail::unflatten<Mapped>(structure.children[i], reader));
    return value;
  }
};
template <class Key, class T>
struct Codec<std::map<Key, T>> : MapCodec<std::map<Key, T>> {};
template <class Key, class T>
struct Codec<std::unordered_map<Key, T>> : MapCodec<std::unordered_map<Key, T>> {};

template <AdaptedStruct T>
struct Codec<T> {
  static Structure flatten(const T& value, std::vector<at::Tensor>& tensors) {
    Structure structure{Structure::Kind::map, {}, {}, {}};
    boost::hana::for_each(boost::hana::accessors<T>(), [&](auto accessor) {
      structure.keys.emplace_back(boost::hana::to<char const*>(boost::hana::first(accessor)));
      structure.children.push_back(detail::flatten(boost::hana::second(accessor)(value), tensors));
    });
    return structure;
  }
  static T unflatten(const Structure& structure, Reader& reader) {
    T value{};
    size_t i = 0;
    boost::hana::for_each(boost::hana::accessors<T>(), [&](auto accessor) {
      auto& member = boost::hana::second(accessor)(value);
      expect(structure, Structure::Kind::map, structure.keys.size());
      if (i == structure.children.size())
        throw composit::UserError("[structure] fewer members than the struct has: " +
                                  str(structure));
      member = detail::unflatten<std::decay_t<decltype(member)>>(structure.children[i++], reader);
    });
    return value;
  }
};

}  // namespace detail

// Appends the tensors of `value` in order, and returns the structure that they have in it.
template <class T>
Structure flatten(const T& value, std::vector<at::Tensor>& tensors) {
  return detail::flatten(value, tensors);
}

// UserError if the structure is not one of a T, or if there are too few tensors.
template <class T>
T unflatten(const Structure& structure, const std::vector<at::Tensor>& tensors) {
  detail::Reader reader{tensors};
  return detail::unflatten<T>(structure, reader);
}

}  // namespace flashlight
