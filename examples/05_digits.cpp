// Trains a small convolutional network to read handwritten digits, with nothing but composit: the
// model is a graph, its gradient is a graph, and the reference backend interprets both.
//
//   example_05_digits examples/data/digits.safetensors
//
// Fails if fewer than 97 of 100 digits that it was not trained with are read correctly.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <random>

#include "composit/ad/chain_rule.h"
#include "composit/io/safetensors.h"
#include "composit/nn/nn.h"
#include "composit/ops/native.h"

namespace nn = composit::nn;
using composit::Array;
using composit::DType;
using composit::LazyTensor;

// ---- data ---------------------------------------------------------------------------------------

constexpr int64_t kBatch = 64, kClasses = 10;
constexpr int kEpochs = 8;

struct Split {
  std::vector<int64_t> training, held_out;  // numbers of images
};

// Every fifth image is held out.
Split split(int64_t count) {
  Split result;
  for (int64_t i = 0; i < count; ++i) (i % 5 == 0 ? result.held_out : result.training).push_back(i);
  return result;
}

LazyTensor numbers_input(int64_t count) {
  return composit::input("numbers", composit::tensor_type(DType::int64, {count}));
}
Array numbers_array(const std::vector<int64_t>& numbers) {
  return composit::array_of(
      composit::tensor_type(DType::int64, {static_cast<int64_t>(numbers.size())}), numbers);
}

// ---- model --------------------------------------------------------------------------------------

constexpr int64_t kFeatures = 128;  // 32 channels of 2x2

struct Model {
  nn::Affine first, second, output;
};

nn::Affine convolution(nn::Initializer& init, const std::string& name, int64_t in, int64_t out) {
  return {init.kaiming_uniform(name + ".weight", {out, in, 3, 3}),
          init.zeros(name + ".bias", {out})};
}

Model make_model(nn::Initializer& init) {
  return {convolution(init, "first", 1, 16), convolution(init, "second", 16, 32),
          nn::linear_layer(init, "output", kFeatures, kClasses)};
}

// [count, channels, h, w] to [count, more channels, h / 2, w / 2].
LazyTensor halved(const LazyTensor& x, const nn::Affine& layer) {
  const LazyTensor features = nn::conv2d(x, layer.weight, {.bias = layer.bias, .padding = {1}});
  return nn::max_pool2d(nn::relu(features), {2});
}

// `images`: [count, 8, 8], pixels from 0 to 16.
LazyTensor logits(const Model& model, const LazyTensor& images) {
  const LazyTensor x = reshape(to(images, DType::float32) / 16, {images.size(0), 1, 8, 8});
  const LazyTensor features = halved(halved(x, model.first), model.second);
  return nn::linear(reshape(features, {images.size(0), kFeatures}), model.output);
}

// ---- training -----------------------------------------------------------------------------------

// The model on some of the images of a data set, by their numbers, which are an input.
struct Task {
  LazyTensor numbers, loss, correct;
};

Task make_task(const Model& model, const composit::Safetensors& digits, int64_t count) {
  const auto rows = [&](const char* name, const LazyTensor& numbers) {
    const LazyTensor all = composit::constant(digits.tensors.at(name), name);
    return composit::apply_one("aten::index_select", {all, 0, numbers});
  };
  Task task{.numbers = numbers_input(count), .loss = {}, .correct = {}};
  const LazyTensor labels = to(rows("labels", task.numbers), DType::int64);
  const LazyTensor scores = logits(model, rows("images", task.numbers));
  task.loss = nn::cross_entropy(scores, labels);
  task.correct = sum(eq(composit::apply_one("aten::argmax", {scores, 1}), labels));
  return task;
}

// The mean loss of an epoch: each training image once, in random order, but for an incomplete
// batch.
double train_epoch(const nn::TrainingStep& step, const LazyTensor& numbers,
                   composit::Values& values, std::vector<int64_t>& order, std::mt19937& random) {
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  double total = 0;
  const size_t batches = order.size() / kBatch;
  for (size_t b = 0; b < batches; ++b) {
    const auto begin = order.begin() + static_cast<int64_t>(b) * kBatch;
    values.set(numbers, numbers_array({begin, begin + kBatch}));
    total += composit::elements<double>(step(values)[0])[0];
  }
  return total / static_cast<double>(batches);
}

int main(int argc, char** argv) {
  const auto digits = composit::read_safetensors(argc > 1 ? argv[1] : "data/digits.safetensors");
  Split images = split(digits.tensors.at("labels").type().numel());

  nn::Initializer init(/*seed=*/1);
  const Model model = make_model(init);
  const Task training = make_task(model, digits, kBatch);
  const auto held_out_count = static_cast<int64_t>(images.held_out.size());
  const Task test = make_task(model, digits, held_out_count);

  // An input: it falls from epoch to epoch, and the graph stays the same.
  const LazyTensor rate =
      composit::input("learning_rate", composit::tensor_type(DType::float64, {}));
  const nn::TrainingStep step(init.parameters(), grad(training.loss, init.parameters()),
                              nn::adam({.learning_rate = rate}), {.observed = {training.loss}});
  std::printf("a step of training: %zu nodes\n", step.graph().size());

  composit::Values values;
  std::mt19937 random(2);
  double accuracy = 0;
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    const double rate_now = 1e-2 * (kEpochs + 1 - epoch) / kEpochs;
    values.set(rate, composit::array_of<double>(rate.type(), {rate_now}));
    const double loss = train_epoch(step, training.numbers, values, images.training, random);
    values.set(test.numbers, numbers_array(images.held_out));
    const Array correct = evaluate({test.correct}, values)[0];
    accuracy = composit::elements<double>(correct)[0] / static_cast<double>(held_out_count);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    std::printf("epoch %2d: loss %.4f, %.1f %% of held-out digits read correctly (%.1f s)\n", epoch,
                loss, 100 * accuracy, time.count());
    std::fflush(stdout);
  }
  return accuracy > 0.97 ? 0 : 1;
}
