// Sizes as files have them: integers, or expressions of symbols in sympy's text.
//
//   Sizes sizes;
//   sizes.set("s0", 4);
//   sizes.value(R"({"as_expr": {"expr_str": "Mul(Integer(2), Symbol('s0'))"}})"_json);   // 8
//
// A program is read at one size of each symbol: expressions become the numbers that they are there.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "composit/interchange/pt2_read/json.h"
#include "composit/ir/type.h"

namespace composit::pt2_read {

using SymbolValues = std::map<std::string, int64_t, std::less<>>;

// UserError for text that is no expression of integers, a symbol without a value, a result that is
// no integer of 64 bits.
int64_t evaluate(std::string_view expression, const SymbolValues& symbols);
// The symbols of an expression.
std::set<std::string> symbols_of(std::string_view expression);

class Sizes {
 public:
  Sizes() = default;
  explicit Sizes(SymbolValues values) : values_(std::move(values)) {}

  const SymbolValues& values() const { return values_; }
  void set(const std::string& symbol, int64_t value) { values_[symbol] = value; }

  // {"as_int": 3}, or {"as_expr": …}. UserError as of `evaluate`.
  int64_t value(const Json& size) const;
  // The type that a TensorMeta says. UserError for what is no tensor of the CPU's memory.
  Type type(const Json& meta) const;

 private:
  std::vector<int64_t> all(const Json& list) const;

  SymbolValues values_;
};

}  // namespace composit::pt2_read
