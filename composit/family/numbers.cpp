#include "composit/family/numbers.h"

#include <algorithm>
#include <cmath>

#include "composit/family/family.h"
#include "composit/ir/error.h"
#include "composit/ir/integers.h"
#include "composit/ir/literal.h"

namespace composit {
namespace {

// The real numbers of operators between 0 and 1, for the bases of powers.
void add_numbers(const Graph& graph, std::vector<double>& numbers) {
  for (const NodePtr& node : graph.nodes()) {
    for (const NamedAttribute& attribute : node->attributes())
      if (const auto number = real_number_of(attribute.value)) numbers.push_back(*number);
    for_each_region(*node, [&](const Region& region) { add_numbers(*region, numbers); });
  }
}

bool has_power(const NumberFormula& formula) {
  return formula.kind() == NumberFormula::Kind::power ||
         std::any_of(formula.arguments().begin(), formula.arguments().end(), has_power);
}

// True for n + k, c / (1 + n b): what proves little. Powers are none by accident.
bool is_plain_count(const NumberFormula& formula) {
  bool counts = false;
  formula.for_each_name([&](const std::string& name) { counts = counts || name == kCalls; });
  return counts && !has_power(formula);
}

std::string text_of(const NumberValues& numbers) {
  std::string text;
  for (const auto& [name, number] : numbers) {
    text += (text.empty() ? "" : ", ") + name + " = ";
    append_float(text, number);
  }
  return text;
}

}  // namespace

std::string_view name(NumberOrigin origin) {
  constexpr std::string_view kNames[] = {"given", "source", "counted", "read"};
  return kNames[static_cast<size_t>(origin)];
}

NumbersShown NumbersShown::of(const std::vector<size_t>& examples) const {
  NumbersShown some{.python = python};
  for (const NumberLeaf& leaf : given) {
    some.given.push_back({leaf.name, {}});
    for (const size_t example : examples)
      some.given.back().values.push_back(leaf.values.at(example));
  }
  for (const size_t example : examples)
    some.calls.push_back(calls.empty() ? static_cast<int64_t>(example) : calls.at(example));
  return some;
}

bool is_given(NumberOrigin origin) {
  return origin == NumberOrigin::given || origin == NumberOrigin::source;
}

void expect_kind(const FreeNumber& number, double value) {
  const auto sign = [](double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; };
  const bool has_sign = std::any_of(number.shown.begin(), number.shown.end(),
                                    [&](double shown) { return sign(shown) == sign(value); });
  if (is_given(number.origin) && !has_sign && !number.shown.empty())
    throw UserError("[bind] " + text_of(NumberValues{{number.name, value}}) + ": no example has " +
                    (std::isnan(value) ? "NaN"
                     : value == 0      ? "0"
                     : value > 0       ? "a number above 0"
                                       : "a number below 0") +
                    " there, where programs may go another way; add one that has");
  if (value == std::floor(value) || !are_whole(number.shown)) return;
  throw UserError("[bind] " + text_of(NumberValues{{number.name, value}}) +
                  ": all examples have whole numbers there; add one that has not");
}

std::vector<double> bases_of(const Graph& graph) {
  std::vector<double> numbers;
  add_numbers(graph, numbers);
  return bases_of(numbers);
}

NumberUnifier::NumberUnifier(const NumbersShown& shown, const Graph& first)
    : options_{.calls = shown.calls, .bases = bases_of(first), .python = shown.python},
      leaves_(shown.given) {
  for (const NumberLeaf& leaf : leaves_)
    numbers_.push_back({leaf.name, NumberOrigin::given, leaf.values});
  std::vector<double> calls(options_.calls.begin(), options_.calls.end());
  numbers_.push_back({kCalls, NumberOrigin::counted, std::move(calls)});
}

std::optional<NumberFormula> NumberUnifier::formula_for(const std::vector<double>& values,
                                                        const std::string& place, bool by_sizes) {
  // Sizes and other numbers rise by one from example to example now and then.
  constexpr size_t kShownCounts = 5;
  if (const auto known = known_.find(values); known != known_.end()) return known->second;
  const std::vector<NumberFit> fits = number_fits(values, leaves_, options_);
  if (fits.empty()) return std::nullopt;
  if (is_plain_count(fits[0].formula) && (by_sizes || values.size() < kShownCounts))
    return std::nullopt;
  for (size_t i = 1; i < fits.size() && fits[i].rank == fits[0].rank; ++i)
    if (const auto at = where_differ(fits[0].formula, fits[i].formula, leaves_))
      throw UserError("[unify] " + place + " may be " + print(fits[0].formula) + " or " +
                      print(fits[i].formula) + ", which differ at " + text_of(*at) +
                      ": add an example there");
  fits[0].formula.for_each_name([&](const std::string& name) { read_.insert(name); });
  return known_.emplace(values, fits[0].formula).first->second;
}

std::string NumberUnifier::free_name(const std::string& name) const {
  const auto is_taken = [&](const std::string& text) {
    return std::any_of(numbers_.begin(), numbers_.end(),
                       [&](const FreeNumber& number) { return number.name == text; });
  };
  if (!is_taken(name)) return name;
  for (size_t next = 2;; ++next)
    if (const std::string text = name + "_" + std::to_string(next); !is_taken(text)) return text;
}

NumberFormula NumberUnifier::add_read(const std::vector<double>& values, const LazyTensor& tensor,
                                      const std::string& name) {
  const std::string free = free_name(number_name(name));
  const NumberFormula read = NumberFormula::named(free);
  // Of reads that no example tells apart, what follows means the latest: each parameter has a step
  // count of its own.
  for (const FreeNumber& number : numbers_)
    if (number.origin == NumberOrigin::read && number.shown == values) {
      std::erase_if(leaves_, [&](const NumberLeaf& leaf) { return leaf.name == number.name; });
      for (auto& [known, formula] : known_) formula = substitute(formula, number.name, read);
    }
  leaves_.push_back({free, values});
  numbers_.push_back({free, NumberOrigin::read, values, tensor});
  read_.insert(free);
  return read;
}

NumberFormula NumberUnifier::add_source(const std::vector<double>& values,
                                        const std::string& name) {
  const std::string free = free_name(number_name(name));
  leaves_.push_back({free, values});
  numbers_.push_back({free, NumberOrigin::source, values});
  read_.insert(free);
  return known_.emplace(values, NumberFormula::named(free)).first->second;
}

std::vector<FreeNumber> NumberUnifier::numbers() const {
  std::vector<FreeNumber> numbers;
  for (const FreeNumber& number : numbers_)
    if (read_.contains(number.name)) numbers.push_back(number);
  return numbers;
}

}  // namespace composit
