// Programs that take values from outside of their arguments. Most are planted: no
// graph can be right for them, so they must be refused.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

#include "tests/sweep/cpp/registry.h"

namespace {

using sweep::Case;
using sweep::make;
using sweep::rows;
using sweep::Values;

constexpr char kChanges[] = "number|constant|differ|another|other|changes|outside|not the same";

double global_scale = 1;

SWEEP(outside, global_number, refused, kChanges) {
  Case result = make([](at::Tensor x) { return x * global_scale; }, rows(5));
  result.before = [](size_t call) { global_scale = 1 + static_cast<double>(call); };
  return result;
}

SWEEP(outside, global_number_late, cannot_see) {
  Case result = make([](at::Tensor x) { return x * global_scale; }, rows(6));
  result.before = [](size_t call) { global_scale = call < 3 ? 1 : 2; };
  return result;
}

// Each other call takes another branch.
SWEEP(outside, toggle, refused) {
  auto negative = std::make_shared<bool>(false);
  Case result = make([negative](at::Tensor x) { return *negative ? -x : x.relu(); }, rows(6));
  result.before = [negative](size_t call) { *negative = call % 2 == 1; };
  return result;
}

SWEEP(outside, captured_by_reference, refused, kChanges) {
  auto numbers = std::make_shared<std::vector<double>>(3, 1.0);
  double& scale = (*numbers)[1];
  Case result = make([numbers, &scale](at::Tensor x) { return x * scale; }, rows(5));
  result.before = [numbers](size_t call) { (*numbers)[1] = 0.5 * static_cast<double>(call); };
  return result;
}

SWEEP(outside, mersenne_twister, refused, kChanges) {
  auto engine = std::make_shared<std::mt19937>(3);
  auto step = [engine](at::Tensor x) {
    return x * std::uniform_real_distribution<double>(0, 1)(*engine);
  };
  return make(step, rows(5));
}

SWEEP(outside, mersenne_twister_tensor, refused, kChanges) {
  auto engine = std::make_shared<std::mt19937>(3);
  auto step = [engine](at::Tensor x) {
    std::vector<float> noise(4);
    for (float& number : noise) number = std::normal_distribution<float>()(*engine);
    return x + torch::tensor(noise);
  };
  return make(step, rows(5));
}

SWEEP(outside, skips_a_layer_by_chance, refused) {
  torch::nn::Linear layer(4, 4);
  auto engine = std::make_shared<std::minstd_rand>(1);
  auto step = [layer, engine](at::Tensor x) mutable {
    for (int i = 0; i < 4; ++i)
      if (((*engine)() >> 8) % 2 == 0) x = x + layer(x).detach();
    return x;
  };
  return make(step, rows(8));
}

SWEEP(outside, clock, refused, kChanges) {
  auto runs = std::make_shared<size_t>(0);
  auto step = [runs](at::Tensor x) {
    ++*runs;
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return x * static_cast<double>(now % 100003);
  };
  Case result = make(step, rows(5));
  result.runs = runs;
  return result;
}

// Measures its time, and computes nothing from it.
SWEEP(outside, clock_measures_only, right) {
  auto spent = std::make_shared<double>(0);
  auto step = [spent](at::Tensor x) {
    const auto start = std::chrono::steady_clock::now();
    at::Tensor y = x.matmul(x);
    *spent += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return y;
  };
  return make(step, rows(4));
}

SWEEP(outside, random_device, refused, kChanges) {
  auto runs = std::make_shared<size_t>(0);
  auto step = [runs](at::Tensor x) {
    ++*runs;
    return x + static_cast<double>(std::random_device()() % 100003);
  };
  Case result = make(step, rows(5));
  result.runs = runs;
  return result;
}

SWEEP(outside, environment, refused, kChanges) {
  auto step = [](at::Tensor x) { return x * std::atof(std::getenv("SWEEP_SCALE")); };
  Case result = make(step, rows(5));
  result.before = [](size_t call) {
    setenv("SWEEP_SCALE", std::to_string(1 + call).c_str(), /*replace=*/1);
  };
  return result;
}

SWEEP(outside, next_line, refused, kChanges) {
  auto file = std::make_shared<std::istringstream>("0.5 1.5 2.5 3.5 4.5 5.5");
  auto step = [file](at::Tensor x) {
    double number = 0;
    *file >> number;
    return x + number;
  };
  return make(step, rows(5));
}

// Planted: the data is not an argument, but the next of an iterator, which ends in the fourth call.
SWEEP(outside, iterator_that_ends, refused) {
  auto data = std::make_shared<Values>(rows(3));
  auto next = std::make_shared<size_t>(0);
  auto step = [data, next](at::Tensor x) {
    if (*next == data->size()) throw std::out_of_range("no more data");
    return x * (*data)[(*next)++];
  };
  return make(step, rows(5));
}

SWEEP(outside, data_loader, refused) {
  auto set = torch::data::datasets::TensorDataset(torch::arange(64.0).view({16, 4}))
                 .map(torch::data::transforms::Stack<torch::data::TensorExample>());
  auto loader = std::shared_ptr(
      torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(std::move(set), 4));
  auto batch = std::make_shared<decltype(loader->begin())>(loader->begin());
  auto step = [loader, batch](at::Tensor x) {
    at::Tensor data = (*batch)->data;
    ++*batch;
    return x + data;
  };
  return make(step, rows(4));
}

SWEEP(outside, tensor_written_by_caller, right) {
  at::Tensor shift = torch::zeros({4});
  Case result = make([shift](at::Tensor x) { return x + shift; }, rows(6));
  result.before = [shift](size_t call) { shift.fill_(static_cast<double>(call)); };
  return result;
}

SWEEP(outside, tensor_replaced_by_caller, either) {
  auto shift = std::make_shared<at::Tensor>(torch::zeros({4}));
  Case result = make([shift](at::Tensor x) { return x + *shift; }, rows(6));
  result.before = [shift](size_t call) { *shift = torch::full({4}, static_cast<double>(call)); };
  return result;
}

SWEEP(outside, exception_caught, right) {
  auto step = [](at::Tensor x) {
    try {
      return (x + 1).matmul(torch::ones({3, 3}));
    } catch (const c10::Error&) {
      return x * 2;
    }
  };
  return make(step, rows(4));
}

SWEEP(outside, exception_after_write, right) {
  at::Tensor total = torch::zeros({4});
  auto step = [total](at::Tensor x) {
    try {
      total.add_(x.sum(0));
      total.add_(torch::ones({3}));
    } catch (const c10::Error&) {
    }
    return total * 1;
  };
  return make(step, rows(20), [total] { return Values{total}; });
}

SWEEP(outside, exception_by_value, either) {
  auto step = [](at::Tensor x) {
    if (x.sum().item<float>() < 0) throw std::domain_error("negative");
    return x.sqrt();
  };
  Values inputs;
  for (const at::Tensor& x : rows(6)) inputs.push_back(inputs.size() == 3 ? -x.abs() : x.abs());
  return make(step, inputs);
}

// Nobody can tell a number that is printed from one that is used.
SWEEP(outside, prints, either) {
  auto step = [](at::Tensor x) {
    std::ostringstream text;
    text << x.mean() << x;
    return x + 1;
  };
  return make(step, rows(4));
}

SWEEP(outside, own_generator, either) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
  auto step = [generator](at::Tensor x) { return x + at::randn({4}, generator); };
  return make(step, rows(8));
}

