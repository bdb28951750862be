#include "composit/quantize/select.h"

#include <algorithm>

#include "composit/ir/error.h"

namespace composit::quantization {
namespace {

void expect_options(const QuantizeOptions& options) {
  const WeightFormat& format = options.weights;
  if (format.bits != 8 && format.bits != 4)
    throw UserError("[quantize] expected weights of 8 or 4 bits, received " +
                    std::to_string(format.bits));
  if (format.group < 0 || format.group == 1)
    throw UserError("[quantize] expected groups of 2 or more, or 0 for one per output, received " +
                    std::to_string(format.group));
  if (format.bits == 4 && format.group % 2 != 0)
    throw UserError(
        "[quantize] of 4 bits, groups are of an even size, as two share a byte; "
        "received " +
        std::to_string(format.group));
  if (format.scales != DType::float32 && !is_half(format.scales))
    throw UserError("[quantize] expected scales of float32, float16 or bfloat16, received " +
                    std::string(name(format.scales)));
  if (options.max_error && !(*options.max_error > 0))
    throw UserError("[quantize] expected an error above 0 to keep, received " +
                    std::to_string(*options.max_error));
}

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

void expect_found(const std::vector<std::string>& patterns, const std::vector<Layer>& layers) {
  for (const std::string& pattern : patterns) {
    if (std::any_of(layers.begin(), layers.end(),
                    [&](const Layer& layer) { return matches(pattern, layer.name()); }))
      continue;
    std::string names;
    for (size_t i = 0; i < layers.size() && i < 8; ++i)
      names += (i == 0 ? "" : ", ") + layers[i].name();
    throw UserError("[quantize] no weight of a layer is called '" + pattern + "'; there are " +
                    std::to_string(layers.size()) + ": " + names +
                    (layers.size() > 8 ? ", …" : ""));
  }
}

// Why the layer cannot have this format, though others may; empty: it can.
std::string unfit(const Layer& layer, const QuantizeOptions& options) {
  if (!layer.refusal.empty()) return layer.refusal;
  if (layer.weight.numel() == 0) return "it has no elements";
  if (layer.is_convolution && (options.weights.bits != 8 || options.weights.group != 0))
    return "convolutions are quantized with 8 bits by channel alone";
  return "";
}

// Groups that do not divide are an error: whoever chose them has to choose.
void expect_divided(const std::vector<Layer>& layers, const QuantizeOptions& options) {
  const WeightFormat& format = options.weights;
  std::string wrong;
  for (const Layer& layer : layers) {
    if (layer.is_convolution) continue;
    const int64_t inputs = layer.weight.size(layer.by_inputs ? 0 : 1);
    const int64_t unit = format.group != 0 ? format.group : format.bits == 4 ? 2 : 1;
    if (inputs % unit == 0) continue;
    wrong += (wrong.empty() ? "" : ", ") + ("'" + layer.name() + "' with ") +
             std::to_string(inputs) + " inputs";
  }
  if (!wrong.empty())
    throw UserError("[quantize] groups of " + std::to_string(format.group != 0 ? format.group : 2) +
                    " do not divide " + wrong + ": leave these out (except), or take another size");
}

QuantizedLayer left(const Layer& layer, const std::string& reason) {
  const int64_t bytes = layer.weight.type().nbytes();
  return {.weight = layer.name(),
          .scope = std::string(layer.products[0].node->annotation("scope")),
          .sizes = layer.weight.sizes(),
          .bytes_before = bytes,
          .bytes_after = bytes,
          .left = reason};
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (text.substr(0, star) != pattern.substr(0, star)) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (size_t skipped = 0; skipped <= text.size(); ++skipped)
    if (matches(pattern, text.substr(skipped))) return true;
  return false;
}

Selection select(const SavedCapture& capture, const QuantizeOptions& options) {
  expect_options(options);
  if (capture.formulas.size() > 0 || !capture.cases.empty())
    throw UserError("[quantize] a family has graphs of many sizes: bind it to one first");
  const std::vector<Layer> layers = layers_of(capture);
  expect_found(options.layers, layers);
  expect_found(options.except, layers);
  Selection selection;
  for (const Layer& layer : layers) {
    const bool named = matches_any(options.layers, layer.name());
    const bool wanted = options.layers.empty() || named;
    selection.order.push_back(layer.name());
    std::string reason = !wanted                                     ? "not chosen"
                         : matches_any(options.except, layer.name()) ? "left out"
                                                                     : unfit(layer, options);
    if (reason.empty())
      selection.chosen.push_back(layer);
    else
      selection.left.push_back(left(layer, reason));
  }
  expect_divided(selection.chosen, options);
  if (selection.chosen.empty()) {
    std::string reasons;
    for (const QuantizedLayer& layer : selection.left)
      reasons += "\n  " + layer.weight + ": " + layer.left;
    throw UserError(
        "[quantize] there is no layer to quantize: a product with a weight that the "
        "capture holds" +
        reasons);
  }
  return selection;
}

}  // namespace composit::quantization
