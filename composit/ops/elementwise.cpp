#include "composit/ops/elementwise.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "composit/ir/error.h"
#include "composit/op/nest.h"
#include "composit/op/promotion.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/ops/tracing.h"

namespace composit {
namespace {

Ints common_sizes(const LazyTensors& tensors) {
  std::vector<Ints> sizes;
  for (const LazyTensor& tensor : tensors) sizes.push_back(tensor.sizes());
  return broadcast_sizes(sizes);
}

// One loop over all elements; `results` get `parameters[i]` for the element of tensors[i].
using Elements = std::function<std::vector<Expr>(const std::vector<Expr>& elements)>;
LazyTensors one_loop(const LazyTensors& tensors, const Elements& results) {
  Nest nest;
  const Index index = nest.parallel(common_sizes(tensors));
  std::vector<Expr> elements;
  for (size_t i = 0; i < tensors.size(); ++i)
    elements.push_back(In(i, tensors[i].type()).broadcast(index));
  for (const Expr& result : results(elements)) nest.store(result);
  Loops loops = nest.loops();
  for (const LazyTensor& tensor : tensors) loops.operands.push_back(tensor.type());
  return apply("composit::loops", {tensors, print(loops)});
}

std::vector<Expr> with_parameters(const std::vector<Expr>& results,
                                  const std::vector<Expr>& parameters) {
  return replace(results, [&](const Expr& part) {
    return part.kind() == ExprKind::parameter ? parameters.at(part.number()) : Expr();
  });
}

// ---- graphs of scalars as expressions -----------------------------------------------------------

// Nothing where something is no function of scalars.
class Scalarizer {
 public:
  using Exprs = std::vector<Expr>;

  void set(const LazyTensor& tensor, const Expr& value) {
    Exprs& values = known_[tensor.node.get()];
    values.resize(std::max<size_t>(values.size(), tensor.index + 1));
    values[tensor.index] = value;
  }

  std::optional<Expr> of(const LazyTensor& tensor) {
    if (!tensor || tensor.type().rank() != 0) return std::nullopt;
    if (const Exprs* known = known_.find(tensor.node.get())) return known->at(tensor.index);
    const auto values = of_node(tensor.node);
    if (!values || tensor.index >= values->size()) return std::nullopt;
    known_[tensor.node.get()] = *values;
    return values->at(tensor.index);
  }
  std::optional<Exprs> of(const LazyTensors& tensors) {
    Exprs values;
    for (const LazyTensor& tensor : tensors) {
      const auto value = of(tensor);
      if (!value) return std::nullopt;
      values.push_back(*value);
    }
    return values;
  }

 private:
  std::optional<Exprs> of_node(const NodePtr& node) {
    if (node->op() == ops::kConstant) return of_constant(*node);
    const Operation* operation = operation_of(*node);
    if (operation == nullptr || node->effect() >= 0) return std::nullopt;
    const auto operands = of(node->operands());
    if (!operands) return std::nullopt;
    if (node->op().str() == "composit::cond") return of_cond(*node, *operands);
    const Call call = call_of(*node, operation->schema);
    if (const auto loops = loops_of(*operation, call)) return of_loops(*loops, *operands);
    if (!operation->row.decompose) return std::nullopt;
    LazyTensors results;
    for (const LazyTensor& result : decompose(*operation, call)) results.push_back(result);
    return of(results);
  }

  static std::optional<Exprs> of_constant(const Node& node) {
    const auto* array = node.attribute("value").get_if<Array>();
    const DType dtype = node.outputs()[0].dtype;
    if (array == nullptr || is_complex(dtype)) return std::nullopt;
    const bool floating = is_floating_point(dtype);
    const Scalar::Value value = floating ? Scalar::Value(elements<double>(*array)[0])
                                         : Scalar::Value(elements<int64_t>(*array)[0]);
    return Exprs{Expr::literal(value, dtype)};
  }

  // One statement without axes that stores each result once.
  static std::optional<Exprs> of_loops(const Loops& loops, const Exprs& operands) {
    if (loops.statements.size() != 1) return std::nullopt;
    const Statement& statement = loops.statements[0];
    if (!statement.axes.empty() || statement.domain.defined() || !statement.init.empty())
      return std::nullopt;
    Exprs values(loops.results.size());
    for (const Store& store : statement.stores) {
      if (store.add) return std::nullopt;
      values[store.result] = cast(store.value, loops.results[store.result].dtype);
    }
    for (const Expr& value : values)
      if (!value.defined()) return std::nullopt;
    return replace(values, [&](const Expr& part) {
      return part.kind() == ExprKind::load ? operands.at(part.number()) : Expr();
    });
  }

