#include "composit/family/result_types.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "composit/ir/flat_map.h"
#include "composit/ir/integers.h"
#include "composit/op/affine.h"
#include "composit/ops/operations.h"

namespace composit {
namespace {

using Strides = std::vector<int64_t>;

bool same_strides(const Dims& sizes, const Strides& a, const Strides& b) {
  if (a.size() != b.size()) return false;
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    if (sizes[axis] > 1 && a[axis] != b[axis]) return false;
  return true;
}

// ---- views --------------------------------------------------------------------------------------

// The strides with which elements in the order of `type` have other sizes: what Tensor::view does.
// Axes that lie densely in each other are one run; each run of the old axes must be one of the new.
std::optional<Strides> strides_of_view(const Type& type, const Dims& sizes) {
  Strides strides(sizes.size(), 1);
  if (type.numel() == 0) return contiguous_strides(sizes);
  size_t next = sizes.size();  // new axes from here on have strides
  int64_t elements = 1;        // of the run of old axes so far
  int64_t step = 1;            // between elements of the run
  bool begun = false;
  for (size_t axis = type.rank(); axis-- > 0;) {
    if (!begun) step = type.strides[axis];
    begun = true;
    elements *= type.sizes[axis];
    const bool goes_on =
        axis > 0 && (type.sizes[axis - 1] == 1 || type.strides[axis - 1] == elements * step);
    if (goes_on) continue;
    int64_t covered = 1;
    while (next > 0 && (covered < elements || sizes[next - 1] == 1)) {
      --next;
      strides[next] = covered * step;
      covered *= sizes[next];
    }
    if (covered != elements) return std::nullopt;
    elements = 1;
    begun = false;
  }
  for (; next > 0; --next)  // of a tensor without axes
    if (sizes[next - 1] != 1) return std::nullopt;
  return strides;
}

// Strides of values within a call, as far as they are views of its operands.
class ViewStrides {
 public:
  explicit ViewStrides(const Call& call) {
    for (const LazyTensor& tensor : call.tensors())
      if (tensor) known_.insert(tensor.node.get(), {});
  }

  // Nothing for a value that is no view.
  std::optional<Strides> of(const Operation& operation, const Call& call, size_t output,
                            const Dims& sizes) {
    if (output >= operation.schema.results.size() && !operation.schema.results.at(0).list)
      return std::nullopt;
    const bool list = operation.schema.results.at(0).list;
    const size_t result = list ? 0 : output;
    // Schemas of operators that give lists do not say it of all views: `meshgrid` expands.
    const bool may_be_view = list && operation.row.decompose;
    if (operation.schema.results[result].alias.empty() && !may_be_view) return std::nullopt;
    if (operation.row.decompose) {
      const LazyTensors parts = decompose(operation, call);
      return output < parts.size() ? of(parts[output]) : std::nullopt;
    }
    const std::optional<Loops> loops = loops_of(operation, call);
    return loops ? of_loops(*loops, call, output, sizes) : std::nullopt;
  }

 private:
  std::optional<Strides> of(const LazyTensor& value) {
    if (!value) return std::nullopt;
    if (known_.contains(value.node.get())) return value.type().strides;
    const Operation* operation = operation_of(*value.node);
    if (operation == nullptr) return std::nullopt;
    return of(*operation, call_of(*value.node, operation->schema), value.index, value.sizes());
  }

  std::optional<Strides> of_loops(const Loops& loops, const Call& call, size_t output,
                                  const Dims& sizes) {
    for (const Statement& statement : loops.statements)
      for (const Store& store : statement.stores)
        if (store.result == output) return of_store(loops, statement, store, call, sizes);
    return std::nullopt;
  }

  std::optional<Strides> of_store(const Loops& loops, const Statement& statement,
                                  const Store& store, const Call& call, const Dims& sizes) {
    if (store.add || statement.domain.defined()) return std::nullopt;
    Expr load = store.value;
    const bool part = load.is(Function::real) || load.is(Function::imag);
    if (part) load = load[0];
    if (load.kind() != ExprKind::load) return std::nullopt;
    const LazyTensor* operand = nullptr;
    for (size_t i = 0; i < call.tensors().size(); ++i)
      if (call.tensors()[i] && call.operand(i) == load.number()) operand = &call.tensors()[i];
    if (operand == nullptr) return std::nullopt;
    const std::optional<Strides> strides = of(*operand);
    if (!strides) return std::nullopt;
    Type viewed = operand->type();
    viewed.strides = *strides;
    if (part)  // numbers of half the size
      for (int64_t& stride : viewed.strides) stride *= 2;
    const bool all = loops.results.at(store.result).numel() == viewed.numel();
    const auto in_order = all ? strides_of_view(viewed, sizes) : std::nullopt;
    auto affine = of_affine(statement, store.at, load, viewed.strides);
    if (!affine) return in_order;
    for (size_t axis = 0; axis < sizes.size(); ++axis)
      if (sizes[axis] == 1 && (*affine)[axis] == 0)
        (*affine)[axis] = in_order ? (*in_order)[axis] : aligned_stride(viewed, sizes, axis);
    return affine;
  }

