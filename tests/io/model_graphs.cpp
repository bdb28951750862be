#include "tests/io/model_graphs.h"

namespace composit::test {

using Scope = ModelGraph::Scope;

Scope::Scope(ModelGraph& model, const std::string& name)
    : model_(model), length_(model.scope_.size()) {
  model_.scope_ = model_.path(name);
}

std::string ModelGraph::path(const std::string& name) const {
  return scope_.empty() ? name : scope_ + "." + name;
}

LazyTensor ModelGraph::user_input(const std::string& name, DType dtype, Dims sizes) {
  inputs_.push_back(input(name, tensor_type(dtype, std::move(sizes))));
  return inputs_.back();
}

LazyTensor ModelGraph::parameter(const std::string& name, Dims sizes, InputKind kind) {
  inputs_.push_back(input(path(name), tensor_type(DType::float32, std::move(sizes)), kind));
  return inputs_.back();
}

LazyTensor ModelGraph::call(std::string_view op, const LazyTensors& operands, Dims sizes,
                            Attributes attributes) {
  NodeSpec spec("aten::" + std::string(op));
  for (const LazyTensor& operand : operands) spec.tensor(operand);
  spec.attributes = std::move(attributes);
  if (!scope_.empty()) spec.annotate("scope", scope_);
  const DType dtype = op == "embedding" ? DType::float32 : operands.at(0).dtype();
  return std::move(spec.output(tensor_type(dtype, std::move(sizes)))).make();
}

LazyTensor ModelGraph::same(std::string_view op, const LazyTensors& operands) {
  return call(op, operands, operands.at(0).sizes());
}

LazyTensor ModelGraph::linear(const std::string& name, const LazyTensor& x, int64_t features,
                              bool bias) {
  const Scope scope(*this, name);
  Dims sizes = x.sizes();
  const LazyTensor weight = parameter("weight", {features, sizes.back()});
  sizes.back() = features;
  if (!bias) return call("linear", {x, weight, {}}, sizes);
  return call("linear", {x, weight, parameter("bias", {features})}, sizes);
}

LazyTensor ModelGraph::conv(const std::string& name, const LazyTensor& x, int64_t channels,
                            int64_t kernel, int64_t stride) {
  const Scope scope(*this, name);
  Dims sizes = x.sizes();
  const LazyTensor weight = parameter("weight", {channels, sizes[1], kernel, kernel});
  sizes[1] = channels;
  for (size_t axis : {2, 3}) sizes[axis] = (sizes[axis] + stride - 1) / stride;
  return call("conv2d", {x, weight, parameter("bias", {channels})}, sizes,
              {{Symbol("stride"), int_list({stride, stride})},
               {Symbol("padding"), int_list({kernel / 2, kernel / 2})}});
}

LazyTensor ModelGraph::layer_norm(const std::string& name, const LazyTensor& x) {
  const Scope scope(*this, name);
  return same("layer_norm",
              {x, parameter("weight", {x.sizes().back()}), parameter("bias", {x.sizes().back()})});
}

LazyTensor ModelGraph::group_norm(const std::string& name, const LazyTensor& x) {
  const Scope scope(*this, name);
  return same("group_norm",
              {x, parameter("weight", {x.sizes()[1]}), parameter("bias", {x.sizes()[1]})});
}

LazyTensor ModelGraph::batch_norm(const std::string& name, const LazyTensor& x) {
  const Scope scope(*this, name);
  const Dims channels = {x.sizes()[1]};
  return same("batch_norm", {x, parameter("weight", channels), parameter("bias", channels),
                             parameter("running_mean", channels, InputKind::buffer),
                             parameter("running_var", channels, InputKind::buffer)});
}

Graph ModelGraph::finish(LazyTensors outputs, std::vector<Mutation> mutations) const {
  return Graph(
      {.inputs = inputs_, .outputs = std::move(outputs), .mutations = std::move(mutations)});
}

Graph perceptron_graph() {
  ModelGraph model;
  LazyTensor x = model.user_input("x", DType::float32, {32, 784});
  for (const char* name : {"hidden", "output"}) {
    const Scope scope(model, name);
    const int64_t features = name == std::string("hidden") ? 128 : 10;
    const LazyTensor weight = model.parameter("weight", {features, x.sizes()[1]});
    const LazyTensor transposed = model.call("t", {weight}, {x.sizes()[1], features});
    x = model.call("addmm", {model.parameter("bias", {features}), x, transposed}, {32, features});
    if (features == 128) x = model.same("relu", {x});
  }
  return model.finish({model.same("softmax.int", {x})});
}

namespace {

LazyTensor attention(ModelGraph& model, const LazyTensor& x, const LazyTensor& mask) {
  const Dims& sizes = x.sizes();
  const int64_t heads = 12, width = sizes[2] / heads;
  const Dims split = {sizes[0], sizes[1], heads, width},
             by_head = {sizes[0], heads, sizes[1], width};
  LazyTensors projections;
  const Scope scope(model, "self");
  for (const char* name : {"query", "key", "value"}) {
    const LazyTensor projected = model.linear(name, x, sizes[2]);
    projections.push_back(
        model.call("transpose.int", {model.call("view", {projected}, split)}, by_head));
  }
  projections.push_back(mask);
  const LazyTensor context = model.call("scaled_dot_product_attention", projections, by_head);
  return model.call("reshape", {model.call("transpose.int", {context}, split)}, sizes);
}

LazyTensor bert_layer(ModelGraph& model, LazyTensor x, const LazyTensor& mask) {
  const int64_t width = x.sizes()[2];
  {
    const Scope scope(model, "attention");
    const LazyTensor context = attention(model, x, mask);
    const Scope output(model, "output");
    const LazyTensor dense = model.linear("dense", context, width);
    x = model.layer_norm("LayerNorm", model.same("add.Tensor", {dense, x}));
  }
  LazyTensor inner;
  {
    const Scope scope(model, "intermediate");
    inner = model.same("gelu", {model.linear("dense", x, 4 * width)});
  }
  const Scope scope(model, "output");
  return model.layer_norm("LayerNorm",
                          model.same("add.Tensor", {model.linear("dense", inner, width), x}));
}

LazyTensor bottleneck(ModelGraph& model, const LazyTensor& x, int64_t width, int64_t stride,
                      bool downsample) {
  LazyTensor y = model.same("relu_", {model.batch_norm("bn1", model.conv("conv1", x, width, 1))});
  y = model.same("relu_", {model.batch_norm("bn2", model.conv("conv2", y, width, 3, stride))});
  y = model.batch_norm("bn3", model.conv("conv3", y, 4 * width, 1));
  LazyTensor shortcut = x;
  if (downsample) {
    const Scope scope(model, "downsample");
    shortcut = model.batch_norm("1", model.conv("0", x, 4 * width, 1, stride));
  }
  return model.same("relu_", {model.same("add_.Tensor", {y, shortcut})});
}

}  // namespace

Graph bert_graph(int layers, int64_t width) {
  ModelGraph model;
  const LazyTensor ids = model.user_input("input_ids", DType::int64, {1, 128});
  const LazyTensor attention_mask = model.user_input("attention_mask", DType::float32, {1, 128});
  LazyTensor x, mask;
  {
    const Scope scope(model, "embeddings");
    {
      const Scope words(model, "word_embeddings");
      x = model.call("embedding", {ids, model.parameter("weight", {30522, width})},
                     {1, 128, width});
    }
    const Scope positions(model, "position_embeddings");
    x = model.same("add.Tensor", {x, model.parameter("weight", {128, width})});
  }
  x = model.layer_norm("embeddings.LayerNorm", x);
  mask = model.call("mul.Scalar", {model.call("unsqueeze", {attention_mask}, {1, 1, 1, 128})},
                    {1, 1, 1, 128});
  for (int layer = 0; layer < layers; ++layer) {
    const Scope scope(model, "encoder.layer." + std::to_string(layer));
    x = bert_layer(model, x, mask);
  }
  const Scope scope(model, "pooler");
  const LazyTensor first = model.call("select.int", {x}, {1, width});
  return model.finish({x, model.same("tanh", {model.linear("dense", first, width)})});
}

Graph resnet50_graph() {
  ModelGraph model;
  LazyTensor x = model.user_input("x", DType::float32, {1, 3, 224, 224});
  x = model.same("relu_", {model.batch_norm("bn1", model.conv("conv1", x, 64, 7, 2))});
  x = model.call("max_pool2d", {x}, {1, 64, 56, 56});
  const std::vector<int> blocks = {3, 4, 6, 3};
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    for (int block = 0; block < blocks[stage]; ++block) {
      const Scope scope(model, "layer" + std::to_string(stage + 1) + "." + std::to_string(block));
      x = bottleneck(model, x, int64_t{64} << stage, block == 0 && stage > 0 ? 2 : 1, block == 0);
    }
  }
  x = model.call("flatten.using_ints", {model.call("adaptive_avg_pool2d", {x}, {1, 2048, 1, 1})},
                 {1, 2048});
  return model.finish({model.linear("fc", x, 1000)});
}

