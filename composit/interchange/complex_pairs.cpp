#include "composit/interchange/complex_pairs.h"

#include <algorithm>
#include <complex>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "composit/interchange/complex_functions.h"
#include "composit/interchange/definition.h"
#include "composit/interchange/scalar_rows.h"
#include "composit/interchange/values.h"
#include "composit/ir/error.h"
#include "composit/ir/transform.h"
#include "composit/op/promotion.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/passes/definition.h"

namespace composit::interchange {
namespace {

using Pairs = std::vector<Pair>;
using Words = std::set<std::string_view>;

// Operators that do to each part what they do to the whole.
const Words& linear_operators() {
  static const auto* names = new Words{"aten::clone",
                                       "aten::contiguous",
                                       "aten::detach",
                                       "aten::alias",
                                       "aten::resolve_conj",
                                       "aten::resolve_neg",
                                       "aten::view",
                                       "aten::reshape",
                                       "aten::_unsafe_view",
                                       "aten::unsqueeze",
                                       "aten::squeeze",
                                       "aten::squeeze.dim",
                                       "aten::squeeze.dims",
                                       "aten::unflatten.int",
                                       "aten::flatten.using_ints",
                                       "aten::expand",
                                       "aten::permute",
                                       "aten::transpose.int",
                                       "aten::t",
                                       "aten::slice.Tensor",
                                       "aten::select.int",
                                       "aten::split.Tensor",
                                       "aten::split_with_sizes",
                                       "aten::chunk",
                                       "aten::cat",
                                       "aten::stack",
                                       "aten::flip",
                                       "aten::roll",
                                       "aten::repeat",
                                       "aten::narrow",
                                       "aten::diagonal",
                                       "aten::unfold",
                                       "aten::as_strided",
                                       "aten::index.Tensor",
                                       "aten::index_select",
                                       "aten::gather",
                                       "aten::index_put",
                                       "aten::slice_scatter",
                                       "aten::select_scatter",
                                       "aten::tril",
                                       "aten::triu",
                                       "aten::diag_embed",
                                       "aten::sum.dim_IntList",
                                       "aten::mean.dim",
                                       "aten::cumsum",
                                       "aten::constant_pad_nd",
                                       "aten::full",
                                       "aten::masked_select"};
  return *names;
}

// Operators that are linear in each of two operands.
const Words& bilinear_operators() {
  static const auto* names = new Words{"aten::matmul", "aten::mm",    "aten::bmm",   "aten::mv",
                                       "aten::dot",    "aten::outer", "aten::einsum"};
  return *names;
}

std::optional<Function> function_of(std::string_view op) {
  static const auto* functions = [] {
    auto* all = new std::map<std::string_view, Function>();
    for (int i = 0; i < static_cast<int>(Function::count_); ++i) {
      const auto each = static_cast<Function>(i);
      if (!operator_of(each).empty()) all->emplace(operator_of(each), each);
    }
    return all;
  }();
  const auto found = functions->find(op);
  return found == functions->end() ? std::nullopt : std::optional(found->second);
}

Type part_type(const Type& type) { return tensor_type(real_dtype(type.dtype), type.sizes); }

bool is_zero(const LazyTensor& x) { return is_filled_with(x, 0); }

// An attribute as the real parts, or the imaginary ones, are made with it.
Attribute part_of(const Attribute& value, bool imaginary) {
  if (const auto* dtype = value.get_if<DType>()) return Attribute(real_dtype(*dtype));
  const auto* scalar = value.get_if<Scalar>();
  if (scalar == nullptr) return value;
  const auto* whole = std::get_if<std::complex<double>>(&scalar->value);
  if (whole != nullptr) return Attribute(Scalar(imaginary ? whole->imag() : whole->real()));
  return imaginary ? Attribute(Scalar(int64_t{0})) : value;
}

class ComplexPairs {
 public:
  ComplexPairs(Refusals& refusals, const Origin& around) : refusals_(refusals), around_(around) {}

