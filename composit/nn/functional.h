// torch.nn.functional in composit: activations, convolutions, pools, norms, recurrent networks,
// losses, and the rest.
//
//   LazyTensor h = nn::relu(nn::conv2d(x, w, {.bias = b, .padding = {1}}));
//   LazyTensor loss = nn::cross_entropy(nn::linear(reshape(h, {8, -1}), v), labels);
//
// Each call makes a node of an ATen operation (or a few): nothing is computed, everything can be
// differentiated. Options are structs with torch's defaults.
#pragma once

#include "composit/nn/activations.h"
#include "composit/nn/convolution.h"
#include "composit/nn/losses.h"
#include "composit/nn/normalization.h"
#include "composit/nn/pooling.h"
#include "composit/nn/recurrent.h"
#include "composit/nn/transforms.h"