namespace {

LazyTensor resnet_block(ModelGraph& model, const LazyTensor& x, const LazyTensor& time,
                        int64_t channels) {
  LazyTensor y =
      model.conv("conv1", model.same("silu", {model.group_norm("norm1", x)}), channels, 3);
  const LazyTensor shift = model.linear("time_emb_proj", model.same("silu", {time}), channels);
  y = model.same("add.Tensor",
                 {y, model.call("unsqueeze", {model.call("unsqueeze", {shift}, {2, channels, 1})},
                                {2, channels, 1, 1})});
  y = model.same("dropout", {model.same("silu", {model.group_norm("norm2", y)})});
  y = model.conv("conv2", y, channels, 3);
  const LazyTensor shortcut =
      x.sizes()[1] == channels ? x : model.conv("conv_shortcut", x, channels, 1);
  return model.same("div.Tensor", {model.same("add.Tensor", {shortcut, y})});
}

LazyTensor cross_attention(ModelGraph& model, const std::string& name, const LazyTensor& x,
                           const LazyTensor& context) {
  const Scope scope(model, name);
  const int64_t width = x.sizes()[2];
  LazyTensors projections;
  for (const char* part : {"to_q", "to_k", "to_v"}) {
    const LazyTensor projected =
        model.linear(part, part == std::string("to_q") ? x : context, width, false);
    const Dims split = {2, projected.sizes()[1], 8, width / 8};
    projections.push_back(model.call("transpose.int", {model.call("view", {projected}, split)},
                                     {2, 8, split[1], split[3]}));
  }
  const LazyTensor y =
      model.call("scaled_dot_product_attention", projections, projections[0].sizes());
  const LazyTensor merged = model.call(
      "reshape", {model.call("transpose.int", {y}, {2, x.sizes()[1], 8, width / 8})}, x.sizes());
  return model.same("dropout", {model.linear("to_out.0", merged, width)});
}

LazyTensor transformer_block(ModelGraph& model, LazyTensor x, const LazyTensor& context) {
  const int64_t width = x.sizes()[2];
  const LazyTensor normed = model.layer_norm("norm1", x);
  x = model.same("add.Tensor", {cross_attention(model, "attn1", normed, normed), x});
  x = model.same("add.Tensor",
                 {cross_attention(model, "attn2", model.layer_norm("norm2", x), context), x});
  const LazyTensor projected =
      model.linear("ff.net.0.proj", model.layer_norm("norm3", x), 8 * width);
  Dims half = x.sizes();
  half.back() = 4 * width;
  const LazyTensor gate = model.call("gelu", {model.call("slice.Tensor", {projected}, half)}, half);
  const LazyTensor gated =
      model.same("mul.Tensor", {model.call("slice.Tensor", {projected}, half), gate});
  return model.same("add.Tensor", {model.linear("ff.net.2", gated, width), x});
}

LazyTensor transformer(ModelGraph& model, const LazyTensor& x, const LazyTensor& context,
                       int depth) {
  const Dims& image = x.sizes();
  const Dims sequence = {image[0], image[2] * image[3], image[1]};
  LazyTensor y = model.conv("proj_in", model.group_norm("norm", x), image[1], 1);
  y = model.call("reshape", {model.call("permute", {y}, {image[0], image[2], image[3], image[1]})},
                 sequence);
  for (int block = 0; block < depth; ++block) {
    const Scope scope(model, "transformer_blocks." + std::to_string(block));
    y = transformer_block(model, y, context);
  }
  y = model.call("permute", {model.call("reshape", {y}, {image[0], image[2], image[3], image[1]})},
                 image);
  return model.same("add.Tensor", {model.conv("proj_out", y, image[1], 1), x});
}

// One level of the UNet going down or up: residual blocks, each followed by a transformer, then a
// change of size.
class UNet {
 public:
  UNet(ModelGraph& model, int blocks, int depth) : model_(model), blocks_(blocks), depth_(depth) {}

