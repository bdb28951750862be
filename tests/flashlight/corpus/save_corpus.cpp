// Writes the small captures that corpus_test.cpp loads:
//
//   build/dev/tests/flashlight/save_corpus tests/flashlight/corpus/v1
//
// A folder here is what one version of the format was written by, once. It is never written again:
// a later version loads it as it is. Whoever changes the format adds a folder.
#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <filesystem>
#include <iostream>
#include <map>

#include "composit/io/saved_capture.h"
#include "flashlight/trace.h"
#include "frontends/torchscript/script.h"

namespace fs = std::filesystem;

namespace {

using flashlight::NamedTensor;
using flashlight::TraceSettings;
using Dictionary = std::map<std::string, at::Tensor>;

// Captures `program`, puts what it has written back, and saves it: a replay of the example gives
// the example's results again.
template <class Program, class... Values>
void save(const fs::path& folder, const std::vector<NamedTensor>& named, Program program,
          const Values&... values) {
  std::vector<at::Tensor> before;
  for (const NamedTensor& one : named) before.push_back(one.tensor.detach().clone());
  TraceSettings settings;
  settings.named = named;
  torch::manual_seed(5);
  const auto captured = flashlight::trace(settings, program, values...);
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < named.size(); ++i)
    if (!named[i].tensor.equal(before[i])) named[i].tensor.copy_(before[i]);
  captured.save(folder);
}

void perceptron(const fs::path& folder) {
  torch::nn::Sequential model(torch::nn::Linear(4, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2));
  save(
      folder, flashlight::named_tensors(model),
      [=](at::Tensor x) mutable { return model->forward(x); }, torch::randn({3, 4}));
}

// Forward, backward and update; what was written is a result, too.
void training_step(const fs::path& folder) {
  torch::nn::Conv2d convolution(torch::nn::Conv2dOptions(2, 3, 3).padding(1));
  torch::nn::BatchNorm2d norm(3);
  std::vector<NamedTensor> named = flashlight::named_tensors(convolution, "conv");
  for (const NamedTensor& one : flashlight::named_tensors(norm, "norm")) named.push_back(one);
  std::vector<at::Tensor> parameters = convolution->parameters();
  for (const at::Tensor& one : norm->parameters()) parameters.push_back(one);
  torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(0.1));
  const auto step = [&](at::Tensor x) {
    optimizer.zero_grad();
    const at::Tensor loss = norm->forward(convolution->forward(x)).relu().pow(2).mean();
    loss.backward();
    optimizer.step();
    return std::vector<at::Tensor>{loss.detach(), convolution->weight.detach().clone(),
                                   norm->running_mean.clone(), norm->num_batches_tracked.clone()};
  };
  save(folder, named, step, torch::randn({2, 2, 5, 5}));
}

// By the default generator and by one of the program, dropout among them.
void draws(const fs::path& folder) {
  at::Generator generator = at::detail::createCPUGenerator(7);
  const at::Tensor state = generator.get_state();
  const auto program = [=](at::Tensor x) {
    const at::Tensor noise = at::randn({4}, generator);
    return std::vector<at::Tensor>{x + noise, at::dropout(x, 0.5, true), at::randperm(6),
                                   at::rand({3}, generator)};
  };
  torch::manual_seed(5);
  const auto captured = flashlight::trace(program, at::arange(1.0, 5.0));
  generator.set_state(state);
  captured.save(folder);
}

void tied(const fs::path& folder) {
  torch::nn::Embedding embedding(7, 4);
  torch::nn::Linear head(torch::nn::LinearOptions(4, 7).bias(false));
  head->weight = embedding->weight;
  auto model = [=](at::Tensor ids) mutable {
    return head->forward(embedding->forward(ids).tanh());
  };
  save(folder, {{"embedding.weight", embedding->weight}}, model, torch::tensor({1, 5, 1, 3}));
}

void dictionaries(const fs::path& folder) {
  const auto model = [](Dictionary batch, std::vector<at::Tensor> masks, std::optional<at::Tensor>,
                        double scale) {
    Dictionary result{{"sum", batch.at("a") + batch.at("b")}, {"scaled", batch.at("a") * scale}};
    return std::make_pair(result, std::vector<at::Tensor>{masks[0] & masks[1], masks[0]});
  };
  const at::Tensor mask = torch::tensor({true, false, true});
  save(folder, {}, model, Dictionary{{"a", torch::randn({3})}, {"b", torch::randn({3})}},
       std::vector<at::Tensor>{mask, mask.logical_not()}, std::optional<at::Tensor>(), 0.5);
}

// Buffers of which one is a view of another, as in a flow model.
void views(const fs::path& folder) {
  const at::Tensor upper = torch::ones({4, 4}).triu(1), lower = upper.t(), row = upper.select(0, 1);
  const auto model = [=](at::Tensor x) { return x.matmul(upper) + x.matmul(lower) * row; };
  save(folder,
       {{"upper", upper, composit::InputKind::buffer},
        {"lower", lower, composit::InputKind::buffer},
        {"row", row, composit::InputKind::buffer}},
       model, torch::randn({2, 4}));
}

// Element types, strides, closed composite operators, a guard, constants small and large.
void values_of_all_kinds(const fs::path& folder) {
  const at::Tensor table = torch::arange(200.0).sin(), half = torch::ones({2, 3}, torch::kBFloat16);
  const at::Tensor wide = torch::tensor({1.5, 2.5}).expand({3, 2});
  const at::Tensor complex = torch::view_as_complex(torch::randn({3, 2}));
  const auto program = [=](at::Tensor x, at::Tensor n) {
    const torch::NoGradGuard no_grad;
    const double factor = n.item<double>();
    return std::vector<at::Tensor>{at::layer_norm(x, {3}) * factor,
                                   complex.conj() * 2,
                                   wide.t() + n,
                                   half.t().contiguous() * 3,
                                   table.take(n.to(at::kLong)),
                                   x.gt(0),
                                   at::softmax(x, -1)};
  };
  save(folder,
       {{"half", half, composit::InputKind::buffer},
        {"wide", wide, composit::InputKind::buffer},
        {"complex", complex.conj(), composit::InputKind::buffer}},
       program, torch::randn({3, 2}).t(), torch::tensor(3.0));
}

const char* const kNewton = R"(
def newton(a: Tensor, steps: int):
    x = a
    for i in range(steps):
        if bool((x * x - a).abs().max() > 1e-3):
            x = 0.5 * (x + a / x)
        else:
            x = x + 0
    return x
)";

void control_flow(const fs::path& folder) {
  const auto script = flashlight::torchscript::compile(kNewton);
  composit::save(script.capture("newton", {torch::rand({4}) + 1, 4}), folder);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: save_corpus FOLDER\n";
    return 2;
  }
  torch::manual_seed(1);
  const fs::path folder = argv[1];
  fs::create_directories(folder);
  perceptron(folder / "perceptron");
  training_step(folder / "training_step");
  draws(folder / "draws");
  tied(folder / "tied");
  dictionaries(folder / "dictionaries");
  views(folder / "views");
  values_of_all_kinds(folder / "values");
  control_flow(folder / "control_flow");
  return 0;
}
