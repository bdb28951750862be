// Programs that remember: hidden state, caches, counters, functors with members.
#include "tests/sweep/cpp/registry.h"

namespace {

using sweep::Case;
using sweep::make;
using sweep::rows;
using sweep::Values;

constexpr char kChanges[] = "number|constant|differ|another|other|changes|outside|not the same";

struct RecurrentImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    h = torch::tanh(a(x) + h).detach();
    return h * 2;
  }
  torch::nn::Linear a = register_module("a", torch::nn::Linear(4, 4));
  at::Tensor h = torch::zeros({4, 4});
};
TORCH_MODULE(Recurrent);

// A member of C++ cannot be rebound by a replay: right if the state is carried, else refused.
SWEEP(state, recurrent, either) { return make(Recurrent(), rows(20)); }

struct BufferedImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    torch::NoGradGuard no_grad;
    h.copy_(torch::tanh(a(x) + h));
    return h.sum();
  }
  torch::nn::Linear a = register_module("a", torch::nn::Linear(4, 4));
  at::Tensor h = register_buffer("h", torch::zeros({4, 4}));
};
TORCH_MODULE(Buffered);

SWEEP(state, buffer_in_place, right) {
  Buffered model;
  return make(model, rows(20), [model] { return Values{model->h}; });
}

SWEEP(state, first_call_makes_it, either) {
  auto h = std::make_shared<at::Tensor>();
  auto step = [h](at::Tensor x) {
    *h = h->defined() ? *h * 0.5 + x : x.clone();
    return *h + 1;
  };
  return make(step, rows(20));
}

SWEEP(state, gru_passed_by_member, either) {
  torch::nn::GRU gru(4, 3);
  auto h = std::make_shared<at::Tensor>(torch::zeros({1, 1, 3}));
  auto step = [gru, h](at::Tensor x) mutable {
    torch::NoGradGuard no_grad;
    auto [out, next] = gru(x.unsqueeze(1), *h);
    *h = next;
    return out;
  };
  return make(step, rows(20));
}

SWEEP(state, lstm_training_detached, either) {
  torch::nn::LSTM lstm(4, 3);
  auto state = std::make_shared<std::tuple<at::Tensor, at::Tensor>>(torch::zeros({1, 1, 3}),
                                                                    torch::zeros({1, 1, 3}));
  auto optimizer =
      std::make_shared<torch::optim::SGD>(lstm->parameters(), torch::optim::SGDOptions(0.1));
  auto step = [lstm, state, optimizer](at::Tensor x) mutable {
    optimizer->zero_grad();
    auto [out, next] = lstm(x.unsqueeze(1), *state);
    *state = {std::get<0>(next).detach(), std::get<1>(next).detach()};
    at::Tensor loss = out.square().mean();
    loss.backward();
    optimizer->step();
    return loss.detach();
  };
  return make(step, rows(20), [lstm] { return lstm->parameters(); });
}

SWEEP(state, lstm_fresh, right) {
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(4, 3).num_layers(2));
  auto step = [lstm](at::Tensor x) mutable { return std::get<0>(lstm(x.unsqueeze(1))).detach(); };
  return make(step, rows(4));
}

// Planted: a cache that grows, so that no two graphs have one type.
SWEEP(state, cache_by_cat, refused) {
  auto cache = std::make_shared<at::Tensor>(torch::zeros({0, 4}));
  auto step = [cache](at::Tensor x) {
    *cache = torch::cat({*cache, x.slice(0, 0, 1)});
    return torch::softmax(x.matmul(cache->t()), -1).matmul(*cache);
  };
  return make(step, rows(8));
}

// Planted: a vector that grows.
SWEEP(state, vector_of_tensors, refused) {
  auto seen = std::make_shared<Values>();
  auto step = [seen](at::Tensor x) {
    seen->push_back(x.mean(0));
    return torch::stack(*seen).sum(0);
  };
  return make(step, rows(8));
}

// A vector that grows and that nobody reads.
SWEEP(state, vector_only_filled, right) {
  auto seen = std::make_shared<Values>();
  auto step = [seen](at::Tensor x) {
    seen->push_back(x.exp());
    return seen->back() + 1;
  };
  return make(step, rows(5));
}