  LazyTensor time, context;
  LazyTensors skips;

  LazyTensor down(const std::string& name, LazyTensor x, int64_t channels, bool attention,
                  bool last) {
    const Scope scope(model_, name);
    for (int block = 0; block < blocks_; ++block) {
      x = step(block, x, channels, attention);
      skips.push_back(x);
    }
    if (!last) skips.push_back(x = model_.conv("downsamplers.0.conv", x, channels, 3, 2));
    return x;
  }

  LazyTensor up(const std::string& name, LazyTensor x, int64_t channels, bool attention,
                bool last) {
    const Scope scope(model_, name);
    for (int block = 0; block <= blocks_; ++block) {
      Dims sizes = x.sizes();
      sizes[1] = sizes[1] + skips.back().sizes()[1];
      x = step(block, model_.call("cat", {x, skips.back()}, sizes), channels, attention);
      skips.pop_back();
    }
    if (last) return x;
    Dims sizes = x.sizes();
    for (size_t axis : {2, 3}) sizes[axis] = 2 * sizes[axis];
    return model_.conv("upsamplers.0.conv", model_.call("upsample_nearest2d", {x}, sizes), channels,
                       3);
  }

  LazyTensor step(int block, LazyTensor x, int64_t channels, bool attention) {
    {
      const Scope scope(model_, "resnets." + std::to_string(block));
      x = resnet_block(model_, x, time, channels);
    }
    if (!attention) return x;
    const Scope scope(model_, "attentions." + std::to_string(block));
    return transformer(model_, x, context, depth_);
  }

