// A graph whose weights are integers.
//
//   LayerChange change{.stored = stored_weight(layer, integers, {})};
//   SavedCapture small = rewritten(capture, {{&layer, change}});
#pragma once

#include <map>
#include <string>
#include <vector>

#include "composit/quantize/layers.h"

namespace composit::quantization {

// The integers and scales of a layer as inputs of a graph, and the weight that rows make of them,
// of the type that it had.
struct StoredWeight {
  LazyTensors inputs;  // they hold their values
  LazyTensor value;
  LazyTensor divisors = {};  // of the other factor; absent: none
  int64_t bytes = 0;         // of all inputs
};
// `divisors`: numbers that the columns were multiplied with; empty: none.
StoredWeight stored_weight(const Layer& layer, const Integers& integers,
                           const std::vector<float>& divisors);

// x as int8 and back: by token, or with one step.
LazyTensor through_tokens(const LazyTensor& x);
LazyTensor through_step(const LazyTensor& x, const Step& step);

// What becomes of a layer.
struct LayerChange {
  StoredWeight stored;
  Activations activations = Activations::unchanged;
  std::map<const Node*, Step> steps = {};  // calibrated: by product
  bool all_readers = false;                // calibrated: others who read the same get it rounded
};

// What the product `node` gets in place of x.
LazyTensor changed_factor(const LayerChange& change, const Node& node, const LazyTensor& x);

// The graph of `capture` with these changes, with its weights; without results of the example.
SavedCapture rewritten(const SavedCapture& capture,
                       const std::vector<std::pair<const Layer*, LayerChange>>& changes);

}  // namespace composit::quantization