// Planted: a cache that is written where a number of C++ says.
SWEEP(state, cache_by_number, refused) {
  at::Tensor cache = torch::zeros({32, 4});
  auto position = std::make_shared<int64_t>(0);
  auto step = [cache, position](at::Tensor x) {
    cache.select(0, (*position)++).copy_(x[0]);
    return cache.sum(0);
  };
  return make(step, rows(20), [cache] { return Values{cache}; });
}

SWEEP(state, cache_by_position_tensor, right) {
  at::Tensor cache = torch::zeros({32, 4}), position = torch::zeros({1}, torch::kLong);
  auto step = [cache, position](at::Tensor x) {
    cache.index_copy_(0, position, x.slice(0, 0, 1));
    position.add_(1);
    return cache.sum(0);
  };
  return make(step, rows(20), [cache, position] { return Values{cache, position}; });
}

// Planted: a static counter of a function.
SWEEP(state, static_counter, refused, kChanges) {
  static int count;
  count = 0;
  return make([](at::Tensor x) { return x * ++count; }, rows(5));
}

// Planted: the functor is copied, and counts in a member of its own.
SWEEP(state, mutable_functor, refused, kChanges) {
  struct Scale {
    at::Tensor operator()(at::Tensor x) { return x * ++count; }
    int count = 0;
  };
  return make(Scale(), rows(5));
}

SWEEP(state, mutable_functor_with_tensor, either) {
  struct Mean {
    at::Tensor operator()(at::Tensor x) {
      mean = mean * 0.9 + x * 0.1;
      return x - mean;
    }
    at::Tensor mean = torch::zeros({4, 4});
  };
  return make(Mean(), rows(20));
}

// Planted: a mutable lambda with a number.
SWEEP(state, mutable_lambda, refused, kChanges) {
  auto step = [scale = 1.0](at::Tensor x) mutable {
    scale *= 0.5;
    return x * scale;
  };
  return make(step, rows(5));
}

SWEEP(state, warm_up, cannot_see) {
  auto count = std::make_shared<int>(0);
  return make([count](at::Tensor x) { return ++*count > 3 ? x.tanh() : x * 1; }, rows(8));
}

// One module in two programs: the layer is trained by one and read by the other.
SWEEP(state, shared_module, right) {
  torch::nn::Linear layer(4, 4);
  Case result = make([layer](at::Tensor x) mutable { return layer(x).detach(); }, rows(6));
  result.before = [layer](size_t call) {
    torch::NoGradGuard no_grad;
    layer->weight.mul_(0.5 + static_cast<double>(call));
  };
  return result;
}

SWEEP(state, one_module_twice, right) {
  torch::nn::Linear layer(4, 4);
  torch::nn::Sequential model(layer, torch::nn::Tanh(), layer);
  auto step = [model](at::Tensor x) mutable {
    model->zero_grad();
    at::Tensor loss = model->forward(x).square().mean();
    loss.backward();
    torch::NoGradGuard no_grad;
    for (at::Tensor parameter : model->parameters()) parameter.sub_(parameter.grad(), 0.1);
    return loss.detach();
  };
  return make(step, rows(20), [model] { return model->parameters(); });
}

SWEEP(state, batch_norm, right) {
  torch::nn::BatchNorm1d norm(4);
  return make(norm, rows(20), [norm] { return norm->buffers(); });
}

// Without a momentum, the factor is one over a count: a number that the program asks for.
SWEEP(state, batch_norm_cumulative, either) {
  torch::nn::BatchNorm1d norm(torch::nn::BatchNormOptions(4).momentum(std::nullopt));
  return make(norm, rows(20), [norm] { return norm->buffers(); });
}

SWEEP(state, dropout, right) { return make(torch::nn::Dropout(0.5), rows(12)); }

SWEEP(state, eval_before_each_second_call, either) {
  torch::nn::Dropout dropout(0.5);
  Case result = make(dropout, rows(6));
  result.before = [dropout](size_t call) mutable { dropout->train(call % 2 == 0); };
  return result;
}

// The caller gives the module another parameter before the fourth call.
SWEEP(state, parameter_replaced, either) {
  torch::nn::Linear layer(4, 4);
  Case result = make(layer, rows(6));
  result.before = [layer](size_t call) mutable {
    if (call == 3) layer->weight.set_data(torch::full({4, 4}, 0.5));
  };
  return result;
}

}  // namespace
