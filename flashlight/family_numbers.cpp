#include "flashlight/family_numbers.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <set>

#include "composit/ir/error.h"
#include "flashlight/structure_numbers.h"
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

// The name that a number has in a family, of the one it has in a structure.
std::string name_of_path(const std::string& path) {
  const std::string rest = path.substr(kPrefix.size() + 1);
  const bool by_place = std::isdigit(static_cast<unsigned char>(rest[0])) != 0;
  return composit::number_name(by_place ? path : rest);
}

void expect_exact(const std::string& name, const std::string& text) {
  constexpr double kExact = 9007199254740992.0;  // from here on not each integer is a double
  if (!is_integer_text(text) || std::abs(std::strtod(text.c_str(), nullptr)) < kExact) return;
  throw UserError("[family] expected an integer below 2^53 as the number '" + name +
                  "', received " + text +
                  ": numbers of families are doubles, and not each "
                  "integer above is one; pass it in a tensor");
}

}  // namespace

std::map<std::string, std::string> number_texts(const Structure& structure) {
  std::map<std::string, std::string> texts;
  for (const auto& [path, text] : number_texts_in(structure, std::string(kPrefix)))
    texts.emplace(name_of_path(path), text);
  return texts;
}

NumberValues numbers_of_arguments(const Structure& structure) {
  NumberValues numbers;
  for (const auto& [path, number] : numbers_in(structure, std::string(kPrefix)))
    numbers.emplace(name_of_path(path), number);
  return numbers;
}

Structure with_numbers(const Structure& structure, const NumberValues& numbers) {
  return with_numbers_in(structure, std::string(kPrefix), [&](const std::string& path) {
    const auto found = numbers.find(name_of_path(path));
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  });
}

void expect_number_types(const std::vector<CaptureBase>& examples, const Structure& arguments,
                         const std::function<bool(const std::string& name)>& may_differ) {
  for (const auto& [name, text] : number_texts(arguments)) {
    if (!may_differ(name)) continue;
    expect_exact(name, text);
    std::string shown;
    const bool has_type =
        std::any_of(examples.begin(), examples.end(), [&](const CaptureBase& example) {
          shown = number_texts(example.argument_structure()).at(name);
          return is_integer_text(shown) == is_integer_text(text);
        });
    if (has_type) continue;
    const bool integer = is_integer_text(text);
    throw UserError("[family] expected " + std::string(integer ? "a float" : "an integer") +
                    " as the number '" + name + "', as " + shown + " of the examples, received " +
                    (integer ? "the integer " : "the float ") + text +
                    ": operators may give another dtype for it; pass " +
                    (integer ? "a float" : "an integer") + ", or add an example that has one");
  }
}

namespace {

// UserError where the examples have other numbers, and one of them is an integer that no double is.
void expect_exact_where_others(const std::string& name, const std::vector<CaptureBase>& examples) {
  std::set<std::string> texts;
  for (const CaptureBase& example : examples)
    texts.insert(number_texts(example.argument_structure()).at(name));
  for (const std::string& text : texts)
    if (texts.size() > 1) expect_exact(name, text);
}

}  // namespace

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
    expect_exact_where_others(name, examples);
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
