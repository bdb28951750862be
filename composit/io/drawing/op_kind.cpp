#include "composit/io/drawing/op_kind.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace composit::drawing {
namespace {

using Table = std::unordered_map<std::string_view, OpKind>;

void add(Table& table, OpKind kind, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) table.emplace(name, kind);
}

// Base names without leading and trailing underscores and without "_backward". What is not here is
// told by its shapes.
const Table& known_kinds() {
  static const Table table = [] {
    Table kinds;
    add(kinds, OpKind::contraction,
        {"mm",
         "bmm",
         "addmm",
         "addbmm",
         "baddbmm",
         "matmul",
         "linear",
         "bilinear",
         "einsum",
         "tensordot",
         "dot",
         "vdot",
         "mv",
         "addmv",
         "addr",
         "outer",
         "inner",
         "conv1d",
         "conv2d",
         "conv3d",
         "convolution",
         "conv_transpose1d",
         "conv_transpose2d",
         "conv_transpose3d",
         "mkldnn_convolution",
         "scaled_dot_product_attention",
         "scaled_dot_product_flash_attention_for_cpu",
         "scaled_dot_product_attention_math",
         "multi_head_attention",
         "lstm",
         "gru",
         "lstm_cell",
         "gru_cell",
         "rnn_tanh",
         "rnn_relu"});
    add(kinds, OpKind::normalisation,
        {"batch_norm", "native_batch_norm", "batch_norm_impl_index", "native_batch_norm_legit",
         "batch_norm_with_update", "layer_norm", "native_layer_norm", "group_norm",
         "native_group_norm", "instance_norm", "rms_norm", "local_response_norm", "softmax",
         "log_softmax", "normalize"});
    add(kinds, OpKind::movement,
        {"view",
         "reshape",
         "flatten",
         "unflatten",
         "permute",
         "transpose",
         "t",
         "numpy_T",
         "mT",
         "movedim",
         "squeeze",
         "unsqueeze",
         "expand",
         "expand_as",
         "view_as",
         "reshape_as",
         "unsafe_view",
         "contiguous",
         "clone",
         "to",
         "to_copy",
         "copy",
         "detach",
         "alias",
         "cat",
         "concat",
         "stack",
         "split",
         "split_with_sizes",
         "chunk",
         "unbind",
         "slice",
         "select",
         "narrow",
         "index",
         "index_select",
         "gather",
         "take_along_dim",
         "embedding",
         "roll",
         "flip",
         "repeat",
         "repeat_interleave",
         "tile",
         "pad",
         "constant_pad_nd",
         "reflection_pad2d",
         "replication_pad2d",
         "as_strided",
         "as_strided_scatter",
         "slice_scatter",
         "select_scatter",
         "diagonal",
         "diagonal_scatter",
         "scatter",
         "scatter_add",
         "index_put",
         "index_add",
         "masked_scatter",
         "pixel_shuffle",
         "unfold",
         "im2col",
         "upsample_nearest2d",
         "upsample_bilinear2d",
         "lift_fresh",
         "type_as",
         "storage",
         "storage_view",
         "storage_scatter",
         "storage_resize"});
    add(kinds, OpKind::reduction,
        {"sum",
         "mean",
         "prod",
         "amax",
         "amin",
         "max",
         "min",
         "argmax",
         "argmin",
         "any",
         "all",
         "var",
         "std",
         "var_mean",
         "norm",
         "linalg_vector_norm",
         "logsumexp",
         "cumsum",
         "cumprod",
         "max_pool1d",
         "max_pool2d",
         "max_pool3d",
         "max_pool2d_with_indices",
         "avg_pool1d",
         "avg_pool2d",
         "avg_pool3d",
         "adaptive_avg_pool1d",
         "adaptive_avg_pool2d",
         "adaptive_max_pool2d",
         "cross_entropy_loss",
         "nll_loss",
         "nll_loss_forward",
         "mse_loss",
         "topk",
         "sort",
         "argsort",
         "nonzero",
         "count_nonzero"});
    add(kinds, OpKind::random,
        {"dropout", "native_dropout", "feature_dropout", "alpha_dropout", "bernoulli", "rand",
         "randn", "randint", "randperm", "normal", "uniform", "rand_like", "randn_like",
         "multinomial", "exponential"});
    add(kinds, OpKind::control, {"cond", "while_loop", "map", "call"});
    return kinds;
  }();
  return table;
}

std::string_view stem(std::string_view name) {
  while (name.starts_with('_')) name.remove_prefix(1);
  while (name.ends_with('_')) name.remove_suffix(1);
  constexpr std::string_view kBackward = "_backward";
  if (name.ends_with(kBackward)) name.remove_suffix(kBackward.size());
  return name;
}

bool keeps_shape(const Node& node) {
  return node.outputs().size() == 1 &&
         std::any_of(node.operands().begin(), node.operands().end(),
                     [&](const LazyTensor& operand) {
                       return operand && operand.sizes() == node.outputs()[0].sizes;
                     });
}

}  // namespace

OpKind kind_of(const Node& node) {
  if (is_input(node)) return OpKind::input;
  const auto found = known_kinds().find(stem(node.op().base_name()));
  if (found != known_kinds().end()) return found->second;
  if (node.effect() >= 0) return OpKind::effect;
  return keeps_shape(node) ? OpKind::elementwise : OpKind::other;
}

const Colours& colours(OpKind kind) {
  static constexpr std::array<Colours, static_cast<size_t>(OpKind::count_)> kColours = {{
      {"input", "#e6eef8", "#4f76ad"},
      {"output", "#d8e3f2", "#35598c"},
      {"contraction", "#fbe9d3", "#c07f2f"},
      {"normalisation", "#ebe5f5", "#7c64ab"},
      {"elementwise", "#e5f2e5", "#5f9763"},
      {"movement", "#f4f4f4", "#a0a0a0"},
      {"reduction and pooling", "#dff1f2", "#438d96"},
      {"random", "#fce8ee", "#bd5f7d"},
      {"effect", "#fbe4e1", "#b5483f"},
      {"control flow", "#f6f1d9", "#93863f"},
      {"other", "#fbf9ee", "#a59f80"},
  }};
  return kColours.at(static_cast<size_t>(kind));
}

}  // namespace composit::drawing
