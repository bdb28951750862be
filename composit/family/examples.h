// Families that choose their examples, for ranges of sizes that are declared.
//
// Three examples are spread over the ranges; as long as formulas or conditions want another one, it
// is shown; then the family has to hold at the ends of the ranges, of each case, at multiples of
// usual blocks and windows between them, and where another size is the larger one.
#pragma once

#include <string>
#include <vector>

#include "composit/family/cases.h"
#include "composit/op/size_range.h"

namespace composit {

// A program that can be shown at sizes that it is told, and its family.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;
  // Shows the program at these sizes, and keeps the example.
  virtual void show(const SizeValues& sizes) = 0;
  // The graphs of all examples so far.
  virtual std::vector<Graph> graphs() const = 0;
  // Makes the family of the examples, whose free sizes get these names. ExampleWanted where one
  // more tells what is right, UserError where it has none.
  virtual const Cases& unify(const std::vector<std::string>& names) = 0;
  // Why the family is another program at these sizes; empty where it is the same.
  virtual std::string wrong_at(const SizeValues& sizes) = 0;
  // The sizes at which it is asked for that, as said above.
  virtual std::vector<SizeValues> checked(const std::vector<SizeRange>& ranges,
                                          const Cases& cases) const;
};

// Shows examples until the family holds. UserError where there are none that tell, or the program
// has a free size that is in no range; for a range of less than three numbers from 2 on.
void show_enough(ExampleSource& source, const std::vector<SizeRange>& ranges);

}  // namespace composit