  Graph run(const Graph& graph) {
    Graph::Parts parts;
    for (const LazyTensor& input : graph.inputs()) parts.inputs.push_back(input_for(input));
    evaluate(graph);
    for (const LazyTensor& output : graph.outputs()) parts.outputs.push_back(whole(output));
    for (const Mutation& mutation : graph.mutations())
      parts.mutations.push_back({inputs_.at(mutation.target.node.get()), whole(mutation.value)});
    return Graph(std::move(parts));
  }

 private:
  // ---- what goes in and out
  // -----------------------------------------------------------------------

  LazyTensor input_for(const LazyTensor& given) {
    if (!is_complex(given.dtype())) {
      values_[{given.node.get(), 0}] = {given};
      return inputs_[given.node.get()] = given;
    }
    Dims sizes = given.sizes();
    sizes.push_back(2);
    const LazyTensor pairs =
        input(input_name(*given.node), tensor_type(real_dtype(given.dtype()), sizes),
              input_kind(*given.node));
    values_[{given.node.get(), 0}] = {select_at(pairs, -1, 0), select_at(pairs, -1, 1)};
    return inputs_[given.node.get()] = pairs;
  }

  const Pair& pair_of(const LazyTensor& value) const {
    return values_.at({value.node.get(), value.index});
  }

  static LazyTensor joined(const Pair& pair) {
    return cat({unsqueeze(pair.real, -1), unsqueeze(pair.imaginary, -1)}, -1);
  }

  LazyTensor whole(const LazyTensor& value) const {
    if (!value) return {};
    const Pair& pair = pair_of(value);
    return pair.is_complex() ? joined(pair) : pair.real;
  }

  // A constant stays one.
  static LazyTensor in_dtype(const LazyTensor& x, DType dtype) {
    if (x.node->op() != ops::kConstant || x.dtype() == dtype) return to(x, dtype);
    return constant(array_of(tensor_type(dtype, x.sizes()),
                             elements<double>(x.node->attribute("value").as<Array>())));
  }

  // A pair of these parts also of a real tensor.
  static Pair as_complex(const Pair& pair, DType part) {
    const LazyTensor real = in_dtype(pair.real, part);
    return {real, pair.is_complex() ? in_dtype(pair.imaginary, part) : zeros(real.sizes(), part)};
  }

  // ---- nodes
  // --------------------------------------------------------------------------------------

  void evaluate(const Graph& graph) {
    for (const NodePtr& node : graph.nodes()) {
      if (is_input(*node)) continue;
      const Pairs results = results_of(node);
      for (uint32_t i = 0; i < results.size(); ++i) values_[{node.get(), i}] = results[i];
    }
  }

  Pairs results_of(const NodePtr& node) {
    const auto is_complex_type = [](const Type& type) {
      return is_defined(type) && is_complex(type.dtype);
    };
    bool meets = std::any_of(node->outputs().begin(), node->outputs().end(), is_complex_type);
    LazyTensors operands;
    for (const LazyTensor& operand : node->operands()) {
      operands.push_back(operand ? pair_of(operand).real : LazyTensor());
      meets = meets || (operand && pair_of(operand).is_complex());
    }
    if (!meets) return kept(node, std::move(operands));
    if (node->op() == ops::kConstant) return {constant_parts(node->attribute("value").as<Array>())};
    try {
      if (auto made = by_rule(*node)) return *made;
      return by_definition(*node);
    } catch (const UserError& error) {
      refusals_.add(*node, around_, error.what());
      return nothing(*node);
    }
  }

  static Pairs kept(const NodePtr& node, LazyTensors operands) {
    const bool same = std::equal(operands.begin(), operands.end(), node->operands().begin(),
                                 [](const LazyTensor& a, const LazyTensor& b) {
                                   return a.node == b.node && a.index == b.index;
                                 });
    const NodePtr now = same ? node : copy_of(*node, std::move(operands)).make_node();
    Pairs results;
    for (uint32_t i = 0; i < node->outputs().size(); ++i) results.push_back({LazyTensor{now, i}});
    return results;
  }

  static Pair constant_parts(const Array& value) {
    std::vector<double> real, imaginary;
    for (const std::complex<double> x : elements<std::complex<double>>(value)) {
      real.push_back(x.real());
      imaginary.push_back(x.imag());
    }
    const Type type = part_type(value.type());
    return {constant(array_of(type, real)), constant(array_of(type, imaginary))};
  }

