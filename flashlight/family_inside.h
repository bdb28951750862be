// What a family holds. For the files of families only.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flashlight/family.h"
#include "flashlight/family_state.h"
#include "flashlight/looks.h"

namespace flashlight {

struct FamilyBase::State {
  std::vector<CaptureBase> examples;
  FamilySettings settings;
  composit::Cases cases;
  // Sizes that were checked, with the answers that the program read there.
  std::vector<std::pair<composit::SizeValues, std::vector<bool>>> checked;

  std::vector<composit::NumberValues>
      numbers;        // by example: those that are no sizes and no arguments
  int64_t runs = 0;   // of the program
  FamilyState state;  // that the program makes anew in each call
  // What became of the program since the last example; none: it is not known.
  std::shared_ptr<Looks> program;
  // Sizes at which a check found another program, and what it found.
  std::map<composit::SizeValues, std::string> refuted;

  mutable std::mutex mutex;
  mutable std::map<composit::SizeValues, CaptureBase>
      bound;                                 // waiting for their numbers, if there are any
  mutable std::mutex counting;               // held by a call that counts
  mutable std::optional<int64_t> next_call;  // nothing: not known
};

}  // namespace flashlight
