// Options of the backend `mosaic`, which is fast: tiled kernels in threads.
//
//   flashlight::compile(captured, {.backend = flashlight::Mosaic{.threads = 2}});
//   flashlight::compile(captured, {.backend = flashlight::Mosaic{.choices = "relu: keep"}});
#pragma once

#include <cstdint>
#include <string>

#include "composit/op/options.h"

namespace flashlight {

struct Mosaic {
  int64_t threads = 0;  // of a call; 0: one per core
  // Whether convolutions may be computed by Winograd's algorithm, whose rounding errors are those
  // of other sums.
  bool winograd = true;
  // Whether products of matrices may be computed by Strassen's algorithm; the same holds for it.
  bool strassen = true;
  // Parameters and buffers are packed at the first call, and again where LibTorch counts a write to
  // one of them since. Nobody counts writes through `data_ptr()` and `.data`; without `freeze`, and
  // for tensors made in inference mode, all are read in each call. What the graph itself writes
  // always is.
  bool freeze = true;
  // What is decided by name instead of by the planner: text as `flashlight plan --choices` takes
  // it, or what mosaic::parse_choices reads from it (flashlight/mosaic/choices.h). Of this graph
  // alone: derivatives, whose values are others, are planned without.
  std::string choices = {};
  // Of programs that are written to be built elsewhere: the processor to prepare weights for, as
  // compilers name it.
  std::string march = "native";

  // The table of its options.
  static const composit::OptionFields<Mosaic>& fields();
  // The backend "mosaic" with these options.
  operator composit::BackendChoice() const {  // NOLINT
    return {"mosaic", fields().options(*this)};
  }
};

}  // namespace flashlight
