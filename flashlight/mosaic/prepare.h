// Runs the function `prepare` of a program, which works on the weights once.
//
//   const toolchain::Library library = build({emit(plan, "bert")}, {});
//   const Prepared prepared =
//       prepare({plan, source, source.constants, library, threads}, weights);
//   prepared.memory.get();     // plan.prepared_bytes: packed panels, what only weights decide
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flashlight/mosaic/emit.h"
#include "flashlight/runtime/arena.hpp"
#include "flashlight/toolchain/library.h"

namespace flashlight::mosaic {

// Flags of the compiler for what this backend writes, for this processor.
std::vector<std::string> default_flags();

// Several programs as one unit; one as its own. `flags` follow those of the backend.
toolchain::Library build(const std::vector<Source>& programs,
                         const std::vector<std::string>& flags);

// `threads`, or where that is 0, one per core.
int thread_count(int threads);

struct Prepared {
  fl::Memory memory;
  // By place among the source's weights: what `run` reads of frozen ones and constants. Undefined:
  // it is given in each call, or only preparation reads it.
  std::vector<composit::Array> weights;
};

// `weights`: by input of the graph. UserError where one that is frozen has no value, or one of
// another type.
struct Preparing {
  const Plan& plan;
  const Source& source;
  const std::vector<composit::Array>& constants;  // as Source::constants
  const toolchain::Library& library;
  int threads;
  const int64_t* numbers = nullptr;  // of a text whose sizes are data
};
Prepared prepare(const Preparing& of, const std::vector<composit::Array>& weights);

}  // namespace flashlight::mosaic
