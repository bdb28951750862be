// Training steps of LibTorch's optimizers, captured at their first step and at a later one.
#include "tests/sweep/cpp/registry.h"

namespace {

using sweep::Case;
using sweep::make;
using sweep::rows;
using sweep::Values;
namespace optim = torch::optim;

Values parameters_and_gradients(const torch::nn::Sequential& model) {
  Values all = model->parameters();
  for (const at::Tensor& parameter : model->parameters()) all.push_back(parameter.grad());
  return all;
}

// A training step; `warm` steps ran before the trace.
template <class Optimizer, class Options>
Case training(Options options, int64_t warm = 0, int64_t calls = 20) {
  auto model = sweep::network();
  auto optimizer = std::make_shared<Optimizer>(model->parameters(), options);
  auto step = [model, optimizer](at::Tensor x) mutable {
    optimizer->zero_grad();
    at::Tensor loss = model->forward(x).square().mean();
    loss.backward();
    optimizer->step();
    return loss.detach();
  };
  for (int64_t i = 0; i < warm; ++i) step(torch::ones({4, 4}) * i);
  return make(step, rows(calls), [model] { return model->parameters(); });
}

SWEEP(optimizers, sgd, right) { return training<optim::SGD>(optim::SGDOptions(0.1)); }

SWEEP(optimizers, sgd_momentum_first, right) {
  return training<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9));
}

SWEEP(optimizers, sgd_momentum_later, right) {
  return training<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9), 2);
}

SWEEP(optimizers, sgd_nesterov_first, right) {
  return training<optim::SGD>(
      optim::SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01));
}

SWEEP(optimizers, adam_first, right) { return training<optim::Adam>(optim::AdamOptions(0.01)); }

SWEEP(optimizers, adam_later, right) { return training<optim::Adam>(optim::AdamOptions(0.01), 3); }

SWEEP(optimizers, adam_hundred_steps, right) {
  return training<optim::Adam>(optim::AdamOptions(0.01), 0, 100);
}

SWEEP(optimizers, adam_amsgrad, right) {
  return training<optim::Adam>(optim::AdamOptions(0.01).amsgrad(true).weight_decay(0.01));
}

SWEEP(optimizers, adamw_first, right) { return training<optim::AdamW>(optim::AdamWOptions(0.01)); }

SWEEP(optimizers, adamw_later, right) {
  return training<optim::AdamW>(optim::AdamWOptions(0.01), 3);
}

SWEEP(optimizers, adagrad_first, right) {
  return training<optim::Adagrad>(optim::AdagradOptions(0.01));
}

// The rate is divided by 1 + decay * (step - 1), a number of the program.
SWEEP(optimizers, adagrad_lr_decay, right) {
  return training<optim::Adagrad>(optim::AdagradOptions(0.1).lr_decay(0.1));
}

SWEEP(optimizers, rmsprop_first, right) {
  return training<optim::RMSprop>(optim::RMSpropOptions(0.01));
}

SWEEP(optimizers, rmsprop_centered, right) {
  return training<optim::RMSprop>(optim::RMSpropOptions(0.01).centered(true).momentum(0.5));
}

// Its stopping tests are values of tensors: guards that another input need not meet.
SWEEP(optimizers, lbfgs, either) {
  torch::nn::Linear model(4, 1);
  auto optimizer = std::make_shared<optim::LBFGS>(
      model->parameters(), optim::LBFGSOptions(0.1).max_iter(3).history_size(2));
  auto step = [model, optimizer](at::Tensor x) mutable {
    return optimizer
        ->step([&] {
          optimizer->zero_grad();
          at::Tensor loss = (model(x) - 1).square().mean();
          loss.backward();
          return loss;
        })
        .detach();
  };
  return make(step, rows(8), [model] { return model->parameters(); });
}

// The schedule runs in the step: right if its numbers are followed, else refused.
Case scheduled(unsigned every) {
  auto model = sweep::network();
  auto optimizer = std::make_shared<optim::SGD>(model->parameters(), optim::SGDOptions(0.1));
  auto schedule = std::make_shared<optim::StepLR>(*optimizer, every, 0.5);
  schedule->step();  // LibTorch's first step leaves the rate as it is.
  auto step = [model, optimizer, schedule](at::Tensor x) mutable {
    optimizer->zero_grad();
    at::Tensor loss = model->forward(x).square().mean();
    loss.backward();
    optimizer->step();
    schedule->step();
    return loss.detach();
  };
  return make(step, rows(20), [model] { return model->parameters(); });
}

SWEEP(optimizers, rate_halved_each_step, cannot_see) { return scheduled(1); }

SWEEP(optimizers, rate_halved_every_five, cannot_see) { return scheduled(5); }

// Planted: the caller sets another rate before each call.
SWEEP(optimizers, rate_from_outside, refused, "lr|rate|number|differ|another|constant") {
  auto model = sweep::network();
  auto optimizer = std::make_shared<optim::SGD>(model->parameters(), optim::SGDOptions(0.1));
  auto step = [model, optimizer](at::Tensor x) mutable {
    optimizer->zero_grad();
    model->forward(x).square().mean().backward();
    optimizer->step();
    return x.sum();
  };
  Case result = make(step, rows(20), [model] { return model->parameters(); });
  result.before = [optimizer](size_t call) {
    auto& options = static_cast<optim::SGDOptions&>(optimizer->param_groups()[0].options());
    options.lr(0.1 / (1 + call));
  };
  return result;
}

