// The products of a graph with a weight, by weight.
//
//   for (const Layer& layer : layers_of(capture)) ...
#pragma once

#include <string>
#include <vector>

#include "composit/io/saved_capture.h"
#include "composit/quantize/numbers.h"

namespace composit::quantization {

// A node that multiplies with a weight.
struct Product {
  NodePtr node;
  size_t x, weight;  // which operands are the other factor, and the weight or its transpose
};

struct Layer {
  LazyTensor weight;               // an input of the graph
  Array value;                     // of the weight
  bool is_convolution = false;     // else a matrix product
  bool by_inputs = false;          // the weight is [in, out]
  std::vector<Product> products;   // in the order of the graph
  bool has_other_readers = false;  // as an embedding has that shares it
  std::string refusal = {};        // why it cannot be quantized; empty: it can
  std::string name() const { return input_name(*weight.node); }
};

// Weights that at least one product has, in the order of the graph's inputs. UserError where a
// weight has no value.
std::vector<Layer> layers_of(const SavedCapture& capture);

// The weight as a matrix [out, in] (of a convolution: [out, in * window]). UserError that names the
// first element that is NaN or infinite.
Matrix matrix_of(const Layer& layer);
// The inverse: an array of the weight's type.
Array array_of(const Layer& layer, const Matrix& matrix);

// Gives a node another operand. Its region, which is made for the types that it had, goes where
// the type is another.
void set_operand(NodeSpec& spec, size_t operand, const LazyTensor& value);
// The product with other operands; where its weight is a transposed view, so is that of `weight`.
LazyTensor product_with(const Product& product, const LazyTensor& x, const LazyTensor& weight);

}  // namespace composit::quantization
