// torch.optim's formulas; https://pytorch.org/docs/stable/optim.html has them as algorithms.
#include "composit/nn/optimize.h"

namespace composit::nn {
namespace {

LazyTensor times(const Rate& rate, const LazyTensor& x) {
  return apply_one("aten::mul.Tensor", {rate.value, x});
}

void expect_not_negative(const char* optimizer, const char* what, double value) {
  if (!(value >= 0))
    throw UserError("[" + std::string(optimizer) + "] expected a " + what +
                    " of at least 0, received " + std::to_string(value));
}

void expect_not_negative(const char* optimizer, const Rate& rate) {
  if (!rate.value.is_tensor())
    expect_not_negative(optimizer, "learning_rate", rate.value.data().as<double>());
}

void check(const SgdOptions& o) {
  expect_not_negative("sgd", o.learning_rate);
  expect_not_negative("sgd", "momentum", o.momentum);
  expect_not_negative("sgd", "weight_decay", o.weight_decay);
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
    throw UserError("[sgd] expected a momentum above 0 and no dampening with nesterov, received " +
                    std::to_string(o.momentum) + " and " + std::to_string(o.dampening));
}

// State: the momentum, and with dampening the count of steps: the first gradient is not dampened.
LazyTensors sgd_update(const SgdOptions& o, const LazyTensor& parameter, LazyTensor gradient,
                       const LazyTensors& state) {
  if (o.weight_decay != 0) gradient = gradient + parameter * o.weight_decay;
  if (o.momentum == 0) return {parameter - times(o.learning_rate, gradient)};
  LazyTensor momentum = state[0] * o.momentum;
  LazyTensors counts;
  if (o.dampening == 0) {
    momentum = momentum + gradient;
  } else {
    const LazyTensor dampened = momentum + gradient * (1 - o.dampening);
    momentum = where(eq(state[1], 0), gradient, dampened);
    counts.push_back(state[1] + 1);
  }
  const LazyTensor direction = o.nesterov ? gradient + momentum * o.momentum : momentum;
  LazyTensors results{parameter - times(o.learning_rate, direction), momentum};
  results.insert(results.end(), counts.begin(), counts.end());
  return results;
}

// The common part of Adam and AdamW.
template <class Options>
LazyTensors adaptive_step(const Options& o, const LazyTensor& parameter, const LazyTensor& gradient,
                          const LazyTensors& state) {
  const LazyTensor step = state[0] + 1;
  const LazyTensor mean = state[1] + (gradient - state[1]) * (1 - o.beta1);  // torch's lerp
  const LazyTensor square_mean = state[2] * o.beta2 + gradient * gradient * (1 - o.beta2);
  const LazyTensor correction1 = 1 - pow(o.beta1, step), correction2 = 1 - pow(o.beta2, step);
  LazyTensors results{{}, step, mean, square_mean};
  LazyTensor scale = square_mean;
  if (o.amsgrad) {
    scale = maximum(state[3], square_mean);
    results.push_back(scale);
  }
  const LazyTensor denominator = sqrt(scale) / sqrt(correction2) + o.eps;
  results[0] = parameter - times(o.learning_rate, reciprocal(correction1)) * (mean / denominator);
  return results;
}

template <class Options>
Optimizer adaptive(const char* name, const Options& o,
                   LazyTensors (*update)(const Options&, const LazyTensor&, const LazyTensor&,
                                         const LazyTensors&)) {
  expect_not_negative(name, o.learning_rate);
  expect_not_negative(name, "weight_decay", o.weight_decay);
  expect_not_negative(name, "eps", o.eps);
  for (double beta : {o.beta1, o.beta2})
    if (!(beta >= 0 && beta < 1))
      throw UserError("[" + std::string(name) +
                      "] expected a beta from 0 to 1, 1 excluded, received " +
                      std::to_string(beta));
  Optimizer result{
      {{"step", true}, {"exp_avg"}, {"exp_avg_sq"}},
      [o, update](const LazyTensor& parameter, const LazyTensor& gradient,
                  const LazyTensors& state) { return update(o, parameter, gradient, state); }};
  if (o.amsgrad) result.state.push_back({"max_exp_avg_sq"});
  return result;
}

LazyTensors adam_update(const AdamOptions& o, const LazyTensor& parameter,
                        const LazyTensor& gradient, const LazyTensors& state) {
  const bool decays = o.weight_decay != 0;
  return adaptive_step(o, parameter, decays ? gradient + parameter * o.weight_decay : gradient,
                       state);
}

LazyTensors adamw_update(const AdamwOptions& o, const LazyTensor& parameter,
                         const LazyTensor& gradient, const LazyTensors& state) {
  const bool decays = o.weight_decay != 0;
  const auto kept = [&] {
    const LazyTensor decay = times(o.learning_rate, full({}, o.weight_decay, DType::float64));
    return parameter * (1 - decay);
  };
  return adaptive_step(o, decays ? kept() : parameter, gradient, state);
}

}  // namespace

Optimizer sgd(const SgdOptions& options) {
  check(options);
  Optimizer result{
      {},
      [options](const LazyTensor& parameter, const LazyTensor& gradient, const LazyTensors& state) {
        return sgd_update(options, parameter, gradient, state);
      }};
  if (options.momentum != 0) result.state.push_back({"momentum_buffer"});
  if (options.momentum != 0 && options.dampening != 0) result.state.push_back({"step", true});
  return result;
}

Optimizer adam(const AdamOptions& options) { return adaptive("adam", options, adam_update); }
Optimizer adamw(const AdamwOptions& options) { return adaptive("adamw", options, adamw_update); }

}  // namespace composit::nn
