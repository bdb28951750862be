// Makes what a program computes of its weights once.
//
//   const toolchain::Library library = build({emit(plan, "bert")}, {});
//   const auto runner = library_runner(library, source, plan.prepared_bytes, threads);
//   const Prepared prepared = prepare({plan.ports, frozen, source, *runner}, weights);
//   prepared.memory;     // packed panels, what only weights decide
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "flashlight/mosaic/emit.h"
#include "flashlight/mosaic/runner.h"
#include "flashlight/toolchain/library.h"

namespace flashlight::mosaic {

// Flags of the compiler for what this backend writes, for this processor.
std::vector<std::string> default_flags();

// Several programs as one unit; one as its own. `flags` follow those of the backend.
toolchain::Library build(const std::vector<Source>& programs,
                         const std::vector<std::string>& flags);

// `threads`, or where that is 0, one per core.
int thread_count(int threads);

struct Preparing {
  const composit::Ports& ports;     // of the program
  const std::vector<bool>& frozen;  // by input of the routine
  const Source& source;
  const Runner& runner;
};
// `weights`: by input of the graph. UserError where one that is frozen has no value, or one of
// another type. `others`: prepared from the same weights; what they have is taken from them.
Prepared prepare(const Preparing& of, const std::vector<composit::Array>& weights,
                 const PreparedList& others = {});
// The same where others have everything; nothing elsewhere.
std::optional<Prepared> prepare_like(const Preparing& of, const PreparedList& others);

}  // namespace flashlight::mosaic