  // The stride of the operand's axis at the same distance from the last one, if it has one element
  // as well: what `expand` keeps.
  static int64_t aligned_stride(const Type& operand, const Dims& sizes, size_t axis) {
    const size_t from_end = sizes.size() - axis;
    if (from_end > operand.rank()) return 0;
    const size_t same = operand.rank() - from_end;
    return operand.sizes[same] == 1 ? operand.strides[same] : 0;
  }

  // Where each index is affine in the axes, so is the address.
  static std::optional<Strides> of_affine(const Statement& statement, const std::vector<Expr>& at,
                                          const Expr& load, const Strides& strides) {
    std::vector<Axis> axes = statement.axes;
    for (Axis& axis : axes) axis.extent = std::max<int64_t>(axis.extent, 2);  // 1 counts as 0
    IndexAnalysis analysis(axes);
    Strides result(at.size(), 0);
    std::vector<size_t> axis_of;
    for (const Expr& index : at) {
      if (index.kind() != ExprKind::axis) return std::nullopt;
      axis_of.push_back(index.number());
    }
    for (size_t i = 0; i < load.arguments().size(); ++i) {
      const std::optional<Affine> index = analysis.affine(load[i]);
      if (!index) return std::nullopt;
      for (size_t axis = 0; axis < result.size(); ++axis)
        result[axis] += index->coefficients.at(axis_of[axis]) * strides.at(i);
    }
    return result;
  }

  FlatMap<const Node*, char> known_;
};

// ---- new memory ---------------------------------------------------------------------------------

// Axes from the one of the greatest stride to the one of the least.
std::vector<size_t> order_of(const Type& type) {
  std::vector<size_t> order(type.rank());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return type.strides[a] > type.strides[b]; });
  return order;
}

Strides dense_strides(const Dims& sizes, const std::vector<size_t>& order) {
  Strides strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride *= std::max<int64_t>(sizes[order[i]], 1);
  }
  return strides;
}

bool has_order(const Type& type, const std::vector<size_t>& order) {
  return same_strides(type.sizes, type.strides, dense_strides(type.sizes, order));
}

// ---- element by element -------------------------------------------------------------------------

// The strides of the operand's axes as axes of a result of these sizes: 0 where it is repeated.
// Nothing for one that does not broadcast to them.
std::optional<Strides> broadcast_strides(const Type& operand, const Dims& sizes) {
  if (operand.rank() > sizes.size() || operand.strides.size() != operand.rank())
    return std::nullopt;
  Strides strides(sizes.size(), 0);
  const size_t shift = sizes.size() - operand.rank();
  for (size_t axis = 0; axis < operand.rank(); ++axis) {
    const int64_t size = operand.sizes[axis], wanted = sizes[shift + axis];
    if (size != wanted && size != 1) return std::nullopt;
    if (size == wanted) strides[shift + axis] = operand.strides[axis];
  }
  return strides;
}

// True if two axes of more than one element have the same stride: which of them LibTorch puts
// outside follows from their sizes.
bool is_ambiguous(const Strides& strides, const Dims& sizes) {
  for (size_t a = 0; a < sizes.size(); ++a)
    for (size_t b = 0; b < a; ++b)
      if (sizes[a] > 1 && sizes[b] > 1 && strides[a] != 0 && strides[a] == strides[b]) return true;
  return false;
}

