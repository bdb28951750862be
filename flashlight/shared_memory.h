// Puts inputs that shared memory into one storage again, after each was stored by itself. For the
// files of this folder only.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "composit/ir/graph.h"

namespace flashlight {

// `tensors`: one per input of the graph, undefined if there is none. Those that shared memory when
// they were captured (attributes `shares` and `shift` of the graph's inputs) become views of one
// storage, with the values they have; if they overlap and differ, parameters and buffers overwrite
// arguments.
//
// If the graph uses more of a storage than its inputs show, the storage gets that size again; the
// bytes that no input shows are 0.
void share_memory(const composit::Graph& graph, std::vector<at::Tensor>& tensors);

// UserError if the graph reads bytes of a parameter's or buffer's storage that none of them shows:
// they would not be in the file.
void expect_memory_is_shown(const composit::Graph& graph);

}  // namespace flashlight
