// Calls of NumPy's functions that tests/numpy/make_cases.py wrote, and their results.
//
//   for (const Case& one : read_cases(path)) if (const Function* f = find_function(one.name)) ...
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "composit/numpy/numpy.h"

namespace composit::numpy::test {

using Json = nlohmann::json;

struct Case {
  std::string name;
  Json args, named;
  std::string error;  // NumPy's exception; empty where it gave results
  std::vector<Array> results;

  std::string text() const;  // for messages: "sum(float64[2,3], axis=1)"

  size_t count() const { return args.size(); }
  NdArray array(size_t i) const { return array_of(args.at(i)); }
  NdArrays arrays(size_t i) const;
  Operand operand(size_t i) const { return operand_of(args.at(i)); }
  int64_t integer(size_t i) const { return args.at(i).get<int64_t>(); }
  Ints ints(size_t i) const { return args.at(i).get<Ints>(); }
  bool is_list(size_t i) const { return args.at(i).is_array(); }
  Indices indices(size_t i) const;
  Axes axes(size_t i) const { return axes_of(args.at(i)); }

  // The value at a name; `fallback` where it is missing, nothing where it is null.
  const Json& at(const std::string& key) const;
  Axes axis() const { return axes_of(at("axis")); }
  std::optional<int64_t> one_axis(std::optional<int64_t> fallback) const;
  std::optional<DType> dtype() const;
  template <class T>
  T get(const std::string& key, T fallback) const {
    return named.contains(key) ? named.at(key).get<T>() : fallback;
  }

  static NdArray array_of(const Json& json);
  static Operand operand_of(const Json& json);
  static Axes axes_of(const Json& json);
};

std::vector<Case> read_cases(const std::filesystem::path& file);

// The function of that name here, and how it is called; nullptr: there is none.
using Function = NdArrays (*)(const Case&);
Function find_function(const std::string& name);

}  // namespace composit::numpy::test
