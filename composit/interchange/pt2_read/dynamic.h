// Programs with dynamic shapes as families: they are read at several sizes, and unified.
//
//   const FreeSymbols symbols(program, example, read_at);
//   if (!symbols.empty()) capture = family_at(capture, symbols, example, read_at);
//
// A size of a family has a range and a step, within which every condition that torch noted of the
// sizes has to hold; and what is read of the file at sizes that were not unified has to be what the
// family gives there.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "composit/interchange/pt2_read/conditions.h"
#include "composit/interchange/pt2_read/sizes.h"
#include "composit/io/saved_capture.h"

namespace composit::pt2_read {

// The graph at these sizes; UserError where the program holds for others.
using ReadAt = std::function<Graph(const SymbolValues&)>;

// Symbols that sizes of arguments are made of, and what they may be.
class FreeSymbols {
 public:
  // `example`: the symbols at the sizes of the example. `read_at`: see below. UserError for ranges
  // and conditions that no family has.
  FreeSymbols(const Json& program, const SymbolValues& example, const ReadAt& read_at);

  bool empty() const { return allowed_.empty(); }
  // Values of a symbol that programs are read at: the example's, then others from the least to the
  // greatest.
  const std::map<std::string, std::vector<int64_t>>& shown() const { return shown_; }
  // Some values for all symbols that are not among those.
  std::vector<SymbolValues> others() const;
  // The symbols at which an axis of an argument has this size.
  SymbolValues with_size(const SymbolValues& values, const std::string& input, size_t axis,
                         int64_t size) const;

 private:
  struct Range {
    int64_t low = 0, high = 0, step = 1;
  };
  // A condition, with the sizes that it reads as expressions.
  struct Noted {
    std::string text;
    std::map<AxisOf, std::string> sizes;
    std::vector<std::string> symbols;
  };
  void read_conditions(const Json& program);
  bool noted_holds(const Noted& one, const SymbolValues& values) const;
  bool all_hold(const SymbolValues& values, const std::string& symbol) const;
  void find_range(const std::string& symbol, int64_t low, int64_t high);
  // What conditions in the program itself leave of a range.
  Range readable(const std::string& symbol, Range range) const;
  void expect_all_hold() const;

  SymbolValues example_;
  ReadAt read_at_;
  const Json& metas_;  // of values, by name
  std::map<std::string, Range> allowed_;
  std::map<std::string, std::vector<int64_t>> shown_;
  std::vector<Noted> conditions_;
};

// `values`: the symbols of the example. UserError: no formulas tell the sizes, or the family has
// others than the file says.
SavedCapture family_at(const SavedCapture& example, const FreeSymbols& symbols,
                       const SymbolValues& values, const ReadAt& read_at);

}  // namespace composit::pt2_read
