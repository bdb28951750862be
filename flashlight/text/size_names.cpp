#include "flashlight/text/size_names.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace flashlight::text {

void SizeNames::add(const Size& size) {
  for (const std::string& name : size.names)
    if (std::find(order_.begin(), order_.end(), name) == order_.end()) order_.push_back(name);
  const auto times = [](const Product& a, const Product& b) {
    Product both = {{a.text + " * " + b.text, a.value * b.value, a.names}, a.factors + b.factors};
    both.names.insert(b.names.begin(), b.names.end());
    both.alone = both.text;
    return both;
  };
  Product one = {size, 1, size.text};
  if (size.text.find(' ') != std::string::npos) one.text = "(" + size.text + ")";
  // Powers of the new size, alone and times what there was.
  std::vector<Product> all = products_;
  for (Product power = one; power.factors <= kMostFactors; power = times(power, one)) {
    all.push_back(power);
    for (const Product& other : products_)
      if (other.factors + power.factors <= kMostFactors) all.push_back(times(other, power));
  }
  products_ = std::move(all);
  std::stable_sort(products_.begin(), products_.end(),
                   [](const Product& a, const Product& b) { return a.value > b.value; });
}

SizeNames::Found SizeNames::find(int64_t value) const {
  for (const Product& one : products_)
    if (value > 0 && value % one.value == 0) return {&one, value / one.value, 0};
  for (int64_t most = 1; most <= kMostAdded; ++most)
    for (const int64_t added : {most, -most})
      for (const Product& one : products_) {
        const int64_t factor = (value - added) / one.value;
        if (one.factors == 1 && factor >= 1 && factor <= kMostTimes &&
            factor * one.value + added == value)
          return {&one, factor, added};
      }
  return {};
}

std::string SizeNames::text(int64_t value) {
  const auto [product, factor, added] = find(value);
  if (product == nullptr) return std::to_string(value);
  used_.insert(product->names.begin(), product->names.end());
  const bool is_alone = factor == 1 && added == 0;
  const std::string sign = added > 0 ? " + " : " - ";
  return (factor == 1 ? "" : std::to_string(factor) + " * ") +
         (is_alone ? product->alone : product->text) +
         (added == 0 ? "" : sign + std::to_string(std::abs(added)));
}

void SizeNames::use(const std::vector<std::string>& names) {
  used_.insert(names.begin(), names.end());
}

std::vector<std::string> SizeNames::take_used() {
  std::vector<std::string> used;
  for (const std::string& name : order_)
    if (used_.contains(name)) used.push_back(name);
  used_.clear();
  return used;
}

}  // namespace flashlight::text
