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
  int64_t threads = 0;  // threads of a call; 0: one per core
  // Allows Winograd's algorithm for convolutions. It sums in another order, so rounding errors
  // differ.
  bool winograd = true;
  // Allows Strassen's algorithm for products of matrices. Rounding errors differ as well.
  bool strassen = true;
  // Parameters and buffers are packed at the first call, and again where LibTorch counts a write to
  // one of them since. Nobody counts writes through `data_ptr()` and `.data`; without `freeze`, and
  // for tensors made in inference mode, all are read in each call. What the graph itself writes
  // always is.
  bool freeze = true;
  // Choices by name that replace those of the planner, in the text form of `flashlight plan
  // --choices` (flashlight/mosaic/choices.h). They hold for this graph alone; derivatives have
  // other values and are planned without choices.
  std::string choices = {};
  // For programs that are built elsewhere: the processor to prepare weights for, as compilers name
  // it.
  std::string march = "native";

  // The table of its options.
  static const composit::OptionFields<Mosaic>& fields();
  // The backend "mosaic" with these options.
  operator composit::BackendChoice() const {  // NOLINT
    return {"mosaic", fields().options(*this)};
  }
};

}  // namespace flashlight
