// What runs a program: its one text as a library, or steps that it shares with other sizes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "composit/ir/array.h"
#include "composit/ir/hash.h"
#include "flashlight/package/backend.h"
#include "flashlight/toolchain/library.h"

namespace flashlight::mosaic {

// Memory that preparation has filled.
struct PreparedMemory {
  composit::Hash key = {};  // of steps: PreparedValue::key
  std::shared_ptr<std::byte> first;
};

struct Prepared {
  std::vector<PreparedMemory> memory;
  // By place among the source's weights: what `run` reads of frozen ones and constants. Undefined:
  // it is given in each call, or only preparation reads it.
  std::vector<composit::Array> weights;
  std::map<size_t, composit::Array> frozen;  // of these, by input of the graph
};
using PreparedList = std::vector<std::shared_ptr<const Prepared>>;

// `bytes` for each value, in one piece: large pages pay for the whole of it.
std::vector<std::shared_ptr<std::byte>> allocate_together(const std::vector<int64_t>& bytes);

class Runner {
 public:
  virtual ~Runner() = default;
  // Adds to `memory` what `others`, which were prepared from the same weights, have of it, and has
  // no address for the rest. True if there is no rest.
  virtual bool take(const PreparedList& others, std::vector<PreparedMemory>& memory) const = 0;
  // Fills what has no address, from the first elements of weights. nullptr, or what is wrong.
  virtual const char* prepare(const std::vector<const void*>& weights,
                              std::vector<PreparedMemory>& memory) const = 0;
  // One call; `times` as of emit.h.
  virtual const char* run(const package::Pointers& at, const Prepared& prepared, std::byte* arena,
                          int64_t* times) const = 0;
};

struct Source;

// What a plan prepares: of all that preparation needs, the first bytes stay.
struct PreparedBytes {
  int64_t stay = 0, all = 0;
};
// Of the text of emit.h.
std::shared_ptr<const Runner> library_runner(const toolchain::Library& library,
                                             const Source& source, PreparedBytes prepared,
                                             int threads);

}  // namespace flashlight::mosaic
