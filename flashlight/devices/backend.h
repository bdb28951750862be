// The backend `devices`: gives each part of a graph to a device, which is another backend.
//
//   const Compiled f = backend().compile(graph, {.options = {{"choices", "*: on cpp"}}});
#pragma once

#include "composit/op/backend.h"

namespace flashlight::devices {

const composit::Backend& backend();

}  // namespace flashlight::devices
