#include "flashlight/family_numbers.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "composit/ir/error.h"
#include "tracer/replay.h"

namespace flashlight {

using composit::list_of_numbers;
using composit::NumberOrigin;
using composit::NumberValues;
using composit::UserError;

namespace {

constexpr std::string_view kPrefix = "input";

bool all_equal(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; });
}

composit::NumberLeaf leaf_of(const std::string& name, const std::vector<NumberValues>& examples) {
  composit::NumberLeaf leaf{name, {}};
  for (size_t i = 0; i < examples.size(); ++i) {
    const auto found = examples[i].find(name);
    if (found == examples[i].end())
      throw UserError("[family] example " + std::to_string(i + 1) + " lacks the number '" + name +
                      "', which another one has");
    leaf.values.push_back(found->second);
  }
  return leaf;
}

}  // namespace

NumberValues numbers_of_arguments(const Structure& structure) {
  NumberValues numbers;
  for (const auto& [path, number] : numbers_in(structure, std::string(kPrefix))) {
    const std::string rest = path.substr(kPrefix.size() + 1);
    const bool by_place = std::isdigit(static_cast<unsigned char>(rest[0])) != 0;
    numbers.emplace(composit::number_name(by_place ? path : rest), number);
  }
  return numbers;
}

composit::NumbersShown numbers_shown(const std::vector<CaptureBase>& examples,
                                     const std::vector<NumberValues>& given) {
  composit::NumbersShown shown;
  std::set<std::string> names;
  for (const NumberValues& one : given)
    for (const auto& [name, number] : one) names.insert(name);
  for (const std::string& name : names) {
    composit::NumberLeaf leaf = leaf_of(name, given);
    if (name == composit::kCalls) {
      for (const double call : leaf.values) shown.calls.push_back(static_cast<int64_t>(call));
      continue;
    }
    if (all_equal(leaf.values))
      throw UserError("[family] expected examples with several numbers '" + name + "', received " +
                      list_of_numbers(leaf.values));
    shown.given.push_back(std::move(leaf));
  }
  std::vector<NumberValues> of_arguments;
  for (const CaptureBase& example : examples)
    of_arguments.push_back(numbers_of_arguments(example.argument_structure()));
  for (const auto& [name, number] : of_arguments.at(0)) {
    composit::NumberLeaf leaf = leaf_of(name, of_arguments);
    if (!all_equal(leaf.values)) shown.given.push_back(std::move(leaf));
  }
  return shown;
}

NumberValues with_present(const std::vector<FamilyNumber>& numbers, NumberValues values) {
  for (const FamilyNumber& number : numbers)
    if (!values.contains(number.name)) {
      if (!number.get)
        throw UserError("[family] expected the number '" + number.name +
                        "': give it with `with`, or a function that reads it");
      values.emplace(number.name, number.get());
    }
  return values;
}

namespace detail {

NumbersOfRun::NumbersOfRun(const std::vector<FamilyNumber>& numbers, const NumberValues& example)
    : values_(example) {
  for (const FamilyNumber& number : numbers) {
    const auto chosen = example.find(number.name);
    if (chosen == example.end()) continue;
    const double before = number.get ? number.get() : chosen->second;
    if (before == chosen->second) continue;
    if (!number.set)
      throw UserError("[family] an example has " + number.name + " = " +
                      list_of_numbers(std::vector<double>{chosen->second}) +
                      ", and the program has " + list_of_numbers(std::vector<double>{before}) +
                      ": set it there, or give a function that does");
    number.set(chosen->second);
    put_back_.push_back([set = number.set, before] { set(before); });
  }
  values_ = with_present(numbers, std::move(values_));
}

NumbersOfRun::~NumbersOfRun() {
  for (const auto& put_back : put_back_) put_back();
}

}  // namespace detail

void add_number_lines(const composit::Family& family, const std::string& which,
                      std::vector<std::string>& lines) {
  for (const composit::FreeNumber& number : family.numbers) {
    std::string line = which + number.name + ": ";
    if (number.origin == NumberOrigin::counted)
      line += "the number of the call";
    else if (number.origin == NumberOrigin::read)
      line += "a number that the program reads";
    else
      line += "a number that callers give";
    line += "; shown " + list_of_numbers(number.shown);
    if (is_given(number.origin)) line += "; taken beyond these, too, if some have its sign";
    lines.push_back(line);
  }
  for (const composit::NumberUse& use : family.number_uses)
    if (use.node->find_attribute(use.key) != nullptr)
      lines.push_back(which + "fitted: '" + use.key + "' of " + tracer::place_of(*use.node) +
                      " is " + print(use.formula));
}

}  // namespace flashlight
