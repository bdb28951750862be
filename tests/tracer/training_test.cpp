// Whole training steps: forward, backward and the optimizer's step, replayed bit for bit.
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include "tests/tracer/capture_helpers.h"

namespace flashlight::testing {
namespace {

using torch::nn::AnyModule;

// ---- models -------------------------------------------------------------------------------------

struct Convolutional : torch::nn::Module {
  Convolutional() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("instance", instance);
    register_module("out", out);
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = norm(conv(x)).relu_();
    y = instance(torch::max_pool2d(y, 2));
    y = torch::dropout(y, 0.25, is_training());
    return out(y.flatten(1));
  }
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(3, 8, 3).padding(1)};
  torch::nn::BatchNorm2d norm{8};
  torch::nn::InstanceNorm2d instance{
      torch::nn::InstanceNorm2dOptions(8).affine(true).track_running_stats(true)};
  torch::nn::Linear out{8 * 4 * 4, 4};
};

struct Encoder : torch::nn::Module {
  Encoder() {
    register_module("layer", layer);
    register_module("out", out);
  }
  at::Tensor forward(const at::Tensor& x) {
    return out(layer(x.flatten(2).transpose(1, 2)).mean(1));
  }
  torch::nn::TransformerEncoderLayer layer{
      torch::nn::TransformerEncoderLayerOptions(3, 1).dim_feedforward(8)};
  torch::nn::Linear out{3, 4};
};

struct Recurrent : torch::nn::Module {
  Recurrent() {
    register_module("lstm", lstm);
    register_module("out", out);
  }
  at::Tensor forward(const at::Tensor& x) {
    return out(std::get<0>(lstm(x.flatten(2).transpose(1, 2))).select(1, -1));
  }
  torch::nn::LSTM lstm{torch::nn::LSTMOptions(3, 5).batch_first(true)};
  torch::nn::Linear out{5, 4};
};

// The mask is a parameter: the kernel differs from that for a constant mask.
struct Attention : torch::nn::Module {
  Attention() {
    mask = register_parameter("mask", torch::randn({64, 64}));
    register_module("in", in);
    register_module("out", out);
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor h = in(x.flatten(2).transpose(1, 2)).unsqueeze(1);
    return out(at::scaled_dot_product_attention(h, h, h, mask).squeeze(1).mean(1));
  }
  at::Tensor mask;
  torch::nn::Linear in{3, 8}, out{8, 4};
};

// ---- variants -----------------------------------------------------------------------------------

// Runs the model once without a graph, and again in the backward pass.
struct Recompute : torch::autograd::Function<Recompute> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            AnyModule* model) {
    context->save_for_backward({x});
    context->saved_data["model"] = reinterpret_cast<int64_t>(model);
    const at::NoGradGuard no_grad;
    return model->forward<at::Tensor>(x);
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list gradients) {
    auto* model = reinterpret_cast<AnyModule*>(context->saved_data["model"].toInt());
    const at::AutoGradMode grad(true);
    const at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
    torch::autograd::backward({model->forward<at::Tensor>(x)}, {gradients[0]});
    return {x.grad(), at::Tensor()};
  }
};

enum class Variant { plain, channels_last, autocast, checkpoint };

const char* variant_name(Variant variant) {
  static const char* const names[] = {"plain", "channels_last", "autocast", "checkpoint"};
  return names[static_cast<int>(variant)];
}
void PrintTo(Variant variant, std::ostream* out) { *out << variant_name(variant); }

struct Autocast {
  Autocast() {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  }
  ~Autocast() {
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
  Autocast(const Autocast&) = delete;
};

at::Tensor forward(AnyModule& model, at::Tensor x, Variant variant) {
  switch (variant) {
    case Variant::channels_last:
      return model.forward<at::Tensor>(x.contiguous(at::MemoryFormat::ChannelsLast));
    case Variant::autocast: {
      const Autocast autocast;
      return model.forward<at::Tensor>(x);
    }
    case Variant::checkpoint:
      return Recompute::apply(x.detach().requires_grad_(), &model);
    default:
      return model.forward<at::Tensor>(x);
  }
}

// ---- the step -----------------------------------------------------------------------------------

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name,
                                                        const Tensors& parameters) {
  if (name == "Adam")
    return std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(0.01));
  if (name == "AdamW")
    return std::make_unique<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(0.01));
  return std::make_unique<torch::optim::SGD>(parameters,
                                             torch::optim::SGDOptions(0.01).momentum(0.9));
}

// Adam counts its steps on the host: replay repeats the captured step's number.
template <class State>
bool set_step(torch::optim::OptimizerParamState& state, int64_t step) {
  auto* typed = dynamic_cast<State*>(&state);
  if (typed != nullptr) typed->step(step);
  return typed != nullptr;
}

class Training {
 public:
  Training(AnyModule model, const std::string& optimizer, Variant variant)
      : model_(std::move(model)),
        optimizer_(make_optimizer(optimizer, model_.ptr()->parameters())),
        variant_(variant) {
    model_.ptr()->train();
  }

