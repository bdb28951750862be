#include "composit/io/drawing/op_kind.h"

#include <algorithm>
#include <array>
#include <utility>

#include "composit/ops/draws.h"
#include "composit/ops/operations.h"

namespace composit::drawing {
namespace {

// Base names of operations that have no row.
constexpr std::pair<std::string_view, OpKind> kWithoutRow[] = {
    {"mkldnn_convolution", OpKind::contraction},
    {"scaled_dot_product_attention_math", OpKind::contraction},
    {"batch_norm_impl_index", OpKind::normalisation},
    {"storage", OpKind::movement},
    {"storage_view", OpKind::movement},
    {"storage_scatter", OpKind::movement},
    {"storage_resize", OpKind::movement},
    {"call", OpKind::control},
};

// A base name without leading and trailing underscores and without "_backward".
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

Kinds::Kinds() : of_names_(std::begin(kWithoutRow), std::end(kWithoutRow)) {
  for (const Operation* operation : all_operations()) {
    add(*operation, operation->schema.name.str());
    for (const std::string_view name : operation->row.also) add(*operation, name);
  }
  for (const Draw* draw : all_draws())
    of_names_.emplace(stem(draw->schema.name.base_name()), OpKind::random);
}

void Kinds::add(const Operation& operation, std::string_view name) {
  if (operation.row.kind == OpKind::other) return;
  of_names_.emplace(name, operation.row.kind);
  of_names_.emplace(stem(Symbol(name).base_name()), operation.row.kind);
}

OpKind Kinds::of(const Node& node) const {
  if (is_input(node)) return OpKind::input;
  for (const std::string_view name :
       {std::string_view(node.op().str()), stem(node.op().base_name())})
    if (const auto found = of_names_.find(name); found != of_names_.end()) return found->second;
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
