// The backend `pjrt`: a graph as StableHLO, compiled and run by a plugin of PJRT, as XLA's for a
// CPU, a GPU or a TPU.
//
//   const Compiled f = backend().compile(graph, {.options = {{"pjrt", "libpjrt_cpu.so"}}});
#pragma once

#include "composit/op/backend.h"

namespace flashlight::pjrt {

const composit::Backend& backend();

}  // namespace flashlight::pjrt
