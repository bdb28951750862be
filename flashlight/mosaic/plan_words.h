// Plans of one program at all of its sizes, as the words that a written program reads
// (flashlight/runtime/steps.hpp).
//
//   PlanWords plans;
//   plans.add(words_at_8);                  // for each combination of sizes, in order
//   plans.add_none();                       // the program refuses these sizes
//   const Array words = plans.words({{"tokens", 8, 16, 8}});
//
// Plans of one form differ in few words: each is kept as these.
#pragma once

#include <cstdint>
#include <vector>

#include "composit/ir/array.h"
#include "composit/op/backend.h"

namespace flashlight::mosaic {

class PlanWords {
 public:
  // `words` as StepPlan has them.
  void add(std::vector<int64_t> words) { plans_.push_back(std::move(words)); }
  void add_none() { plans_.emplace_back(); }
  // True if no sizes have a plan.
  bool empty() const;
  // int64, of one dimension. There are as many plans as combinations of sizes in `ranges`.
  composit::Array words(const std::vector<composit::SizeRange>& ranges) const;

 private:
  std::vector<std::vector<int64_t>> plans_;
};

}  // namespace flashlight::mosaic