Case accumulating(int64_t warm) {
  auto model = sweep::network();
  auto step = [model](at::Tensor x) mutable {
    at::Tensor loss = model->forward(x).square().mean();
    loss.backward();
    return loss.detach();
  };
  for (int64_t i = 0; i < warm; ++i) step(torch::ones({4, 4}) * i);
  return make(step, rows(20), [model] { return parameters_and_gradients(model); });
}

// The first call makes the gradients, and the others add to them.
SWEEP(optimizers, accumulation_first, either) { return accumulating(0); }

SWEEP(optimizers, accumulation_later, right) { return accumulating(2); }

// Planted: the second call updates, the first one does not.
SWEEP(optimizers, accumulation_of_two, refused) {
  auto model = sweep::network();
  auto optimizer = std::make_shared<optim::SGD>(model->parameters(), optim::SGDOptions(0.1));
  auto count = std::make_shared<int>(0);
  auto step = [model, optimizer, count](at::Tensor x) mutable {
    at::Tensor loss = model->forward(x).square().mean() / 2;
    loss.backward();
    if (++*count % 2 == 0) {
      optimizer->step();
      optimizer->zero_grad();
    }
    return loss.detach();
  };
  return make(step, rows(20), [model] { return model->parameters(); });
}

SWEEP(optimizers, zero_grad_in_place, right) {
  auto model = sweep::network();
  auto optimizer = std::make_shared<optim::Adam>(model->parameters(), optim::AdamOptions(0.01));
  auto step = [model, optimizer](at::Tensor x) mutable {
    optimizer->zero_grad(/*set_to_none=*/false);
    at::Tensor loss = model->forward(x).square().mean();
    loss.backward();
    optimizer->step();
    return loss.detach();
  };
  step(torch::ones({4, 4}));
  return make(step, rows(20), [model] { return parameters_and_gradients(model); });
}

// LibTorch's clipping asks for the norm as a number and compares it with the limit.
SWEEP(optimizers, clip_grad_norm, either) {
  auto model = sweep::network();
  auto step = [model](at::Tensor x) mutable {
    model->zero_grad();
    model->forward(x * 10).square().mean().backward();
    const double norm = torch::nn::utils::clip_grad_norm_(model->parameters(), 0.5);
    torch::NoGradGuard no_grad;
    for (at::Tensor parameter : model->parameters()) parameter.sub_(parameter.grad(), 0.1);
    return norm;
  };
  return make(step, rows(20), [model] { return model->parameters(); });
}

SWEEP(optimizers, clip_grad_value, right) {
  auto model = sweep::network();
  auto step = [model](at::Tensor x) mutable {
    model->zero_grad();
    at::Tensor loss = model->forward(x * 10).square().mean();
    loss.backward();
    torch::nn::utils::clip_grad_value_(model->parameters(), 0.05);
    torch::NoGradGuard no_grad;
    for (at::Tensor parameter : model->parameters()) parameter.sub_(parameter.grad(), 0.1);
    return loss.detach();
  };
  return make(step, rows(20), [model] { return model->parameters(); });
}

SWEEP(optimizers, gan, right) {
  auto maker = sweep::network();
  torch::nn::Linear critic(2, 1);
  auto make_better = std::make_shared<optim::Adam>(maker->parameters(), optim::AdamOptions(0.01));
  auto judge_better =
      std::make_shared<optim::RMSprop>(critic->parameters(), optim::RMSpropOptions(0.01));
  auto step = [maker, critic, make_better, judge_better](at::Tensor real) mutable {
    at::Tensor made = maker->forward(torch::randn({4, 4}));
    judge_better->zero_grad();
    at::Tensor loss = critic(made.detach()).mean() - critic(real).mean();
    loss.backward();
    judge_better->step();
    make_better->zero_grad();
    at::Tensor made_loss = -critic(made).mean();
    made_loss.backward();
    make_better->step();
    return std::pair(loss.detach(), made_loss.detach());
  };
  return make(step, rows(20, {4, 2}), [maker, critic] {
    Values all = maker->parameters();
    for (const at::Tensor& parameter : critic->parameters()) all.push_back(parameter);
    return all;
  });
}

SWEEP(optimizers, ema_in_place, right) {
  auto model = sweep::network();
  auto average = std::make_shared<Values>();
  for (const at::Tensor& parameter : model->parameters())
    average->push_back(parameter.detach().clone());
  auto optimizer = std::make_shared<optim::SGD>(model->parameters(), optim::SGDOptions(0.1));
  auto step = [model, average, optimizer](at::Tensor x) mutable {
    optimizer->zero_grad();
    at::Tensor loss = model->forward(x).square().mean();
    loss.backward();
    optimizer->step();
    torch::NoGradGuard no_grad;
    for (size_t i = 0; i < average->size(); ++i) (*average)[i].lerp_(model->parameters()[i], 0.1);
    return loss.detach();
  };
  return make(step, rows(20), [average] { return *average; });
}

// The averages are new tensors in each step, in a vector.
SWEEP(optimizers, ema_rebinding, either) {
  torch::nn::Linear model(4, 2);
  auto average = std::make_shared<at::Tensor>(torch::zeros({2, 4}));
  auto step = [model, average](at::Tensor x) mutable {
    torch::NoGradGuard no_grad;
    model->weight.add_(x.slice(0, 0, 2), 0.1);
    *average = *average * 0.9 + model->weight * 0.1;
    return at::linear(x, *average);
  };
  return make(step, rows(20));
}

}  // namespace