  // In place of what is refused.
  static Pairs nothing(const Node& node) {
    Pairs results;
    for (const Type& type : node.outputs()) {
      if (!is_defined(type)) {
        results.emplace_back();
        continue;
      }
      const LazyTensor part = zeros(type.sizes, real_dtype(type.dtype));
      results.push_back(is_complex(type.dtype) ? Pair{part, part} : Pair{part});
    }
    return results;
  }

  Pairs by_definition(const Node& node) {
    const std::string op = node.op().str();
    if (defining_.contains(op)) throw UserError("it has no form in real numbers");
    std::optional<Graph> parts = definition_of(node);
    if (!parts) parts = interchange::body_of(node);
    if (!parts) throw UserError("it has no form in real numbers, and composit no definition");
    size_t next = 0;
    for (const LazyTensor& operand : node.operands())
      if (operand) values_[{parts->inputs().at(next++).node.get(), 0}] = pair_of(operand);
    const Origin before = std::exchange(around_, origin_of(node, around_));
    defining_.insert(op);
    evaluate(*parts);
    defining_.erase(op);
    around_ = before;
    Pairs results;
    for (const LazyTensor& output : parts->outputs())
      results.push_back(output ? pair_of(output) : Pair());
    kept_.push_back(std::move(*parts));  // whose nodes are keys
    return results;
  }

  // ---- rules
  // --------------------------------------------------------------------------------------

  std::optional<Pairs> by_rule(const Node& node) {
    const Operation* operation = operation_of(node);
    if (operation == nullptr) return std::nullopt;
    const std::string_view op = operation->schema.name.str();
    if (op == "aten::to.dtype" || op == "aten::_to_copy") return Pairs{converted(node)};
    if (op == "aten::view_as_real") return Pairs{{joined(pair_of(node.operands()[0]))}};
    if (op == "aten::view_as_complex") {
      const LazyTensor& x = pair_of(node.operands()[0]).real;
      return Pairs{{select_at(x, -1, 0), select_at(x, -1, 1)}};
    }
    if (op == "aten::complex") return Pairs{made_complex(node)};
    if (op == "aten::where.self") return Pairs{chosen(node)};
    if (linear_operators().contains(op)) return on_each_part(node);
    const bool of_two = node.operands().size() == 2;
    if (bilinear_operators().contains(op) && of_two) return Pairs{bilinear(node)};
    if (op == "aten::einsum" && node.operands().size() == 1) return on_each_part(node);
    const auto function = function_of(op);
    if (!function) return std::nullopt;
    const bool scaled = *function == Function::add || *function == Function::sub;
    if (scaled && number_of(call_of(node, operation->schema)["alpha"].data()) != 1.0)
      return std::nullopt;
    return by_function(node, *function);
  }

  // A Scalar, where it is real; else no number.
  static double number_of(const Attribute& data) {
    if (const auto* scalar = data.get_if<Scalar>()) {
      if (std::holds_alternative<std::complex<double>>(scalar->value)) return 0;
      return interchange::number_of(*scalar);
    }
    return 0;
  }

  std::optional<Pairs> by_function(const Node& node, Function function) {
    DType common = node.outputs()[0].dtype;
    for (const LazyTensor& operand : node.operands())
      if (!is_complex(common) || (!is_wrapped_number(operand) && is_complex(operand.dtype()) &&
                                  item_size(operand.dtype()) > item_size(common)))
        common = is_complex(operand.dtype()) ? operand.dtype() : common;
    const DType part = real_dtype(common);
    Pairs operands;
    for (const LazyTensor& operand : node.operands())
      operands.push_back(as_complex(pair_of(operand), part));
    const auto made = applied_to_parts(function, operands);
    if (!made) return std::nullopt;
    const Type& type = node.outputs()[0];
    if (!made->is_complex()) return Pairs{{to(made->real, type.dtype)}};
    return Pairs{as_complex(*made, real_dtype(type.dtype))};
  }

  Pair converted(const Node& node) const {
    const Pair& x = pair_of(node.operands()[0]);
    const DType dtype = node.outputs()[0].dtype;
    if (is_complex(dtype)) return as_complex(x, real_dtype(dtype));
    // A number is true where a part of it is not 0; else the imaginary part is left out.
    if (dtype == DType::bool_) return {logical_or(ne(x.real, 0), ne(x.imaginary, 0))};
    return {to(x.real, dtype)};
  }

