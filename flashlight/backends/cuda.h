// Options of the backend `cuda`, which writes CUDA C++ for nvcc.
//
//   std::cout << flashlight::backend_named("cuda").source(
//       graph, {.options = composit::BackendChoice(flashlight::Cuda{.link_aten = true}).options});
#pragma once

#include "composit/op/options.h"

namespace flashlight {

struct Cuda {
  // The program is a function of LibTorch's tensors; products, convolutions, attention, sorting and
  // draws are calls of LibTorch.
  bool link_aten = false;
  // The program is also captured in a CUDA graph, by a function of its own ("relu3_graph").
  // Programs in which a number of the device decides on the host are refused.
  bool graph = false;

  // The table of its options.
  static const composit::OptionFields<Cuda>& fields();
  // The backend "cuda" with these options.
  operator composit::BackendChoice() const { return {"cuda", fields().options(*this)}; }  // NOLINT
};

}  // namespace flashlight