  Tensors step(Tensors& in) {
    optimizer_->zero_grad();
    at::Tensor loss =
        at::cross_entropy_loss(forward(model_, in[0], variant_).to(at::kFloat), in[1]);
    loss.backward();
    optimizer_->step();
    return {loss.detach()};
  }

  // Parameters, buffers and the optimizer's tensors.
  Tensors state() const {
    Tensors tensors = model_.ptr()->parameters();
    for (const at::Tensor& buffer : model_.ptr()->buffers()) tensors.push_back(buffer);
    for (const at::Tensor& parameter : model_.ptr()->parameters())
      add_optimizer_state(parameter, tensors);
    return tensors;
  }
  Tensors saved_state() const {
    Tensors saved;
    for (const at::Tensor& tensor : state()) saved.push_back(tensor.detach().clone());
    return saved;
  }
  void restore(const Tensors& saved, int64_t steps) {
    const at::NoGradGuard no_grad;
    const Tensors tensors = state();
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i].copy_(saved[i]);
    for (auto& [key, state] : optimizer_->state())
      set_step<torch::optim::AdamParamState>(*state, steps) ||
          set_step<torch::optim::AdamWParamState>(*state, steps);
  }
  std::vector<std::pair<std::string, at::Tensor>> named() const {
    std::vector<std::pair<std::string, at::Tensor>> named;
    for (const auto& item : model_.ptr()->named_parameters())
      named.emplace_back(item.key(), item.value());
    for (const auto& item : model_.ptr()->named_buffers())
      named.emplace_back(item.key(), item.value());
    return named;
  }

 private:
  void add_optimizer_state(const at::Tensor& parameter, Tensors& tensors) const {
    const auto found = optimizer_->state().find(parameter.unsafeGetTensorImpl());
    if (found == optimizer_->state().end()) return;
    if (const auto* adam = dynamic_cast<torch::optim::AdamParamState*>(found->second.get()))
      tensors.insert(tensors.end(), {adam->exp_avg(), adam->exp_avg_sq()});
    if (const auto* adam = dynamic_cast<torch::optim::AdamWParamState*>(found->second.get()))
      tensors.insert(tensors.end(), {adam->exp_avg(), adam->exp_avg_sq()});
    if (const auto* sgd = dynamic_cast<torch::optim::SGDParamState*>(found->second.get()))
      tensors.push_back(sgd->momentum_buffer());
  }

  AnyModule model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  const Variant variant_;
};

Tensors batch(uint64_t seed) {
  at::manual_seed(seed);
  return {at::randn({4, 3, 8, 8}), at::randint(0, 4, {4}, at::kLong)};
}

AnyModule make_model(const std::string& name) {
  at::manual_seed(1);
  if (name == "cnn") return AnyModule(Convolutional());
  if (name == "encoder") return AnyModule(Encoder());
  if (name == "lstm") return AnyModule(Recurrent());
  return AnyModule(Attention());
}

using Case = std::tuple<std::string, std::string, Variant>;

class TrainingStep : public ::testing::TestWithParam<Case> {};

TEST_P(TrainingStep, replays_bit_for_bit) {
  const auto& [model, optimizer, variant] = GetParam();
  Training training(make_model(model), optimizer, variant);
  Tensors warm_up = batch(2);
  try {
    training.step(warm_up);  // the optimizer's state exists then
  } catch (const c10::Error& error) {
    GTEST_SKIP() << "LibTorch cannot run it on this processor: " << error.what_without_backtrace();
  } catch (const std::exception& error) {  // oneDNN's own, of an LSTM in bfloat16 without AVX-512
    GTEST_SKIP() << "LibTorch cannot run it on this processor: " << error.what();
  }
  const Tensors begin = training.saved_state();

  at::manual_seed(3);
  const Captured captured =
      capture([&](Tensors& in) { return training.step(in); }, batch(4), {}, training.named());

  const Tensors fresh = batch(5);
  training.restore(begin, 1);
  at::manual_seed(6);
  const Tensors replayed_loss = captured.replay(fresh);
  const Tensors replayed = training.saved_state();

  training.restore(begin, 1);
  Tensors eager = fresh;
  at::manual_seed(6);
  const Tensors loss = training.step(eager);
  EXPECT_EQ(difference(replayed_loss, loss), "");
  EXPECT_EQ(difference(replayed, training.saved_state()), "");
  // The step did something.
  EXPECT_NE(difference(replayed, begin), "");
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const auto& [model, optimizer, variant] = info.param;
  return model + "_" + optimizer + "_" + variant_name(variant);
}

INSTANTIATE_TEST_SUITE_P(
    Models, TrainingStep,
    ::testing::Combine(::testing::Values("cnn", "encoder", "lstm", "sdpa"),
                       ::testing::Values("Adam", "SGD", "AdamW"),
                       ::testing::Values(Variant::plain, Variant::channels_last, Variant::autocast,
                                         Variant::checkpoint)),
    name_of);

}  // namespace
}  // namespace flashlight::testing