  std::optional<Exprs> of_cond(const Node& node, const Exprs& operands) {
    const auto branch = [&](const char* name) {
      const Graph& body = *node.attribute(name).as<Region>();
      Scalarizer inner;
      for (size_t i = 0; i < body.inputs().size(); ++i)
        inner.set(body.inputs()[i], operands.at(i + 1));
      return inner.of(body.outputs());
    };
    const auto x = branch("then_body"), y = branch("else_body");
    if (!x || !y) return std::nullopt;
    Exprs values;
    for (size_t i = 0; i < x->size(); ++i) values.push_back(select(operands[0], (*x)[i], (*y)[i]));
    return values;
  }

  FlatMap<const Node*, Exprs> known_;
};

// The results of `f` as expressions of parameters: its blocks, then what it takes from outside.
std::optional<std::vector<Expr>> scalar_form(const Traced& f, const LazyTensors& outside) {
  LazyTensors parameters = f.blocks();
  parameters.insert(parameters.end(), outside.begin(), outside.end());
  Scalarizer scalarizer;
  for (size_t i = 0; i < parameters.size(); ++i)
    scalarizer.set(parameters[i], Expr::parameter(i, parameters[i].dtype()));
  for (const NodePtr& node : f.nodes())  // operands first: nothing to recur into
    for (uint32_t i = 0; i < node->outputs().size(); ++i)
      if (!scalarizer.of(LazyTensor{node, i})) return std::nullopt;
  return scalarizer.of({f.outputs().begin(), f.outputs().end()});
}

std::vector<Type> number_types(const LazyTensors& tensors) {
  std::vector<Type> types;
  for (const LazyTensor& tensor : tensors) types.push_back(tensor_type(tensor.dtype(), {}));
  return types;
}

// `f` of each element as one loop, where it is a function of scalars.
std::optional<LazyTensors> loop_of(const Traced& f, const LazyTensors& tensors) {
  const LazyTensors outside = close({f}).outside;
  const auto results = scalar_form(f, outside);
  if (!results) return std::nullopt;
  LazyTensors operands = tensors;
  operands.insert(operands.end(), outside.begin(), outside.end());
  return one_loop(operands, [&](const std::vector<Expr>& elements) {
    return with_parameters(*results, elements);
  });
}

LazyTensors mapped(const TensorFunction& f, const LazyTensors& tensors) {
  const Ints sizes = common_sizes(tensors);
  const int64_t elements =
      std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  LazyTensors flat;
  for (const LazyTensor& tensor : tensors)
    flat.push_back(reshape(expand(tensor, sizes), {elements}));
  LazyTensors results;
  for (const LazyTensor& result : map(f, flat)) results.push_back(reshape(result, sizes));
  return results;
}

}  // namespace

LazyTensors elementwise(const ScalarProgram& program, const LazyTensors& tensors) {
  if (tensors.size() != program.parameters)
    throw UserError("[elementwise] expected " + std::to_string(program.parameters) +
                    " tensors, received " + std::to_string(tensors.size()));
  Promotion promotion;
  for (const LazyTensor& tensor : tensors) promotion.add(tensor.type());
  const DType dtype = to_float(promotion.result());
  const ScalarProgram typed = with_dtype(program, dtype);
  return one_loop(tensors, [&](std::vector<Expr> elements) {
    for (Expr& element : elements) element = cast(element, dtype);
    return with_parameters(typed.results, elements);
  });
}

std::optional<ScalarProgram> scalar_program(const TensorFunction& f, size_t parameters,
                                            DType dtype) {
  const Traced traced(std::vector<Type>(parameters, tensor_type(dtype, {})), f);
  const bool closed = close({traced}).outside.empty();
  auto results = closed ? scalar_form(traced, {}) : std::nullopt;
  if (!results) return std::nullopt;
  for (Expr& result : *results) result = cast(result, dtype);
  return ScalarProgram{parameters, dtype, std::move(*results)};
}

std::optional<LazyTensors> as_one_loop(const TensorFunction& f, const LazyTensors& tensors) {
  return loop_of(Traced(number_types(tensors), f), tensors);
}

TensorFunction elementwise(TensorFunction f) {
  return [f = std::move(f)](const LazyTensors& tensors) {
    const Traced traced(number_types(tensors), f);
    for (const LazyTensor& output : traced.outputs())
      if (output.rank() != 0)
        throw UserError(
            "[elementwise] expected a function that gives numbers (zero-dimensional "
            "tensors), received a result of rank " +
            std::to_string(output.rank()));
    auto results = loop_of(traced, tensors);
    return results ? *std::move(results) : mapped(f, tensors);
  };
}

}  // namespace composit
