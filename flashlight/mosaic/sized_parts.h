// What the plans of a program at all of its sizes have in common, for a folder: weights, prepared
// memory, the code of steps.
//
//   SizedParts parts(capture, 2);
//   plan_words.add(parts.add(plan_at_8));
//   parts.entries();      // the steps of all plans, each text once
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "composit/io/saved_capture.h"
#include "flashlight/mosaic/mosaic_code.h"
#include "flashlight/mosaic/runner.h"
#include "flashlight/mosaic/sized_plans.h"
#include "flashlight/package/source.h"

namespace flashlight::mosaic {

class SizedParts {
 public:
  // `threads`: that prepare weights.
  SizedParts(const composit::SavedCapture& capture, int threads);

  // Prepares what no plan before had, and gives the words of this one, as StepPlan
  // (flashlight/runtime/steps.hpp) has them.
  std::vector<int64_t> add(const SizedPlan& at);

  struct Entry {
    std::string name;  // "product_gelu"
    std::shared_ptr<const StepText> text;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  // The inputs that a call passes, by number.
  const std::vector<size_t>& arguments() const { return source_.arguments; }
  // Without name and text.
  package::Source source() const;
  composit::Type type_of_weight(size_t number) const;
  // Undefined: nothing is prepared.
  composit::Array prepared_memory() const;
  // By result, the argument in whose memory it may be written at all sizes.
  std::map<size_t, size_t> updates() const {
    return updates_.value_or(decltype(updates_)::value_type());
  }

 private:
  struct Kept {
    int64_t offset, bytes;
    std::shared_ptr<std::byte> memory;
  };
  void prepare(const SizedPlan& at, const CallPlan& calls);
  void keep_updates(const CallPlan& calls);
  // Where something is in the folder.
  size_t argument_of(size_t input) const;
  size_t weight(const SizedPlan& at, size_t index);
  size_t entry(const SizedPlan& at, size_t step);
  int64_t place(const SizedPlan& at, const Place& place);

  const std::vector<composit::Array> weights_;  // by input
  const composit::LazyTensors inputs_;
  const int threads_;
  package::Source source_;
  std::set<std::string> headers_, members_, entry_names_;
  PreparedList known_;
  std::unordered_map<composit::Hash, Kept> prepared_;
  int64_t prepared_bytes_ = 0;
  std::map<std::string, size_t> weight_numbers_;
  std::map<const StepText*, size_t> entry_numbers_;
  std::vector<Entry> entries_;
  std::optional<std::map<size_t, size_t>> updates_;  // of the plans that were added
};

}  // namespace flashlight::mosaic
