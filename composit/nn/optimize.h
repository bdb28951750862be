// Training: parameters are changed along their gradients. This is the only place of composit where
// something is evaluated without the caller's asking for values.
//
// As a function, one step:
//
//   std::vector<LazyTensor> weights = ...;      // made by an Initializer, or by held_input
//   Values state;
//   for (...) {
//     const Tensor loss = ... weights ...;
//     weights = nn::optimize(weights, grad(loss, weights),
//                            nn::adam({.learning_rate = 1e-3}), state);
//   }
//
// The new weights have the names of the old ones, so the graph of each step is that of the step
// before, and a backend that knows graphs by their hash compiles once. Or with the graph built
// once:
//
//   const nn::TrainingStep step(weights, grad(loss, weights), nn::adam(), {.observed = {loss}});
//   Values values;                              // weights start with what they hold
//   for (...) {
//     values.set(images, batch);
//     const Array loss_now = step(values)[0];   // `values` has the new weights and state
//   }
//
// Optimizers are torch.optim's: same names, defaults, state and formulas; step count and bias
// correction are computed in the graph. All state starts at zero.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "composit/eval/evaluate.h"
#include "composit/ops/functions.h"

namespace composit::nn {

// A number, or a tensor of one element: an input, if it changes from step to step.
struct Rate {
  Rate(double value) : value(value) {}                   // NOLINT: numbers are Rates
  Rate(Tensor tensor) : value(std::move(tensor)) {}      // NOLINT
  Rate(LazyTensor tensor) : value(std::move(tensor)) {}  // NOLINT
  ArgumentValue value;
};

// How a parameter follows from its gradient. Make your own with these two members.
struct Optimizer {
  // What is kept of each parameter between steps: an input "PARAMETER.name".
  struct State {
    std::string name;
    bool is_count = false;  // a float64 number; otherwise of the parameter's sizes and dtype
  };
  std::vector<State> state = {};
  // The parameter's new value, and behind it that of each state.
  std::function<Tensors(const Tensor& parameter, const Tensor& gradient, const Tensors& state)>
      update;
};

struct SgdOptions {
  Rate learning_rate = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;  // with momentum and without dampening only
};
Optimizer sgd(const SgdOptions& options = {});

struct AdamOptions {
  Rate learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  // added to the gradient
  bool amsgrad = false;
};
Optimizer adam(const AdamOptions& options = {});

struct AdamwOptions {
  Rate learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  // of the parameter itself, times the learning rate
  bool amsgrad = false;
};
Optimizer adamw(const AdamwOptions& options = {});

struct TrainingStepOptions {
  std::vector<LazyTensor> observed = {};  // what else to compute: the loss
  const Backend* backend = &reference();
};

// The graph of one step, compiled.
class TrainingStep {
 public:
  // `parameters` are inputs, `gradients` one for each. UserError otherwise, or where a gradient has
  // other sizes than its parameter.
  TrainingStep(const std::vector<LazyTensor>& parameters, const std::vector<LazyTensor>& gradients,
               const Optimizer& optimizer, const TrainingStepOptions& options = {});

  // The values of `observed`, before the step. Parameters and state in `values` take their new
  // value; where they are missing, parameters start with what they hold and state with zero.
  std::vector<Array> operator()(Values& values) const;

  // Its mutations are the new values of parameters and state.
  const Graph& graph() const { return graph_; }

 private:
  Graph graph_;
  Compiled run_;
};

// One step. New parameters of the same names, which hold their new values. What `values` has for
// other inputs is used, too: the optimizer's state stays there.
std::vector<LazyTensor> optimize(const std::vector<LazyTensor>& parameters,
                                 const std::vector<LazyTensor>& gradients,
                                 const Optimizer& optimizer, Values& values,
                                 const Backend& backend = reference());
// The same for an optimizer without state. UserError for one that has.
std::vector<LazyTensor> optimize(const std::vector<LazyTensor>& parameters,
                                 const std::vector<LazyTensor>& gradients,
                                 const Optimizer& optimizer, const Backend& backend = reference());

}  // namespace composit::nn
