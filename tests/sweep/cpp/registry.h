// Programs on which tracers fail, registered by name.
//
//   SWEEP(optimizers, adam, right) {                // or refused, either, cannot_see
//     auto model = sweep::network();
//     return sweep::make([model](at::Tensor x) mutable { return model->forward(x); },
//                        sweep::rows(20), [model] { return model->parameters(); });
//   }
//
// The body is called anew for the eager run and for the captured one, after seeding.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "flashlight/trace.h"

namespace sweep {

using Values = std::vector<at::Tensor>;

// The expected verdict on a program. `refused`: a planted wrong variant, which may be right as
// well. `copies`: right, but that results are copies where the program gives its own state or
// argument. `cannot_see`: alike in the first two calls and not in a later one.
enum class Expect { right, refused, either, copies, cannot_see };

struct Case {
  size_t calls = 0;
  std::function<Values(size_t)> eager;                      // the program, on the inputs of a call
  std::function<std::function<Values(size_t)>()> trace;     // on the inputs of call 0
  std::function<Values(size_t)> arguments;                  // of a call
  std::function<Values()> state = [] { return Values(); };  // compared after each call
  std::function<void(size_t)> before = [](size_t) {};       // called before each call
  std::function<void(const Values&)> after = [](const Values&) {};  // with its results
  // If no two runs agree, the program counts its runs here: it is right if it runs each time.
  std::shared_ptr<size_t> runs;
};

struct Registered {
  std::string name;
  Case (*build)();
  Expect expect;
  std::string error;  // what the message of a refusal contains, any of "a|b"
};

std::vector<Registered>& registry();

struct Registration {
  Registration(const char* name, Case (*build)(), Expect expect, const char* error = "") {
    registry().push_back({name, build, expect, error});
  }
};

inline Values values(const at::Tensor& tensor) { return {tensor}; }
inline Values values(const Values& tensors) { return tensors; }
inline Values values(double number) { return {torch::tensor(number, torch::kFloat64)}; }
template <class First, class Second>
Values values(const std::pair<First, Second>& pair) {
  return {pair.first, pair.second};
}
template <class... Tensors>
Values values(const std::tuple<Tensors...>& tuple) {
  return std::apply([](const auto&... tensors) { return Values{tensors...}; }, tuple);
}

// A case of a program with one argument; a module is traced where it is, a callable is copied.
template <class Program, class Input>
Case make(
    std::shared_ptr<Program> program, std::vector<Input> inputs,
    std::function<Values()> state = [] { return Values(); }) {
  auto all = std::make_shared<std::vector<Input>>(std::move(inputs));
  Case result;
  result.calls = all->size();
  result.eager = [program, all](size_t call) {
    return values(flashlight::detail::call(*program, (*all)[call]));
  };
  result.trace = [program, all]() -> std::function<Values(size_t)> {
    auto captured = flashlight::trace(*program, (*all)[0]);
    return [captured, all](size_t call) { return values(captured((*all)[call])); };
  };
  result.arguments = [all](size_t call) { return values((*all)[call]); };
  result.state = std::move(state);
  return result;
}

template <class Program, class Input>
Case make(
    Program program, std::vector<Input> inputs,
    std::function<Values()> state = [] { return Values(); }) {
  return make(std::make_shared<Program>(std::move(program)), std::move(inputs), std::move(state));
}

// A random tensor per call.
Values rows(int64_t calls, std::vector<int64_t> shape = {4, 4});
torch::nn::Sequential network();

}  // namespace sweep

#define SWEEP(theme, name, ...)                                              \
  static sweep::Case build_##theme##_##name();                               \
  static const sweep::Registration register_##theme##_##name{                \
      #theme "." #name, build_##theme##_##name, sweep::Expect::__VA_ARGS__}; \
  static sweep::Case build_##theme##_##name()
