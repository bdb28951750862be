// Tensors whose sizes are types, for programs whose sizes are known when they are compiled.
//
//   using namespace flashlight::fixed;
//   Tensor<float, 4, 4> rotation, pose;
//   auto turned = matmul(rotation, pose);                      // one vector instruction per row
//   auto energies = einsum<"ij,ij->i">(turned, turned);        // Tensor<float, 4>
//
// A product of `rotation` with a Tensor<float, 3, 3> does not compile: the compiler says that the
// left tensor has other columns than the right one has rows, 4 and 3.
//
// Use it inside of your own inner loops, where tensors are small, and where a wrong size has to be
// found by the compiler. Do not use it for large tensors (one thread, no tiles, no fusion across
// calls) nor for sizes that come from data: trace the function (traced.h) and compile the graph, or
// use composit::numpy. Needs the standard library alone, and no linking; g++ or clang++, C++20.
#pragma once

#include "flashlight/fixed/einsum.h"
#include "flashlight/fixed/functions.h"
#include "flashlight/fixed/tensor.h"
