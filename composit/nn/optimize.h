// Training: parameters are changed along their gradients. This is the only place of composit where
// something is evaluated without the caller's asking for values.
//
// As a function, one step:
//
//   LazyTensors weights = init.parameters();   // or made by held_input
//   Values state;
//   for (int i = 0; i < 100; ++i) {
//     const LazyTensor loss = loss_of(weights);
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
//   for (const Array& batch : batches) {
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
  Rate(LazyTensor tensor) : value(std::move(tensor)) {}  // NOLINT
  ArgumentValue value;                                   // the number or the tensor
};

// An optimizer: the rule that computes a parameter's new value from its gradient. Set these two
// members to make your own.
struct Optimizer {
  // State that is kept for each parameter between steps: an input "PARAMETER.name".
  struct State {
    std::string name;       // "momentum_buffer"
    bool is_count = false;  // a float64 number; otherwise of the parameter's sizes and dtype
  };
  std::vector<State> state = {};  // in the order in which `update` takes it
  // The parameter's new value, followed by that of each state.
  std::function<LazyTensors(const LazyTensor& parameter, const LazyTensor& gradient,
                            const LazyTensors& state)>
      update;
};

struct SgdOptions {
  Rate learning_rate = 1e-3;  // size of a step
  double momentum = 0;        // share of the step before in this one
  double dampening = 0;       // damping of the gradient in the momentum
  double weight_decay = 0;    // times the parameter, added to the gradient
  bool nesterov = false;      // with momentum and without dampening only
};
// Stochastic gradient descent. UserError where `nesterov` has no momentum, or dampening.
Optimizer sgd(const SgdOptions& options = {});

struct AdamOptions {
  Rate learning_rate = 1e-3;          // size of a step
  double beta1 = 0.9, beta2 = 0.999;  // decay of the means of gradients and of their squares
  double eps = 1e-8;                  // added to the root that is divided by
  double weight_decay = 0;            // added to the gradient
  bool amsgrad = false;               // divides by the greatest mean of squares so far
};
// Kingma and Ba 2014.
Optimizer adam(const AdamOptions& options = {});

struct AdamwOptions {
  Rate learning_rate = 1e-3;          // size of a step
  double beta1 = 0.9, beta2 = 0.999;  // decay of the means of gradients and of their squares
  double eps = 1e-8;                  // added to the root that is divided by
  double weight_decay = 1e-2;         // decay of the parameter, times the learning rate
  bool amsgrad = false;               // divides by the greatest mean of squares so far
};
// Adam with decoupled weight decay: Loshchilov and Hutter 2017.
Optimizer adamw(const AdamwOptions& options = {});

// The options of a TrainingStep.
struct TrainingStepOptions {
  LazyTensors observed = {};              // further values to compute, such as the loss
  const Backend* backend = &reference();  // runs the step
};

// The graph of one step, compiled.
class TrainingStep {
 public:
  // `parameters` are inputs, `gradients` one for each. UserError otherwise, or where a gradient has
  // other sizes than its parameter.
  TrainingStep(const LazyTensors& parameters, const LazyTensors& gradients,
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
LazyTensors optimize(const LazyTensors& parameters, const LazyTensors& gradients,
                     const Optimizer& optimizer, Values& values,
                     const Backend& backend = reference());
// The same for an optimizer without state. UserError for one that has.
LazyTensors optimize(const LazyTensors& parameters, const LazyTensors& gradients,
                     const Optimizer& optimizer, const Backend& backend = reference());

}  // namespace composit::nn