// Above 0 if axis `a` belongs outside of axis `b`, which is outside of it so far; below 0 if not;
// 0: nothing says so. As TensorIterator::reorder_dimensions has it.
int order_of_axes(const std::vector<Strides>& operands, const Dims& sizes, size_t a, size_t b) {
  for (const Strides& strides : operands) {
    if (strides[a] == 0 || strides[b] == 0) continue;
    if (strides[a] != strides[b]) return strides[a] > strides[b] ? 1 : -1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

// The strides of new memory that TensorIterator makes for operands of which one has several axes of
// one stride; nothing: none of them has, or they are no operands of such an operation.
std::optional<Strides> strides_by_iterator(const Node& node, const Dims& sizes) {
  std::vector<Strides> operands;
  bool ambiguous = false;
  for (const LazyTensor& operand : node.operands()) {
    if (!operand) continue;
    const auto strides = broadcast_strides(operand.type(), sizes);
    if (!strides) return std::nullopt;
    ambiguous = ambiguous || is_ambiguous(*strides, sizes);
    operands.push_back(*strides);
  }
  if (!ambiguous) return std::nullopt;
  std::vector<size_t> inside_out(sizes.size());  // axes, the innermost first
  std::iota(inside_out.rbegin(), inside_out.rend(), size_t{0});
  for (size_t i = 1; i < inside_out.size(); ++i) {
    size_t moved = i;
    for (size_t other = i; other-- > 0;) {
      const int order = order_of_axes(operands, sizes, inside_out[other], inside_out[moved]);
      if (order < 0) break;
      if (order == 0) continue;
      std::swap(inside_out[other], inside_out[moved]);
      moved = other;
    }
  }
  return dense_strides(sizes, {inside_out.rbegin(), inside_out.rend()});
}

// Of an operand with the example's strides, as one that is written in place.
std::optional<Strides> strides_of_operand(const Node& node, const Node& example, size_t output,
                                          const Dims& sizes) {
  const Type& shown = example.outputs()[output];
  for (size_t i = 0; i < example.operands().size(); ++i) {
    const LazyTensor &before = example.operands()[i], &now = node.operands()[i];
    if (before && now && before.sizes() == shown.sizes && before.type().strides == shown.strides &&
        now.sizes() == sizes)
      return now.type().strides;
  }
  return std::nullopt;
}

std::optional<Strides> strides_of_views(const Node& node, const Operation& operation, size_t output,
                                        const Dims& sizes) {
  const Call call = call_of(node, operation.schema);
  return ViewStrides(call).of(operation, call, output, sizes);
}

// Of an operation that is told its result's strides, as `as_strided`.
std::optional<Strides> strides_told(const Node& node, const Node& example, const Strides& shown) {
  const auto told = [](const Node& call) -> std::optional<Strides> {
    const Attribute* stride = call.find_attribute("stride");
    if (stride == nullptr) return std::nullopt;
    const std::vector<int64_t> numbers = integers_of(*stride);
    return Strides(numbers.begin(), numbers.end());
  };
  return told(example) == shown ? told(node) : std::nullopt;
}

Strides strides_of(const Node& node, const Node& example, const Operation* operation, size_t output,
                   const Dims& sizes) {
  const Type& shown = example.outputs()[output];
  if (operation != nullptr) {
    const auto before = strides_of_views(example, *operation, output, shown.sizes);
    if (before && same_strides(shown.sizes, *before, shown.strides))
      if (auto now = strides_of_views(node, *operation, output, sizes)) return *now;
  }
  if (const auto told = strides_told(node, example, shown.strides)) return *told;
  if (const auto before = strides_by_iterator(example, shown.sizes);
      before && same_strides(shown.sizes, *before, shown.strides))
    if (auto now = strides_by_iterator(node, sizes)) return *now;
  if (is_contiguous(shown)) return contiguous_strides(sizes);
  const std::vector<size_t> order = order_of(shown);
  if (has_order(shown, order)) return dense_strides(sizes, order);
  if (auto strides = strides_of_operand(node, example, output, sizes)) return *strides;
  return contiguous_strides(sizes);
}

}  // namespace

std::vector<Type> result_types(const Node& node, const Node& example, const Operation* operation,
                               const std::vector<Dims>& sizes) {
  std::vector<Type> types = example.outputs();
  for (size_t output = 0; output < types.size(); ++output) {
    Type& type = types[output];
    if (!is_defined(type)) continue;
    type.sizes = sizes.at(output);
    if (type.layout == Layout::strided)
      type.strides = strides_of(node, example, operation, output, type.sizes);
  }
  return types;
}

bool is_view(const Node& node, const Operation& operation) {
  return strides_of_views(node, operation, 0, node.outputs().at(0).sizes).has_value();
}

bool same_but_for_unit_strides(const Type& a, const Type& b) {
  Type same = b;
  same.strides = a.strides;
  return a == same && same_strides(a.sizes, a.strides, b.strides);
}

}  // namespace composit
