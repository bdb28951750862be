// What a quantized capture has become, for people.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "composit/ir/error.h"
#include "composit/quantize/quantize.h"

namespace composit {
namespace {

constexpr std::pair<QuantizeMethod, std::string_view> kMethods[] = {
    {QuantizeMethod::nearest, "nearest"},
    {QuantizeMethod::gptq, "gptq"},
    {QuantizeMethod::awq, "awq"},
    {QuantizeMethod::smooth, "smooth"}};
constexpr std::pair<Activations, std::string_view> kActivations[] = {
    {Activations::unchanged, "unchanged"},
    {Activations::by_token, "by_token"},
    {Activations::calibrated, "calibrated"}};

constexpr std::pair<DType, std::string_view> kScales[] = {
    {DType::float32, "float32"}, {DType::float16, "float16"}, {DType::bfloat16, "bfloat16"}};

template <class Names>
auto value_named(const Names& names, std::string_view text, const char* what) {
  std::string known;
  for (const auto& [value, name] : names) {
    if (name == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw UserError("[quantize] " + std::string(what) + ": expected one of " + known +
                  ", received '" + std::string(text) + "'");
}
template <class Names, class Value>
std::string_view name_in(const Names& names, Value wanted) {
  for (const auto& [value, name] : names)
    if (value == wanted) return name;
  return "";
}

std::string percent(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", 100 * x);
  return text;
}
std::string megabytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g MB", static_cast<double>(bytes) * 1e-6);
  return text;
}
std::string text_of(const Dims& sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

using Cells = std::vector<std::string>;

Cells cells_of(const QuantizedLayer& layer, bool alone) {
  Cells cells{layer.weight, text_of(layer.sizes), megabytes(layer.bytes_before)};
  if (!layer.left.empty()) {
    cells.push_back("stays: " + layer.left);
    return cells;
  }
  cells.push_back(megabytes(layer.bytes_after));
  cells.push_back(percent(layer.weight_error));
  cells.push_back(layer.output_error ? percent(*layer.output_error) : "-");
  if (alone) cells.push_back(layer.result_error ? percent(*layer.result_error) : "-");
  return cells;
}

std::string table(const std::vector<Cells>& lines) {
  std::vector<size_t> widths(7);
  for (const Cells& line : lines)
    for (size_t i = 0; i + 1 < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const Cells& line : lines) {
    for (size_t i = 0; i < line.size(); ++i)
      text +=
          line[i] + (i + 1 < line.size() ? std::string(widths[i] - line[i].size() + 2, ' ') : "\n");
  }
  return text;
}

// What results are off by if the most expensive layers are left as they were, one after the other:
// errors of layers add as independent ones do.
std::string advice_of(const std::vector<QuantizedLayer>& layers,
                      const std::optional<double>& error) {
  constexpr size_t kMost = 8;
  double squares = 0;
  for (const QuantizedLayer& layer : layers)
    if (layer.left.empty() && layer.result_error)
      squares += *layer.result_error * *layer.result_error;
  if (squares == 0 || !std::isfinite(squares) || !error) return "";
  std::string text = "to leave layers as they were, each with those above it:\n";
  double left = squares;
  size_t count = 0;
  for (const QuantizedLayer& layer : layers) {
    if (!layer.left.empty() || !layer.result_error || count++ == kMost) continue;
    left = std::max(left - *layer.result_error * *layer.result_error, 0.0);
    text += "  except " + layer.weight + ": results are then off by about " +
            percent(*error * std::sqrt(left / squares)) + "\n";
  }
  return text;
}

const QuantizedLayer* worst_of(const std::vector<QuantizedLayer>& layers) {
  const QuantizedLayer* worst = nullptr;
  for (const QuantizedLayer& layer : layers)
    if (layer.left.empty() && layer.output_error &&
        (worst == nullptr || *layer.output_error > *worst->output_error))
      worst = &layer;
  return worst;
}

}  // namespace

std::string_view name(QuantizeMethod method) { return name_in(kMethods, method); }
QuantizeMethod quantize_method(std::string_view name) {
  return value_named(kMethods, name, "method");
}
std::string_view name(Activations activations) { return name_in(kActivations, activations); }
Activations activations_from_name(std::string_view name) {
  return value_named(kActivations, name, "activations");
}
DType scales_dtype(std::string_view name) { return value_named(kScales, name, "scales"); }

std::string str(const Quantized& quantized) {
  std::vector<QuantizedLayer> layers = quantized.layers;
  const bool alone = std::any_of(layers.begin(), layers.end(), [](const QuantizedLayer& layer) {
    return layer.result_error.has_value();
  });
  if (alone)
    std::stable_sort(layers.begin(), layers.end(),
                     [](const QuantizedLayer& a, const QuantizedLayer& b) {
                       return a.result_error.value_or(-1) > b.result_error.value_or(-1);
                     });
  std::vector<Cells> lines{
      {"weight", "sizes", "before", "after", "weight off by", "output off by"}};
  if (alone) lines[0].emplace_back("alone costs results");
  int64_t before = 0, after = 0;
  size_t count = 0;
  for (const QuantizedLayer& layer : layers) {
    lines.push_back(cells_of(layer, alone));
    before += layer.bytes_before;
    after += layer.bytes_after;
    count += layer.left.empty() ? 1 : 0;
  }
  std::string text =
      table(lines) + std::to_string(count) + " of " + std::to_string(quantized.layers.size()) +
      " layers are quantized: " + megabytes(before) + " have become " + megabytes(after) + "\n";
  if (quantized.error)
    text +=
        "on the examples, results are off by " + percent(*quantized.error) + " of their spread\n";
  if (alone) return text + advice_of(layers, quantized.error);
  if (const QuantizedLayer* worst = worst_of(quantized.layers))
    text += "the layer that is off most: " + worst->weight + ", " + percent(*worst->output_error) +
            "; to leave it as it was: except " + worst->weight + "\n";
  return text;
}

}  // namespace composit
