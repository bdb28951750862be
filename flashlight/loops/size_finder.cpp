#include "flashlight/loops/size_finder.h"

#include <cstdlib>
#include <utility>

#include "composit/ir/error.h"
#include "composit/ir/literal.h"
#include "flashlight/loops/sizes.h"

namespace flashlight::loops {
namespace {

// The k for which a[i] == k * b[i] for all i.
std::optional<int64_t> ratio(const Numbers& a, const Numbers& b) {
  if (b[0] == 0) return std::nullopt;
  const int64_t k = a[0] / b[0];
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != k * b[i]) return std::nullopt;
  return k;
}
std::string times(int64_t k) {
  if (k == 1) return "";
  return k < 0 ? "minus_" + (k == -1 ? "" : std::to_string(-k) + "_")
               : "x" + std::to_string(k) + "_";
}

}  // namespace

std::string joined(const Numbers& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ") + std::to_string(numbers[i]);
  return text;
}

void SizeFinder::give(const Numbers& numbers, std::string name) {
  if (all_same(numbers) || known_.count(numbers) > 0) return;
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  given_.push_back(add(
      numbers,
      {.name = free_name(std::move(name)), .example = numbers[0], .least = *least, .most = *most}));
}

std::optional<SizeId> SizeFinder::of(const Numbers& numbers, const std::string& where,
                                     const std::string& name) {
  if (all_same(numbers)) return std::nullopt;
  if (const auto found = settled_.find(numbers); found != settled_.end()) return found->second;
  std::vector<NamedSize> forms = forms_of(numbers);
  if (adds_ && forms.empty()) {
    give(numbers, name);
    forms = {sizes_[given_.back()]};
  }
  if (forms.empty() || (forms.size() > 1 && !adds_)) fail(numbers, forms, where);
  const auto known = known_.find(numbers);
  const SizeId size = known != known_.end() ? known->second : add(numbers, forms[0]);
  settled_.emplace(numbers, size);
  return size;
}

SizeId SizeFinder::add(const Numbers& numbers, NamedSize size) {
  const SizeId id = sizes_.add(std::move(size));
  known_.emplace(numbers, id);
  numbers_.push_back(numbers);
  return id;
}

std::string SizeFinder::free_name(std::string name) const {
  for (char& c : name)
    if (!is_size_char(c)) c = '_';
  if (name.empty() || !composit::is_word_start(name[0])) name = "size_" + name;
  const auto taken = [&](const NamedSize& size) { return size.name == name; };
  while (!is_size_name(name) || std::any_of(sizes_.begin(), sizes_.end(), taken)) name += '_';
  return name;
}

// All formulas by which `numbers` follow from the given sizes.
std::vector<NamedSize> SizeFinder::forms_of(const Numbers& numbers) const {
  std::vector<NamedSize> forms;
  for (size_t i = 0; i < given_.size(); ++i) {
    const SizeId a = given_[i];
    linear_forms(numbers, a, forms);
    for (size_t j = i; j < given_.size(); ++j) {
      const SizeId b = given_[j];
      Numbers products;
      for (size_t k = 0; k < numbers.size(); ++k)
        products.push_back(numbers_[a][k] * numbers_[b][k]);
      if (const auto k = ratio(numbers, products))
        forms.push_back(follows(times(*k) + sizes_[a].name + "_by_" + sizes_[b].name, numbers,
                                {a, b}, *k, 1, 0));
    }
  }
  return forms;
}
void SizeFinder::linear_forms(const Numbers& numbers, SizeId size,
                              std::vector<NamedSize>& forms) const {
  const Numbers& from = numbers_[size];
  const std::string& name = sizes_[size].name;
  if (const auto k = ratio(numbers, from)) {
    forms.push_back(*k == 1 ? sizes_[size] : follows(times(*k) + name, numbers, {size}, *k, 1, 0));
    return;
  }
  if (const auto k = ratio(from, numbers); k && *k > 1)
    forms.push_back(follows(name + "_over_" + std::to_string(*k), numbers, {size}, 1, *k, 0));
  Numbers differences, sums;
  for (size_t i = 0; i < numbers.size(); ++i) {
    differences.push_back(numbers[i] - from[i]);
    sums.push_back(numbers[i] + from[i]);
  }
  const auto apart = [&](int64_t c) {
    return (c < 0 ? "_minus_" : "_plus_") + std::to_string(std::abs(c));
  };
  if (all_same(differences))
    forms.push_back(follows(name + apart(differences[0]), numbers, {size}, 1, 1, differences[0]));
  if (all_same(sums))
    forms.push_back(follows("minus_" + name + apart(sums[0]), numbers, {size}, -1, 1, sums[0]));
}
NamedSize SizeFinder::follows(const std::string& name, const Numbers& numbers,
                              std::vector<SizeId> of, int64_t factor, int64_t divisor,
                              int64_t added) const {
  return {.name = free_name(name),
          .example = numbers[0],
          .of = std::move(of),
          .factor = factor,
          .divisor = divisor,
          .added = added};
}

void SizeFinder::fail(const Numbers& numbers, const std::vector<NamedSize>& forms,
                      const std::string& where) const {
  Program names;
  names.sizes = sizes_;
  if (!forms.empty())
    throw composit::UserError("[unify] expected " + where +
                              " to follow from sizes in one way, received " + joined(numbers) +
                              ", which are " + print(names, forms[0]) + " and also " +
                              print(names, forms[1]) + ": one more program tells them apart");
  std::string given;
  for (const SizeId i : given_)
    given += (given.empty() ? "" : "; ") + sizes_[i].name + " of " + joined(numbers_[i]);
  throw composit::UserError("[unify] expected " + where + " to be the same, or to follow from " +
                            (given.empty() ? "a size of an argument" : given) + ", received " +
                            joined(numbers));
}

}  // namespace flashlight::loops
