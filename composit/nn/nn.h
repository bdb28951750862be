// Neural networks in composit: functions, layers, parameters, training.
//
//   #include "composit/nn/nn.h"
#pragma once

#include "composit/nn/functional.h"
#include "composit/nn/initializer.h"
#include "composit/nn/layers.h"
#include "composit/nn/optimize.h"
