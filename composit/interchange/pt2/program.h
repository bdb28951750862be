// What the graph of a file and its regions share while they are written: names, schemas, constants,
// and what cannot be written.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "composit/interchange/names.h"
#include "composit/interchange/pt2/format.h"
#include "composit/interchange/pt2/metadata.h"
#include "composit/ir/array.h"
#include "composit/ir/node.h"
#include "composit/op/schema.h"

namespace composit::pt2 {

class Symbols;
class SizedCases;

// A constant of the graph that stands in the archive.
struct Constant {
  std::string name;   // of the attribute: "constant_0"
  std::string input;  // of the graph's input: "c_constant_0"
  Array value;
};

class Program {
 public:
  // `schemas`: the full text of operators, as a saved capture has them. `symbols`: of a family.
  // `cases`: what its one node chooses between.
  explicit Program(const std::vector<std::string>& schemas, const Symbols* symbols = nullptr,
                   const SizedCases* cases = nullptr);

  // nullptr: all sizes are numbers.
  const Symbols* symbols() const { return symbols_; }
  // Those of the case that is written next; gives those from before.
  const Symbols* use(const Symbols* symbols) { return std::exchange(symbols_, symbols); }
  // nullptr: the structure is one.
  const SizedCases* cases() const { return cases_; }

  // The schema under which ATen knows the operator of a node; nullptr for one that is not ATen's.
  const Schema* schema_of(Symbol op);
  // The input that has this constant; equal arrays are stored once.
  const std::string& constant(const Array& value);
  const std::vector<Constant>& constants() const { return constants_; }

  // The name of a new value: "linear", "linear_2".
  std::string value_name(std::string_view hint) { return names_.identifier("", hint); }
  std::string input_name(const std::string& prefix, std::string_view name) {
    return names_.identifier(prefix, name);
  }

  interchange::Refusals& refusals() { return refusals_; }

 private:
  const Symbols* symbols_;
  const SizedCases* cases_;
  std::map<std::string, Schema, std::less<>> schemas_;
  interchange::UsedNames names_;
  std::vector<Constant> constants_;
  interchange::Refusals refusals_;
};

}  // namespace composit::pt2
