#include "tests/nn/functional_cases.h"

#include "composit/nn/functional.h"
#include "composit/nn/layers.h"

namespace composit::test {
namespace {

using In = const LazyTensors&;
using Cases = std::map<std::string, Case>;

// A function of all inputs, in their order.
template <class R, class... P>
Case of(R (*f)(P...)) {
  return [f](In x) {
    return [&]<size_t... I>(std::index_sequence<I...>) { return LazyTensors{f(x[I]...)}; }
    (std::make_index_sequence<sizeof...(P)>());
  };
}
Case one(LazyTensor (*f)(In)) {
  return [f](In x) { return LazyTensors{f(x)}; };
}

void add_activations(Cases& cases) {
  cases["gelu"] = one([](In x) { return nn::gelu(x[0]); });
  cases["gelu tanh"] = one([](In x) { return nn::gelu(x[0], {.approximate = "tanh"}); });
  cases["silu"] = of(nn::silu);
  cases["mish"] = of(nn::mish);
  cases["relu"] = of(nn::relu);
  cases["leaky_relu"] = one([](In x) { return nn::leaky_relu(x[0], 0.2); });
  cases["prelu"] = of(nn::prelu);
  cases["elu"] = one([](In x) { return nn::elu(x[0], 0.7); });
  cases["selu"] = of(nn::selu);
  cases["celu"] = one([](In x) { return nn::celu(x[0], 0.5); });
  cases["relu6"] = one([](In x) { return nn::relu6(x[0] * 4); });
  cases["hardtanh"] = one([](In x) { return nn::hardtanh(x[0], -0.5, 0.8); });
  cases["hardsigmoid"] = one([](In x) { return nn::hardsigmoid(x[0] * 3); });
  cases["hardswish"] = one([](In x) { return nn::hardswish(x[0] * 3); });
  cases["hardshrink"] = one([](In x) { return nn::hardshrink(x[0], 0.4); });
  cases["softshrink"] = one([](In x) { return nn::softshrink(x[0], 0.4); });
  cases["tanhshrink"] = of(nn::tanhshrink);
  cases["softsign"] = of(nn::softsign);
  cases["softplus"] = one([](In x) { return nn::softplus(x[0], 2, 3); });
  cases["logsigmoid"] = of(nn::logsigmoid);
  cases["threshold"] = one([](In x) { return nn::threshold(x[0], 0.1, 7); });
  cases["glu"] = one([](In x) { return nn::glu(x[0], 1); });
  cases["softmax"] = one([](In x) { return nn::softmax(x[0], 1); });
  cases["softmin"] = one([](In x) { return nn::softmin(x[0], -1); });
  cases["log_softmax"] = one([](In x) { return nn::log_softmax(x[0], -1); });
}

void add_convolutions(Cases& cases) {
  cases["conv1d"] = one([](In x) { return nn::conv1d(x[0], x[1]); });
  cases["conv1d seed"] =
      one([](In x) { return nn::conv1d(x[0], x[1], {.stride = {2}, .padding = {3}}); });
  cases["conv1d last"] = one([](In x) {
    return nn::conv1d(x[0], x[1],
                      {.bias = x[2], .stride = {2}, .padding = {1}, .channels_last = true});
  });
  cases["conv2d"] = one([](In x) { return nn::conv2d(x[0], x[1], {.bias = x[2]}); });
  cases["conv2d options"] = one([](In x) {
    return nn::conv2d(
        x[0], x[1],
        {.bias = x[2], .stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2});
  });
  cases["conv2d last"] = one([](In x) {
    return nn::conv2d(x[0], x[1],
                      {.bias = x[2], .stride = {2}, .padding = {1}, .channels_last = true});
  });
  cases["conv2d unbatched last"] =
      one([](In x) { return nn::conv2d(x[0], x[1], {.channels_last = true}); });
  cases["conv3d"] = one([](In x) {
    return nn::conv3d(x[0], x[1], {.bias = x[2], .padding = {0, 1, 1}});
  });
  cases["conv_transpose1d"] = one([](In x) {
    return nn::conv_transpose1d(
        x[0], x[1], {.bias = x[2], .stride = {2}, .padding = {1}, .output_padding = {1}});
  });
  cases["conv_transpose2d"] = one([](In x) {
    return nn::conv_transpose2d(x[0], x[1],
                                {.bias = x[2],
                                 .stride = {2},
                                 .padding = {1, 0},
                                 .output_padding = {1},
                                 .groups = 2,
                                 .dilation = {1, 2}});
  });
  cases["conv_transpose2d last"] =
      one([](In x) { return nn::conv_transpose2d(x[0], x[1], {.channels_last = true}); });
  cases["conv_transpose3d"] =
      one([](In x) { return nn::conv_transpose3d(x[0], x[1], {.stride = {2}}); });
}

void add_pools(Cases& cases) {
  cases["max_pool1d"] =
      one([](In x) { return nn::max_pool1d(x[0], {3}, {.stride = {2}, .padding = {1}}); });
  cases["max_pool2d"] = one([](In x) {
    return nn::max_pool2d(
        x[0], {3, 2}, {.stride = {2, 1}, .padding = {1, 1}, .dilation = {1, 2}, .ceil_mode = true});
  });
  cases["max_pool2d last"] =
      one([](In x) { return nn::max_pool2d(x[0], {2}, {.channels_last = true}); });
  cases["max_pool3d"] = one([](In x) { return nn::max_pool3d(x[0], {2}, {.stride = {2}}); });
  cases["avg_pool1d"] =
      one([](In x) { return nn::avg_pool1d(x[0], {3}, {.stride = {2}, .padding = {1}}); });
  cases["avg_pool2d"] = one([](In x) {
    return nn::avg_pool2d(
        x[0], {3, 2},
        {.stride = {2, 1}, .padding = {1, 1}, .ceil_mode = true, .count_include_pad = false});
  });
  cases["avg_pool2d last"] = one([](In x) {
    return nn::avg_pool2d(x[0], {2}, {.stride = {2}, .padding = {1}, .channels_last = true});
  });
  cases["avg_pool3d"] = one([](In x) { return nn::avg_pool3d(x[0], {2}); });
  cases["adaptive_avg_pool1d"] = one([](In x) { return nn::adaptive_avg_pool1d(x[0], {4}); });
  cases["adaptive_avg_pool2d"] = one([](In x) { return nn::adaptive_avg_pool2d(x[0], {3, 4}); });
  cases["adaptive_avg_pool2d last"] = one([](In x) {
    return nn::adaptive_avg_pool2d(x[0], {1, 1}, true);
  });
  cases["adaptive_avg_pool3d"] = one([](In x) { return nn::adaptive_avg_pool3d(x[0], {2, 2, 3}); });
  cases["adaptive_max_pool1d"] = one([](In x) { return nn::adaptive_max_pool1d(x[0], {4}); });
  cases["adaptive_max_pool2d"] = one([](In x) { return nn::adaptive_max_pool2d(x[0], {3, 4}); });
}

LazyTensors batch_norm_training(In x) {
  const auto [y, mean, var] = nn::batch_norm(x[0], {.running_mean = x[1],
                                                    .running_var = x[2],
                                                    .weight = x[3],
                                                    .bias = x[4],
                                                    .training = true,
                                                    .momentum = 0.3});
  return {y, mean, var};
}

void add_norms(Cases& cases) {
  cases["layer_norm"] = one([](In x) {
    return nn::layer_norm(x[0], {7, 6}, {.weight = x[1], .bias = x[2], .eps = 1e-3});
  });
  cases["rms_norm"] = one([](In x) { return nn::rms_norm(x[0], {6}, {.weight = x[1]}); });
  cases["group_norm"] =
      one([](In x) { return nn::group_norm(x[0], 2, {.weight = x[1], .bias = x[2]}); });
  cases["group_norm last"] =
      one([](In x) { return nn::group_norm(x[0], 2, {.channels_last = true}); });
  cases["batch_norm"] = one([](In x) {
    return nn::batch_norm(x[0],
                          {.running_mean = x[1], .running_var = x[2], .weight = x[3], .bias = x[4]})
        .y;
  });
  cases["batch_norm training"] = batch_norm_training;
  cases["batch_norm last"] =
      one([](In x) { return nn::batch_norm(x[0], {.training = true, .channels_last = true}).y; });
  cases["instance_norm"] =
      one([](In x) { return nn::instance_norm(x[0], {.weight = x[1], .bias = x[2]}); });
  cases["normalize"] = one([](In x) { return nn::normalize(x[0]); });
  cases["normalize p"] =
      one([](In x) { return nn::normalize(x[0], {.p = 3, .dim = -1, .eps = 0.1}); });
}

void add_transforms(Cases& cases) {
  cases["linear"] = one([](In x) { return nn::linear(x[0], x[1], x[2]); });
  cases["attention"] = one([](In x) { return nn::scaled_dot_product_attention(x[0], x[1], x[2]); });
  cases["attention mask"] = one([](In x) {
    return nn::scaled_dot_product_attention(x[0], x[1], x[2], {.attn_mask = x[3], .scale = 0.3});
  });
  cases["attention causal"] = one([](In x) {
    return nn::scaled_dot_product_attention(x[0], x[1], x[2],
                                            {.is_causal = true, .enable_gqa = true});
  });
  cases["embedding"] = one([](In x) { return nn::embedding(x[1], x[0], {.padding_idx = -4}); });
  cases["one_hot"] = one([](In x) { return nn::one_hot(x[1], 5) * x[0]; });
  cases["dropout"] = one([](In x) { return nn::dropout(x[0], 0.3, x[1]); });
  cases["pad"] = one([](In x) { return nn::pad(x[0], {1, 2, 0, 3}, {.value = 1.5}); });
  cases["pad reflect"] = one([](In x) { return nn::pad(x[0], {1, 2, 2, 0}, {.mode = "reflect"}); });
  cases["pad circular"] = one([](In x) { return nn::pad(x[0], {1, 2}, {.mode = "circular"}); });
  cases["pixel_shuffle"] = one([](In x) { return nn::pixel_shuffle(x[0], 2); });
  cases["pixel_unshuffle"] = one([](In x) { return nn::pixel_unshuffle(x[0], 2); });
  cases["unfold"] = one([](In x) {
    return nn::unfold(x[0], {3, 2}, {.padding = {1, 0}, .stride = {2, 1}});
  });
  cases["fold"] = one([](In x) {
    return nn::fold(x[0], {4, 5}, {3, 2}, {.padding = {1, 0}, .stride = {2, 1}});
  });
  cases["pairwise_distance"] =
      one([](In x) { return nn::pairwise_distance(x[0], x[1], {.p = 3, .keepdim = true}); });
  cases["cosine_similarity"] = one([](In x) { return nn::cosine_similarity(x[0], x[1]); });
  const auto interpolate = [&](const char* name, const nn::InterpolateOptions& options) {
    cases[name] = [options](In x) { return LazyTensors{nn::interpolate(x[0], options)}; };
  };
  interpolate("interpolate nearest", {.scale_factor = {2}});
  interpolate("interpolate exact", {.size = {5, 9}, .mode = "nearest-exact"});
  interpolate("interpolate linear", {.size = {5}, .mode = "linear", .align_corners = true});
  interpolate("interpolate bilinear", {.scale_factor = {1.5, 2}, .mode = "bilinear"});
  interpolate("interpolate bicubic", {.size = {9, 8}, .mode = "bicubic"});
  interpolate("interpolate trilinear", {.size = {5, 3, 6}, .mode = "trilinear"});
  interpolate("interpolate area", {.size = {3, 4}, .mode = "area"});
}

void add_losses(Cases& cases) {
  using nn::Reduction;
  cases["mse_loss"] = one([](In x) { return nn::mse_loss(x[0], x[1]); });
  cases["mse_loss none"] = one([](In x) { return nn::mse_loss(x[0], x[1], Reduction::none); });
  cases["l1_loss sum"] = one([](In x) { return nn::l1_loss(x[0], x[1], Reduction::sum); });
  cases["smooth_l1_loss"] = one([](In x) { return nn::smooth_l1_loss(x[0], x[1], {.beta = 0.6}); });
  cases["huber_loss"] = one([](In x) { return nn::huber_loss(x[0], x[1], {.delta = 0.6}); });
  cases["soft_margin_loss"] = one([](In x) { return nn::soft_margin_loss(x[0], x[1]); });
  cases["cross_entropy"] = one([](In x) { return nn::cross_entropy(x[0], x[1]); });
  cases["cross_entropy options"] = one([](In x) {
    return nn::cross_entropy(x[0], x[2],
                             {.weight = x[1], .ignore_index = 2, .label_smoothing = 0.2});
  });
  cases["cross_entropy probabilities"] = cases["cross_entropy"];
  cases["cross_entropy none"] =
      one([](In x) { return nn::cross_entropy(x[0], x[1], {.reduction = Reduction::none}); });
  cases["nll_loss"] = one([](In x) { return nn::nll_loss(x[0], x[2], {.weight = x[1]}); });
  cases["binary_cross_entropy"] = one([](In x) { return nn::binary_cross_entropy(x[0], x[1]); });
  cases["binary_cross_entropy_with_logits"] = one([](In x) {
    return nn::binary_cross_entropy_with_logits(
        x[0], x[1], {.weight = x[2], .reduction = Reduction::sum, .pos_weight = x[3]});
  });
  cases["kl_div"] =
      one([](In x) { return nn::kl_div(x[0], x[1], {.reduction = Reduction::batch_mean}); });
  cases["kl_div log"] = one([](In x) {
    return nn::kl_div(x[0], x[1], {.reduction = Reduction::sum, .log_target = true});
  });
  cases["poisson_nll_loss"] = one([](In x) {
    return nn::poisson_nll_loss(x[0], x[1]) +
           nn::poisson_nll_loss(x[0] * x[0], x[1], {.log_input = false});
  });
  cases["gaussian_nll_loss"] = one([](In x) { return nn::gaussian_nll_loss(x[0], x[1], x[2]); });
  cases["margin_ranking_loss"] =
      one([](In x) { return nn::margin_ranking_loss(x[0], x[1], x[2], {.margin = 0.2}); });
  cases["cosine_embedding_loss"] =
      one([](In x) { return nn::cosine_embedding_loss(x[0], x[1], x[2], {.margin = 0.2}); });
  cases["hinge_embedding_loss"] = one([](In x) { return nn::hinge_embedding_loss(x[0], x[1]); });
  cases["triplet_margin_loss"] =
      one([](In x) { return nn::triplet_margin_loss(x[0], x[1], x[2], {.swap = true}); });
}

// ---- recurrent networks -------------------------------------------------------------------------

// Four tensors each from number `first` on.
std::vector<nn::RecurrentWeights> with_biases(In x, size_t first) {
  std::vector<nn::RecurrentWeights> weights;
  for (size_t i = first; i < x.size(); i += 4)
    weights.push_back({x[i], x[i + 1], x[i + 2], x[i + 3]});
  return weights;
}
LazyTensors listed(const nn::RecurrentResult& result) { return {result.output, result.h}; }

void add_recurrent(Cases& cases) {
  cases["rnn_tanh"] = [](In x) { return listed(nn::rnn_tanh(x[0], x[1], with_biases(x, 2))); };
  cases["rnn_relu"] = [](In x) { return listed(nn::rnn_relu(x[0], x[1], with_biases(x, 2))); };
  cases["gru"] = [](In x) {
    return listed(
        nn::gru(x[0], x[1], with_biases(x, 2), {.bidirectional = true, .batch_first = true}));
  };
  cases["lstm"] = [](In x) {
    const auto [output, h, c] = nn::lstm(x[0], x[1], x[2], {{x[3], x[4]}, {x[5], x[6]}});
    return LazyTensors{output, h, c};
  };
}

// ---- layers -------------------------------------------------------------------------------------

nn::MultiHeadAttention attention_of(In x) {
  return {{x[1], x[2]}, {x[3], x[4]}, {x[5], x[6]}, {x[7], x[8]}};
}
nn::EncoderLayer encoder_of(In x) {
  return {.attention = attention_of(x),
          .feedforward = {{x[9], x[10]}, {x[11], x[12]}},
          .attention_norm = {x[13], x[14]},
          .feedforward_norm = {x[15], x[16]}};
}
LazyTensor gelu(const LazyTensor& x) { return nn::gelu(x); }

LazyTensors resnet_module(In x) {
  const auto conv = [&](size_t i) {
    return nn::ConvNorm{x[i], {{x[i + 1], x[i + 2]}, x[i + 3], x[i + 4]}};
  };
  const nn::ResnetBlock first{{conv(1), conv(6)}, conv(11)}, second{{conv(16), conv(21)}};
  return {nn::resnet_module(x[0], {first, second}, {2, 1})};
}

void add_layers(Cases& cases) {
  cases["multi_head_attention"] = one([](In x) {
    return nn::multi_head_attention(x[0], x[0], x[0], attention_of(x), {.head_size = 3});
  });
  cases["multi_head_attention causal"] = one([](In x) {
    return nn::multi_head_attention(x[0], x[0], x[0], attention_of(x),
                                    {.head_size = 3, .is_causal = true});
  });
  cases["encoder layer"] = one([](In x) {
    return nn::transformer_encoder_layer(x[0], encoder_of(x), {.head_size = 3, .activation = gelu});
  });
  cases["encoder layer norm first"] = one([](In x) {
    return nn::transformer_encoder_layer(x[0], encoder_of(x),
                                         {.head_size = 3, .activation = gelu, .norm_first = true});
  });
  cases["resnet_module"] = resnet_module;
}

// ---- the chain rule -----------------------------------------------------------------------------

LazyTensors split(const LazyTensor& x) { return apply("aten::split.Tensor", {x, 5, 2}); }

void add_chains(Cases& cases) {
  const Case sub = one([](In x) { return x[0] - x[1]; });
  const Case mul = one([](In x) { return x[0] * x[1]; });
  const Case div = one([](In x) { return x[0] / x[1]; });
  cases["chain matmul"] = of(matmul);
  cases["chain add"] = one([](In x) { return x[0] + x[1]; });
  cases["chain sub broadcast"] = sub;
  cases["chain mul"] = cases["chain mul broadcast"] = mul;
  cases["chain div"] = cases["chain div broadcast"] = div;
  cases["chain matmul add subtract"] = one([](In x) { return matmul(x[0], x[1]) + x[2] - x[3]; });
  cases["chain several consumers"] = one([](In x) {
    const LazyTensor h = matmul(x[0], x[1]);
    return sum(h + x[2] - h * h);
  });
  cases["chain transpose"] = one([](In x) { return permute(x[0], {0, 3, 1, 2}); });
  cases["chain transpose 5"] = one([](In x) { return permute(x[0], {1, 3, 0, 4, 2}); });
  cases["chain reshape"] = one([](In x) { return reshape(x[0], {125, 45}); });
  cases["chain reshape 5"] = one([](In x) { return reshape(x[0], {6, 90, 12}); });
  cases["chain split"] = one([](In x) { return split(x[0])[1]; });
  cases["chain split add"] = one([](In x) { return split(x[0])[0] + split(x[0])[2]; });
  cases["chain exp"] = one([](In x) { return exp(x[0]); });
  cases["chain sqrt"] = one([](In x) { return sqrt(x[0]); });
  cases["chain square"] = of(square);
  cases["chain gelu"] = one([](In x) { return nn::gelu(x[0]); });
  cases["chain max"] = one([](In x) { return amax(x[0], {2}); });
  cases["chain mean"] = one([](In x) { return mean(x[0], {2}); });
  cases["chain mean all"] = one([](In x) { return mean(x[0]); });
}

// ---- NaN and infinity ---------------------------------------------------------------------------

void add_special(Cases& cases) {
  cases["special exp"] = one([](In x) { return exp(x[0]); });
  cases["special sqrt"] = one([](In x) { return sqrt(x[0]); });
  cases["special relu"] = of(nn::relu);
  cases["special sigmoid"] = of(nn::sigmoid);
  cases["special square"] = one([](In x) { return x[0] * x[0]; });
  cases["special quotient"] = one([](In x) { return x[0] / x[1]; });
  cases["special max"] = one([](In x) { return amax(x[0]); });
  cases["special maximum"] = one([](In x) { return maximum(x[0], flip(x[0], {0})); });
  cases["special softmax"] = one([](In x) { return nn::softmax(slice(x[0], 0, 1, 6), 0); });
  cases["special where"] = one([](In x) { return where(x[0] > 0, x[0], x[0] * x[0]); });
  cases["special max_pool1d"] = one([](In x) {
    return nn::max_pool1d(reshape(x[0], {1, 6}), {2});
  });
  cases["special cross_entropy"] = one([](In x) {
    return nn::cross_entropy(reshape(x[0], {2, 3}), slice(arange(3), 0, 1, 3));
  });
}

}  // namespace

const std::map<std::string, Case>& functional_cases() {
  static const Cases all = [] {
    Cases cases;
    add_activations(cases);
    add_convolutions(cases);
    add_pools(cases);
    add_norms(cases);
    add_transforms(cases);
    add_losses(cases);
    add_recurrent(cases);
    add_layers(cases);
    add_chains(cases);
    add_special(cases);
    return cases;
  }();
  return all;
}

}  // namespace composit::test
