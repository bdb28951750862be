#include "tests/flashlight/quantize_causes.h"

#include <torch/torch.h>

#include <cmath>
#include <fstream>

#include "composit/io/gguf.h"
#include "composit/quantize/quantize.h"
#include "flashlight/generate.h"
#include "flashlight/quantize.h"
#include "flashlight/trace.h"
#include "tests/io/temporary_folder.h"

namespace flashlight::test {
namespace {

// A layer of 24 inputs, and whether the program gives the place of its largest result alone.
CaptureBase layer(bool largest = false) {
  const auto last = [largest](const at::Tensor& y) { return largest ? y.argmax(-1) : y; };
  torch::nn::Sequential model(torch::nn::Linear(24, 4), torch::nn::Functional(last));
  return trace(model, at::ones({2, 24}));
}
void quantized(const composit::QuantizeOptions& options, bool largest = false) {
  quantize(layer(largest), options);
}
void three_bits() { quantized({.weights = {.bits = 3}}); }
void groups_of_seven() { quantized({.weights = {.group = 7}}); }
void another_layer() { quantized({.layers = {"encoder.*"}}); }
void an_error_of_nothing() { quantized({.max_error = 0.1}, /*largest=*/true); }
void no_layer() {
  quantize(trace([](const at::Tensor& x) { return x.sin(); }, at::ones({3})), {});
}
void another_weight() { composit::with_values(layer().saved(), {{"other", {}}}); }

void generated(const at::Tensor& logits, const std::vector<TokenIds>& prompts) {
  GenerateOptions options;
  options.max_tokens = 1;
  generate([logits](const at::Tensor&, const at::Tensor&) { return logits; }, prompts, options);
}
void no_numbers() { generated(at::full({1, 7}, NAN), {{1}}); }
void no_prompt() { generated(at::ones({1, 7}), {}); }
void below_zero() { generated(at::ones({1, 7}), {{1, -4}}); }
void other_logits() { generated(at::ones({3, 7}), {{1}}); }

void no_gguf() {
  const composit::test::TemporaryFolder folder;
  const auto file = folder.path() / "model.gguf";
  std::ofstream(file) << "GGUF";
  composit::read_gguf(file);
}

}  // namespace

Causes with_quantize_causes(Causes others) {
  others.merge(Causes{
      {"[quantize] expected weights of 8 or 4 bits, received …", three_bits},
      {"[quantize] groups of … do not divide …: leave these out (except), or take another size",
       groups_of_seven},
      {"[quantize] no weight of a layer is called '…'; there are …", another_layer},
      {"[quantize] an error to keep: expected a program that gives or writes numbers of floating "
       "point, received one that gives integers or bools alone: …",
       an_error_of_nothing},
      {"[quantize] there is no layer to quantize: …", no_layer},
      {"[with_values] no weight is called '…'", another_weight},
      {"[generate] expected logits, received … for sequence …", no_numbers},
      {"[generate] expected a prompt at least, …", no_prompt},
      {"[generate] sequence …: expected token numbers, received …", below_zero},
      {"[generate] expected logits of a step, …", other_logits},
      {"[gguf] …, byte …: …", no_gguf}});
  return others;
}

}  // namespace flashlight::test