SWEEP(outside, seeds_itself, either) {
  auto step = [](at::Tensor x) {
    torch::manual_seed(11);
    return x + torch::randn({4});
  };
  return make(step, rows(5));
}

SWEEP(outside, grad_mode_of_caller, cannot_see) {
  Case result =
      make([](at::Tensor x) { return at::GradMode::is_enabled() ? x * 3 : x * 1; }, rows(6));
  result.before = [](size_t call) { at::GradMode::set_enabled(call < 2); };
  return result;
}

SWEEP(outside, shapes_differ, either) {
  Values inputs;
  for (int64_t i = 0; i < 4; ++i) inputs.push_back(torch::ones({3 + i, 2}));
  return make([](at::Tensor x) { return x / x.size(0); }, inputs);
}

SWEEP(outside, boolean_mask, either) {
  return make([](at::Tensor x) { return x.index({x > 0}); }, rows(5));
}

// The program ends with the function that captured it.
template <class Model>
Case destroyed(Model model_for_eager) {
  Case result = make(model_for_eager, rows(6));
  auto inputs = std::make_shared<Values>(rows(6));
  result.trace = [inputs, model_for_eager]() -> std::function<Values(size_t)> {
    const auto capture = [&] {
      Model model = model_for_eager;
      return flashlight::trace(model, (*inputs)[0]);
    };
    auto captured = capture();
    return [captured, inputs](size_t call) { return sweep::values(captured((*inputs)[call])); };
  };
  return result;
}

SWEEP(outside, holder_destroyed_after_trace, right) { return destroyed(torch::nn::Linear(4, 4)); }

// A module by reference stays where it was, and is gone: nobody may run it again.
SWEEP(outside, module_destroyed_after_trace, either) {
  struct Net : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return x * scale + 1; }
    at::Tensor scale = register_parameter("scale", torch::full({4}, 2.0));
  };
  auto model = std::make_shared<Net>();
  Case result = make([model](at::Tensor x) { return model->forward(x); }, rows(6));
  auto inputs = std::make_shared<Values>(rows(6));
  result.trace = [inputs]() -> std::function<Values(size_t)> {
    auto net = std::make_unique<Net>();
    auto captured = flashlight::trace(*net, (*inputs)[0]);
    net.reset();
    return [captured, inputs](size_t call) { return sweep::values(captured((*inputs)[call])); };
  };
  return result;
}

SWEEP(outside, temporary_traced, right) {
  auto inputs = std::make_shared<Values>(rows(6));
  Case result = make([](at::Tensor x) { return x.cumsum(0); }, rows(6));
  result.trace = [inputs]() -> std::function<Values(size_t)> {
    auto captured = flashlight::trace([](at::Tensor x) { return x.cumsum(0); }, (*inputs)[0]);
    return [captured, inputs](size_t call) { return sweep::values(captured((*inputs)[call])); };
  };
  return result;
}

}  // namespace
