// Products with weights of 4 bits in groups as onnxruntime's own operator.
//
//   Graph written = with_block_products(graph);    // onnx::MatMulNBits in place of aten::linear
//
// It reads integers of 4 bits while it multiplies, where DequantizeLinear and MatMul are two steps
// for other tools. Its integers are unsigned: bytes of two's complement have their upper bits
// turned, which a tool does once when it loads the model.
#pragma once

#include "composit/ir/graph.h"

namespace composit::onnx {

inline constexpr std::string_view kMatMulNBits = "MatMulNBits";

// Products of float32 with a matrix, on the right, that is composit::unpack_int4 of bytes and
// quantized_decomposed::dequantize_per_channel_group of that. All others stay as they are.
Graph with_block_products(const Graph& graph);

}  // namespace composit::onnx
