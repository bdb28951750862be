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
    const size_t result = operation.schema.results.at(0).list ? 0 : output;
    if (operation.schema.results[result].alias.empty()) return std::nullopt;
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

bool same_but_for_unit_strides(const Type& a, const Type& b) {
  Type same = b;
  same.strides = a.strides;
  return a == same && same_strides(a.sizes, a.strides, b.strides);
}

}  // namespace composit
