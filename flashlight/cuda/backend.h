// The backend that writes CUDA C++: kernels as a person would write them, and a function that
// launches them on a stream.
//
//   flashlight::cuda::backend().source(graph, {.name = "relu3"});     // relu3.cu
//
// It writes programs of loops: elementwise functions, reductions, gathers and scatters, also of
// derivatives; with the option `link_aten` products, convolutions and what else LibTorch has
// kernels for are calls of it. It calls nothing in this process; `compile` of it is a UserError.
#pragma once

#include "composit/ir/graph.h"
#include "composit/op/backend.h"
#include "flashlight/cuda/emit.h"
#include "flashlight/loops/lower.h"

namespace flashlight::cuda {

const composit::Backend& backend();

// The CUDA C++ for a graph: lower, fuse, emit. UserError as of emit.
CudaSource source_of(const composit::Graph& graph, const LowerOptions& options = {},
                     const EmitOptions& emit_options = {});
// The same as a function of LibTorch's tensors, which calls LibTorch for what `options.called`
// says (schema_of_call), and writes new values of mutated inputs to them.
CudaSource linked_source_of(const composit::Graph& graph, const LowerOptions& options,
                            EmitOptions emit_options = {});
// The schema by which LibTorch is called for an operation: products, convolutions, attention,
// sorting, factors of matrices, draws; nullptr for others.
const composit::Schema* schema_of_call(const composit::Node& node);

}  // namespace flashlight::cuda