  Pair made_complex(const Node& node) const {
    const Type& type = node.outputs()[0];
    const auto part = [&](size_t i) {
      return expand(to(pair_of(node.operands()[i]).real, real_dtype(type.dtype)), type.sizes);
    };
    return {part(0), part(1)};
  }

  Pair chosen(const Node& node) const {
    const DType part = real_dtype(node.outputs()[0].dtype);
    const LazyTensor& condition = pair_of(node.operands()[0]).real;
    const Pair x = as_complex(pair_of(node.operands()[1]), part),
               y = as_complex(pair_of(node.operands()[2]), part);
    return {where(condition, x.real, y.real), where(condition, x.imaginary, y.imaginary)};
  }

  // The node on operands of one part.
  static NodePtr on_part(const Node& node, LazyTensors operands, bool imaginary) {
    NodeSpec spec = copy_of(node, std::move(operands));
    for (NamedAttribute& attribute : spec.attributes)
      attribute.value = part_of(attribute.value, imaginary);
    for (Type& type : spec.outputs) type = part_type(type);
    return std::move(spec).make_node();
  }

  Pairs on_each_part(const Node& node) const {
    const DType part = real_dtype(node.outputs()[0].dtype);
    LazyTensors real, imaginary;
    const bool all_are_data =
        node.op() == Symbol("aten::cat") || node.op() == Symbol("aten::stack");
    for (const LazyTensor& operand : node.operands()) {
      const bool is_data = operand && (all_are_data || pair_of(operand).is_complex() ||
                                       is_floating_point(operand.dtype()));
      const Pair pair = !operand  ? Pair()
                        : is_data ? as_complex(pair_of(operand), part)
                                  : pair_of(operand);
      real.push_back(pair.real);
      imaginary.push_back(is_data ? pair.imaginary : pair.real);
    }
    const NodePtr of_real = on_part(node, real, false),
                  of_imaginary = on_part(node, imaginary, true);
    Pairs results;
    for (uint32_t i = 0; i < node.outputs().size(); ++i)
      results.push_back({{of_real, i}, {of_imaginary, i}});
    return results;
  }

  // (a + bi)(c + di); an imaginary part that is 0 takes no part.
  Pair bilinear(const Node& node) const {
    const DType part = real_dtype(node.outputs()[0].dtype);
    const Pair x = as_complex(pair_of(node.operands()[0]), part),
               y = as_complex(pair_of(node.operands()[1]), part);
    const auto product = [&](const LazyTensor& a, const LazyTensor& b) {
      return LazyTensor{on_part(node, {a, b}, false), 0};
    };
    const bool x_is_real = is_zero(x.imaginary), y_is_real = is_zero(y.imaginary);
    LazyTensor real = product(x.real, y.real);
    if (!x_is_real && !y_is_real) real = real - product(x.imaginary, y.imaginary);
    if (x_is_real) return {real, product(x.real, y.imaginary)};
    const LazyTensor imaginary = product(x.imaginary, y.real);
    if (y_is_real) return {real, imaginary};
    return {real, product(x.real, y.imaginary) + imaginary};
  }

  Refusals& refusals_;
  Origin around_;
  std::map<std::pair<const Node*, uint32_t>, Pair> values_;
  std::map<const Node*, LazyTensor> inputs_;
  std::set<std::string> defining_;
  std::vector<Graph> kept_;
};

bool has_complex(const Graph& graph) {
  for (const NodePtr& node : graph.nodes())
    for (const Type& type : node->outputs())
      if (is_defined(type) && is_complex(type.dtype)) return true;
  return std::any_of(graph.inputs().begin(), graph.inputs().end(),
                     [](const LazyTensor& input) { return is_complex(input.dtype()); });
}

}  // namespace

Graph complex_as_pairs(const Graph& graph, Refusals& refusals, const Origin& around) {
  return has_complex(graph) ? ComplexPairs(refusals, around).run(graph) : graph;
}

}  // namespace composit::interchange
