// Inputs that lie in one memory, put there again after each was stored by itself. For the files of
// this folder only.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "composit/ir/graph.h"

namespace flashlight {

// `tensors`: one per input of the graph, undefined where there is none. Those that lay in the same
// memory when they were captured (attributes `shares` and `shift` of the graph's inputs) become
// views of one storage, with the values they have; where they overlap and differ, a parameter or a
// buffer counts more than an argument.
//
// Where the graph uses more of a storage than its inputs show, the storage is that large again; the
// bytes that none shows are 0.
void share_memory(const composit::Graph& graph, std::vector<at::Tensor>& tensors);

// UserError where the graph reads bytes of a parameter's or buffer's storage that none of them
// shows: they would not be in the file.
void expect_memory_is_shown(const composit::Graph& graph);

}  // namespace flashlight