 private:
  ModelGraph& model_;
  int blocks_, depth_;
};

}  // namespace

Graph unet_graph(int blocks_per_level, int transformer_depth) {
  ModelGraph model;
  UNet unet(model, blocks_per_level, transformer_depth);
  const LazyTensor sample = model.user_input("sample", DType::float32, {2, 4, 64, 64});
  const LazyTensor timestep = model.user_input("timestep", DType::float32, {2, 320});
  unet.context = model.user_input("encoder_hidden_states", DType::float32, {2, 77, 768});
  {
    const Scope scope(model, "time_embedding");
    unet.time = model.linear("linear_2",
                             model.same("silu", {model.linear("linear_1", timestep, 1280)}), 1280);
  }
  LazyTensor x = model.conv("conv_in", sample, 320, 3);
  unet.skips.push_back(x);
  const std::vector<int64_t> channels = {320, 640, 1280, 1280};
  for (size_t level = 0; level < 4; ++level)
    x = unet.down("down_blocks." + std::to_string(level), x, channels[level], level < 3,
                  level == 3);
  {
    const Scope scope(model, "mid_block");
    x = unet.step(0, x, 1280, true);
    const Scope second(model, "resnets.1");
    x = resnet_block(model, x, unet.time, 1280);
  }
  for (size_t level = 0; level < 4; ++level)
    x = unet.up("up_blocks." + std::to_string(level), x, channels[3 - level], level > 0,
                level == 3);
  x = model.same("silu", {model.group_norm("conv_norm_out", x)});
  return model.finish({model.conv("conv_out", x, 4, 3)});
}

Graph chain_graph(int length) {
  LazyTensor x = input("x", tensor_type(DType::float32, {2}));
  const LazyTensors inputs = {x};
  for (int i = 0; i < length; ++i)
    x = std::move(NodeSpec("aten::relu").tensor(x).output(x.type())).make();
  return Graph({.inputs = inputs, .outputs = {x}});
}

}  // namespace composit::test
