#include "examples/objectives/lstm.h"

#include <spdlog/fmt/fmt.h>

#include "composit/ad/chain_rule.h"
#include "examples/fits/fits.h"
#include "examples/objectives/uniform.h"

namespace fits {
namespace {

constexpr int64_t kLayers = 2, kCharacters = 120, kAlphabet = 6;
constexpr int kSteps = 300;

// Runs of equal characters, six long.
std::vector<double> text() {
  constexpr int64_t kRun = 6;
  std::vector<double> one_hot(kCharacters * kAlphabet, 0.0);
  for (int64_t i = 0; i < kCharacters; ++i)
    one_hot[static_cast<size_t>(i * kAlphabet + i / kRun % kAlphabet)] = 1;
  return one_hot;
}

objectives::Problem problem() {
  objectives::Inputs inputs;
  const objectives::LstmParameters parameters = {
      inputs.add("layers",
                 objectives::uniform({.sizes = {kLayers, 8, kAlphabet}, .seed = 1, .low = -1})),
      inputs.add("ends", objectives::uniform({.sizes = {3, kAlphabet}, .seed = 2, .low = -1}))};
  const auto state = inputs.add(
      "state", array({kLayers, 2, kAlphabet}, std::vector<double>(kLayers * 2 * kAlphabet, 0.0)));
  const auto sequence = inputs.add("sequence", array({kCharacters, kAlphabet}, text()));
  const auto loss = objectives::lstm(parameters, state, sequence);
  const auto gradients = composit::grad(loss, {parameters.layers, parameters.ends});
  return inputs.problem("lstm", {loss}, {loss, gradients[0], gradients[1]});
}

}  // namespace

Outcome lstm() {
  Adam descent(problem(), 0.05);
  std::vector<double> steps, losses;
  for (int step = 0; step < kSteps; ++step) {
    steps.push_back(step);
    losses.push_back(descent.step());
  }
  Outcome outcome = {"lstm",
                     fmt::format("lstm: loss {:.3f} -> {:.3f}", losses.front(), losses.back()),
                     losses.back() < 0.5 * losses.front(),
                     examples::Plot("an LSTM learns that characters come in runs", "step")};
  outcome.plot.line("loss per element", steps, losses);
  return outcome;
}

}  // namespace fits
