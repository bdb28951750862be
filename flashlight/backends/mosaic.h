// Options of the backend `mosaic`, which writes fast code: tiled kernels in threads.
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
  // What products of float32, attention included, are computed of: "float32", or "bfloat16", to
  // which both sides are rounded and whose sums are float32. On processors with an instruction for
  // that (AVX512_BF16), products take about half the time; with a unit for matrices (AMX), a third
  // or less. `check` tells the errors; `choices` decide for single layers ("linear_3: float32").
  std::string products = "float32";
  // What values of float32 that kernels leave for others are stored as: "float32", or "bfloat16",
  // which takes half the memory and its time. Values that nobody but loops and products reads are
  // stored that way; arguments, results and weights stay as they are. `choices` decide for single
  // values ("relu_3: stored float32").
  std::string values = "float32";
  // Packs parameters and buffers at the first call, and again when LibTorch's counters show that
  // one was written since. LibTorch does not count writes through `data_ptr()` and `.data`. Each
  // call reads those that the graph itself writes, and tensors made in inference mode; without
  // `freeze`, all.
  bool freeze = true;
  // Choices by name that replace those of the planner, in the text form of `flashlight plan
  // --choices` (flashlight/mosaic/choices.h). They hold for this graph alone; derivatives have
  // other values and are planned without choices.
  std::string choices = {};
  // The processor to prepare weights for, as compilers name it, in programs that are built
  // elsewhere.
  std::string march = "native";

  // The table of its options.
  static const composit::OptionFields<Mosaic>& fields();
  // The backend "mosaic" with these options.
  operator composit::BackendChoice() const {  // NOLINT
    return {"mosaic", fields().options(*this)};
  }
};

}  // namespace flashlight
