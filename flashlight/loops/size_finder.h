// Finds how numbers that differ between programs of one form follow from sizes.
//
//   SizeFinder sizes(program.sizes, /*adds=*/false);
//   sizes.give({17, 24}, "tokens");
//   sizes.of({136, 192}, "axis 0 of value %1 'y'", "y_0");     // the size "x8_tokens"
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

using Numbers = std::vector<int64_t>;  // one per program

// "17, 24 and 33".
std::string joined(const Numbers& numbers);

template <class T>
bool all_same(const std::vector<T>& list) {
  return std::all_of(list.begin(), list.end(), [&](const T& one) { return one == list.front(); });
}

// Finds or adds the named size for each list of numbers that differ.
class SizeFinder {
 public:
  // `adds`: numbers that follow from no size are one more, and of several ways the first is taken.
  SizeFinder(Table<SizeId, NamedSize>& sizes, bool adds) : sizes_(sizes), adds_(adds) {}

  // A size that each call gives, unless the numbers are equal or known.
  void give(const Numbers& numbers, std::string name);
  size_t given() const { return given_.size(); }
  // The size with these numbers; nothing if they do not differ. `where` is for the error, `name`
  // for a size of its own. UserError where they follow in no way, or in several.
  std::optional<SizeId> of(const Numbers& numbers, const std::string& where,
                           const std::string& name);

 private:
  SizeId add(const Numbers& numbers, NamedSize size);
  std::string free_name(std::string name) const;
  std::vector<NamedSize> forms_of(const Numbers& numbers) const;
  void linear_forms(const Numbers& numbers, SizeId size, std::vector<NamedSize>& forms) const;
  NamedSize follows(const std::string& name, const Numbers& numbers, std::vector<SizeId> of,
                    int64_t factor, int64_t divisor, int64_t added) const;
  [[noreturn]] void fail(const Numbers& numbers, const std::vector<NamedSize>& forms,
                         const std::string& where) const;

  Table<SizeId, NamedSize>& sizes_;
  const bool adds_;
  std::vector<SizeId> given_;  // of sizes_
  Table<SizeId, Numbers> numbers_;
  std::map<Numbers, SizeId> known_, settled_;  // settled: sizes known to have one formula only
};

}  // namespace flashlight::loops
