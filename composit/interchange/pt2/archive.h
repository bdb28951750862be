// The program of a file, complete: its JSON, and the arrays that stand beside it.
#pragma once

#include "composit/interchange/pt2.h"
#include "composit/interchange/pt2/storages.h"
#include "composit/interchange/pt2/structure.h"

namespace composit::pt2 {

struct Exported {
  Json program;
  Storages weights{"data/weights", "weight_"};
  Storages constants{"data/constants", "tensor_"};
  Structure arguments;
  std::vector<Array> examples = {};  // one per tensor among the arguments, or none
};

// UserError as `save_pt2`.
Exported exported(const SavedCapture& capture, const Pt2Options& options);

}  // namespace composit::pt2
