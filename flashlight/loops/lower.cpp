#include "flashlight/loops/lower.h"

#include <algorithm>
#include <set>

#include "composit/ir/error.h"
#include "composit/ir/transform.h"
#include "composit/op/affine.h"
#include "composit/op/stores.h"
#include "composit/passes/canonicalize.h"
#include "composit/passes/common_subexpressions.h"
#include "composit/passes/decompose.h"
#include "composit/passes/definition.h"
#include "composit/passes/drop_no_ops.h"
#include "composit/passes/inline_calls.h"
#include "composit/passes/join_slices.h"
#include "composit/passes/outline_nodes.h"
#include "composit/passes/outline_repeats.h"
#include "flashlight/loops/constants.h"
#include "flashlight/loops/control.h"
#include "flashlight/loops/effects.h"
#include "flashlight/loops/missing_code.h"
#include "flashlight/loops/names.h"
#include "flashlight/loops/runtime_call.h"
#include "flashlight/loops/statement.h"
#include "flashlight/loops/widen.h"

namespace flashlight::loops {
namespace {

using composit::Axis;
using composit::DType;
using composit::Graph;
using composit::LazyTensor;
using composit::Loops;
using composit::Node;
using composit::NodePtr;
using composit::Store;

// Nodes that a function must save, as only code outside of it shares loops with its neighbours.
constexpr int64_t kLeastSaved = 3, kLeastSavedWithoutModules = 200;

bool has_modules(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const NodePtr& node) { return !node->annotation("scope").empty(); });
}

bool never_runs(const Statement& statement) {
  const bool reduces =
      !statement.axes.empty() && statement.axes.back().kind == composit::AxisKind::reduction;
  for (const Axis& axis : statement.axes)
    if (axis.extent == 0 && axis.kind != composit::AxisKind::reduction) return true;
  return !reduces && composit::is_false(statement.domain);
}

// A reduction over no terms leaves the accumulators at their initial values.
Statement without_empty_reduction(Statement statement) {
  const auto empty = [](const Axis& axis) {
    return axis.extent == 0 && axis.kind == composit::AxisKind::reduction;
  };
  if (std::none_of(statement.axes.begin(), statement.axes.end(), empty) &&
      !composit::is_false(statement.domain))
    return statement;
  std::erase_if(statement.axes,
                [](const Axis& axis) { return axis.kind == composit::AxisKind::reduction; });
  const std::vector<Expr> init = statement.init;
  statement = replaced(std::move(statement), [&](const Expr& part) {
    return part.kind() == ExprKind::accumulator ? init[part.number()] : Expr();
  });
  statement.domain = Expr();
  statement.init = statement.body = statement.combine = {};
  return statement;
}

// Counts the elements that a nest writes; -1 if it may write one twice, or not all of a box.
int64_t written(const Statement& statement, const Store& store) {
  if (statement.domain.defined() && statement.init.empty()) return -1;
  composit::IndexAnalysis analysis(statement.axes);
  const std::vector<size_t> over = composit::store_axes(statement);
  if (store.add || !composit::injective(store.at, over, analysis)) return -1;
  int64_t count = 1;
  for (size_t axis : over) count *= statement.axes[axis].extent;
  return count;
}

// True if the statements of `loops` write each element of result `number` exactly once.
bool covers(const Loops& loops, size_t number) {
  int64_t count = 0;
  std::vector<std::pair<const Statement*, const Store*>> stores;
  for (const Statement& statement : loops.statements)
    for (const Store& store : statement.stores) {
      if (store.result != number) continue;
      const int64_t more = written(statement, store);
      if (more < 0) return false;
      for (const auto& [other, before] : stores)
        if (!composit::disjoint(*other, *before, statement, store)) return false;
      stores.emplace_back(&statement, &store);
      count += more;
    }
  return count == loops.results[number].numel();
}

// Splits a statement without accumulators into one statement per store.
std::vector<Statement> split(const Statement& statement) {
  if (!statement.init.empty() || statement.stores.size() < 2) return {statement};
  std::vector<Statement> parts;
  for (const Store& store : statement.stores) {
    parts.push_back(statement);
    parts.back().stores = {store};
  }
  return parts;
}

class Lowering {
 public:
  explicit Lowering(const LowerOptions& options) : options_(options) {}

  Program run(const Graph& graph) {
    lower_function(graph, options_.name, false);
    missing_.refuse();
    return std::move(program_);
  }

 private:
  // The function being made, and what its nodes became.
  struct Scope {
    Names names;
    Routine function = {};
    composit::FlatMap<const Node*, ValueIds> values = {};
  };

  FunctionId lower_function(const Graph& graph, const std::string& name, bool is_region) {
    Scope scope = {.names = Names(graph)};
    scope.function.name = name;
    for (const LazyTensor& input : graph.inputs()) add_input(scope, input, is_region);
    for (const NodePtr& node : graph.nodes()) lower_node(scope, *node, is_region);
    for (const LazyTensor& output : graph.outputs())
      if (output) add_result(scope, value_of(scope, output));
    for (const composit::Mutation& mutation : graph.mutations())
      add_result(scope, value_of(scope, mutation.value));
    drop_unit_dimensions(scope.function, is_region);
    return program_.functions.add(with_wide_sums(std::move(scope.function)));
  }

  static ValueId add_value(Scope& scope, const Type& type, Role role, std::string name) {
    // `conj` and `neg` say how LibTorch reads memory; memory here holds the values themselves.
    if (type.layout != composit::Layout::strided)
      throw composit::UserError("[compile] expected dense tensors");
    return scope.function.values.add(
        {composit::tensor_type(type.dtype, type.sizes), role, std::move(name), {}});
  }

  void add_input(Scope& scope, const LazyTensor& input, bool is_region) {
    const std::string& name = composit::input_name(*input.node);
    const composit::InputKind kind = composit::input_kind(*input.node);
    const bool weight = is_region ? !is_number(name) : kind != composit::InputKind::user_input;
    const ValueId value = add_value(scope, input.type(), weight ? Role::weight : Role::argument,
                                    is_number(name) ? "" : name);
    scope.function.inputs.push_back(value);
    scope.values.insert(input.node.get(), {value});
  }

  static ValueId value_of(Scope& scope, const LazyTensor& tensor) {
    const ValueIds* values = scope.values.find(tensor.node.get());
    COMPOSIT_ASSERT(values != nullptr && tensor.index < values->size(),
                    "a value of '" + tensor.node->op().str() + "' that was not lowered");
    return values->at(tensor.index);
  }

  // Each result has memory of its own: an input, a constant or a repeated result is copied.
  static void add_result(Scope& scope, ValueId value) {
    Routine& function = scope.function;
    if (function.values[value].role == Role::temporary) {
      function.values[value].role = Role::result;
      function.results.push_back(value);
      return;
    }
    const Value given = function.values[value];
    const ValueId copy = add_value(scope, given.type, Role::result, given.name);
    Statement statement = zeros(given.type, copy);
    statement.stores[0].value = given.role == Role::constant && is_scalar(given.constant)
                                    ? literal_of(given.constant)
                                    : Expr::load(value, given.type.dtype, statement.stores[0].at);
    add_nest(scope, std::move(statement), {"copy", "", ""});
    function.results.push_back(copy);
  }

  static bool is_scalar(const Array& array) { return array.type().numel() == 1; }
  static Expr literal_of(const Array& array) {
    return Expr::literal(element(array, 0), array.type().dtype);
  }

  void lower_node(Scope& scope, const Node& node, bool is_region) {
    if (composit::is_input(node)) return;
    if (node.op() == composit::ops::kConstant) return add_constant(scope, node, is_region);
    const Origin origin = {node.op().str(), std::string(node.annotation("scope")),
                           std::string(node.annotation("source"))};
    if (node.op() == composit::ops::kCall) return lower_call(scope, node, origin);
    if (is_control(node.op())) return lower_control(scope, node, origin);
    if (const auto constants = constants_of(node)) {
      for (const Array& array : *constants) add_constant_value(scope, node, array, is_region);
      return;
    }
    if (const composit::Schema* schema = options_.called ? options_.called(node) : nullptr)
      if (add_call(scope, node, origin, [&] { return aten_call_of(node, *schema); })) return;
    if (add_call(scope, node, origin, [&] { return runtime_call_of(node, origin); })) return;
    const auto loops = loops_for(node);
    if (!loops && add_call(scope, node, origin, [&] { return aten_call(node); })) return;
    ValueIds& values = scope.values[&node];
    for (const Type& type : node.outputs())
      values.push_back(is_defined(type)
                           ? add_value(scope, type, Role::temporary, scope.names.of(node))
                           : ValueId());
    if (loops)
      add_nests(scope, node, *loops, origin);
    else
      missing_.add(origin, "");
  }

  std::optional<RuntimeCallOf> aten_call(const Node& node) const {
    const auto schema = options_.aten.find(node.op().str());
    if (schema == options_.aten.end()) return std::nullopt;
    return aten_call_of(node, schema->second);
  }

  // True if `find` returns a call for `node`, or throws why there is none for this case.
  template <class Find>
  bool add_call(Scope& scope, const Node& node, const Origin& origin, Find find) {
    std::optional<RuntimeCallOf> found;
    try {
      found = find();
      if (!found) return false;
    } catch (const composit::UserError& error) {
      missing_.add(origin, error.what());
    }
    ValueIds& values = scope.values[&node];
    int64_t elements = 0;
    const composit::Operation* operation = composit::operation_of(node);
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      const Type& output = node.outputs()[i];
      const Type type = is_defined(output) ? output : composit::tensor_type(DType::float32, {0});
      std::string name = scope.names.of(node);
      const bool named = operation != nullptr && i < operation->schema.results.size();
      if (named && node.outputs().size() > 1)
        name += "_" + operation->schema.results[i].name;  // "sort_values", "sort_indices"
      values.push_back(add_value(scope, type, Role::temporary, std::move(name)));
      elements += type.numel();
    }
    if (!found || (!values.empty() && elements == 0)) return true;
    RuntimeCall call = std::move(found->call);
    for (size_t i = 0; i < found->operands; ++i)
      call.arguments.push_back(
          found->broadcasts ? expanded(scope, node.operands()[i], node.outputs()[0].sizes, origin)
                            : value_of(scope, node.operands()[i]));
    call.results = values;
    call.origin = origin;
    scope.function.steps.push_back(std::move(call));
    return true;
  }

  // The value of `tensor`, broadcast to `sizes`.
  static ValueId expanded(Scope& scope, const LazyTensor& tensor, const composit::Dims& sizes,
                          const Origin& origin) {
    const ValueId value = value_of(scope, tensor);
    if (tensor.sizes() == sizes) return value;
    const Type type = composit::tensor_type(tensor.dtype(), sizes);
    const ValueId whole = add_value(scope, type, Role::temporary, "expanded");
    Statement statement = zeros(type, whole);
    std::vector<Expr> at;
    const size_t extra = sizes.size() - tensor.sizes().size();
    for (size_t i = 0; i < tensor.sizes().size(); ++i)
      at.push_back(tensor.sizes()[i] == 1 ? Expr(0) : Expr::axis(i + extra));
    statement.stores[0].value = Expr::load(value, tensor.dtype(), at);
    add_nest(scope, std::move(statement), origin);
    return whole;
  }

  // Makes single numbers literals, and arrays weights that ship with the program. Arrays of regions
  // become constants of their functions.
  static void add_constant(Scope& scope, const Node& node, bool is_region) {
    add_constant_value(scope, node, node.attribute("value").as<Array>().contiguous(), is_region);
  }
  static void add_constant_value(Scope& scope, const Node& node, const Array& array,
                                 bool is_region) {
    const Role role = is_scalar(array) || is_region ? Role::constant : Role::weight;
    const ValueId value = add_value(scope, array.type(), role, scope.names.of(node));
    scope.function.values[value].constant = array;
    scope.values[&node].push_back(value);
    if (role == Role::weight) scope.function.inputs.push_back(value);
  }
  // The results of an operation without tensor operands that runs now, not in loops.
  static std::optional<std::vector<Array>> constants_of(const Node& node) {
    const composit::Operation* operation = composit::row_for(node);
    if (operation == nullptr || !operation->row.native || !node.operands().empty())
      return std::nullopt;
    const std::vector<Array> none;
    const composit::Call call = composit::call_of(node, operation->schema);
    return operation->row.native({.call = &call, .values = &none});
  }

  // Equal regions share one function.
  FunctionId function_of(const composit::Region& region, const std::string& name) {
    const composit::Hash hash = region->hash();
    if (!functions_.contains(hash)) {
      std::string free = name;
      for (int number = 2; !names_.insert(free).second; ++number)
        free = name + "_" + std::to_string(number);
      functions_.insert(hash, lower_function(*region, free, true));
    }
    return *functions_.find(hash);
  }

  void lower_control(Scope& scope, const Node& node, const Origin& origin) {
    Control control = control_of(
        node, [&](const LazyTensor& tensor) { return value_of(scope, tensor); },
        [&](const composit::Region& region, const std::string& name) {
          return function_of(region, name);
        });
    control.origin = origin;
    ValueIds& values = scope.values[&node];
    for (const Type& type : node.outputs()) {
      values.push_back(add_value(scope, type, Role::temporary, scope.names.of(node)));
      control.results.push_back(values.back());
    }
    for (ValueId value : control.carried)
      control.next.push_back(
          add_value(scope, scope.function.values[value].type, Role::temporary, "next"));
    scope.function.steps.push_back(std::move(control));
  }

  void lower_call(Scope& scope, const Node& node, const Origin& origin) {
    const composit::Region& region = node.find_run("body")->as<composit::Region>();
    Invocation call = {
        function_of(region, node.attribute("name").as<std::string>()), {}, {}, origin};
    for (const LazyTensor& operand : node.operands())
      call.arguments.push_back(value_of(scope, operand));
    ValueIds& values = scope.values[&node];
    for (const Type& type : node.outputs()) {
      values.push_back(add_value(scope, type, Role::temporary, scope.names.of(node)));
      call.results.push_back(values.back());
    }
    scope.function.steps.push_back(std::move(call));
  }

  // The loops of an operation; nothing for guards, and nothing if the captured sizes of its results
  // are not those that the loops infer.
  static std::optional<Loops> loops_for(const Node& node) {
    if (node.find_run("expected") != nullptr) return std::nullopt;
    auto loops = composit::loops_of(node);
    for (size_t i = 0; loops && i < node.outputs().size(); ++i)
      if (is_defined(node.outputs()[i]) && is_defined(loops->results[i]) &&
          loops->results[i].sizes != node.outputs()[i].sizes)
        return std::nullopt;
    return loops;
  }

  void add_nests(Scope& scope, const Node& node, Loops loops, const Origin& origin) {
    const ValueIds results = *scope.values.find(&node);
    loops = composit::canonical(std::move(loops));
    for (size_t i = 0; i < results.size(); ++i)
      if (is_defined(loops.results[i]) && !covers(loops, i))
        add_nest(scope, zeros(loops.results[i], results[i]),
                 {"zeros", origin.module, origin.source});
    for (const Statement& whole : loops.statements)
      for (Statement statement : split(whole)) {
        for (Store& store : statement.stores) store.result = results[store.result];
        add_nest(scope, with_operands(scope, node, std::move(statement)), origin);
      }
  }

  static void add_nest(Scope& scope, Statement statement, const Origin& origin) {
    if (never_runs(statement)) return;
    statement = simplified(without_empty_reduction(std::move(statement)));
    if (never_runs(statement)) return;
    scope.function.steps.push_back(Nest{std::move(statement), origin});
  }

  // Replaces loads of operands by loads of values, or by literals if they are known numbers.
  static Statement with_operands(Scope& scope, const Node& node, Statement statement) {
    return replaced(std::move(statement), [&](const Expr& part) {
      if (part.kind() != ExprKind::load) return Expr();
      const ValueId value = value_of(scope, node.operands()[part.number()]);
      const Value& read = scope.function.values[value];
      if (read.type.numel() == 0) return composit::cast(Expr(0), part.dtype());
      if (read.role == Role::constant && is_scalar(read.constant)) return literal_of(read.constant);
      return Expr::load(value, part.dtype(), part.arguments());
    });
  }

  // Drops dimensions of size 1, except of the program's own inputs and results.
  static void drop_unit_dimensions(Routine& function, bool is_region) {
    const auto fixed = [&](const Value& value) {
      return !is_region && value.role != Role::temporary && value.role != Role::constant;
    };
    std::vector<std::vector<bool>> keep;
    for (Value& value : function.values) {
      keep.emplace_back();
      composit::Dims sizes;
      for (int64_t size : value.type.sizes) {
        keep.back().push_back(fixed(value) || size != 1);
        if (keep.back().back()) sizes.push_back(size);
      }
      if (sizes.size() < value.type.rank()) value.model_sizes = value.type.sizes;
      value.type = composit::tensor_type(value.type.dtype, sizes);
    }
    const auto kept = [&](ValueId value, const std::vector<Expr>& at) {
      std::vector<Expr> indices;
      for (size_t i = 0; i < at.size(); ++i)
        if (keep[value][i]) indices.push_back(at[i]);
      return indices;
    };
    for (Step& step : function.steps) {
      auto* nest = std::get_if<Nest>(&step);
      if (nest == nullptr) continue;
      for (Store& store : nest->statement.stores) store.at = kept(loops::value_of(store), store.at);
      nest->statement = replaced(std::move(nest->statement), [&](const Expr& part) {
        if (part.kind() != ExprKind::load) return Expr();
        return Expr::load(part.number(), part.dtype(),
                          kept(loops::value_of(part), part.arguments()));
      });
    }
  }

  const LowerOptions& options_;
  Program program_;
  composit::FlatMap<composit::Hash, FunctionId> functions_;
  std::set<std::string> names_;
  MissingCode missing_;
};

// True if each term multiplies two different loaded numbers.
bool is_product_of_two(const Statement& statement) {
  const bool product = statement.body.size() == 1 && statement.body[0].is(composit::Function::mul);
  return product && statement.body[0][0].hash() != statement.body[0][1].hash() &&
         composit::has_loads(statement.body[0][0]) && composit::has_loads(statement.body[0][1]);
}

// True if an operation on several tensors consists of sums that are no products of two, as a layer
// norm. Elementwise operations and products stay inline to share loops with their neighbours.
bool is_normalization(const Node& node) {
  if (node.operands().size() < 2) return false;
  Graph::Parts parts;
  for (const LazyTensor& operand : node.operands())
    parts.inputs.push_back(composit::input(std::to_string(parts.inputs.size()), operand.type()));
  parts.outputs = {LazyTensor{composit::copy_of(node, parts.inputs).make_node(), 0}};
  const Graph whole = composit::decompose(Graph(std::move(parts)), {.open_bodies = true});
  bool sums = false;
  for (const NodePtr& part : whole.nodes()) {
    const auto loops = composit::loops_of(*part);
    if (!loops) continue;
    for (const Statement& statement : loops->statements) {
      if (is_product_of_two(statement)) return false;
      sums |= has_axes(statement, composit::AxisKind::reduction);
    }
  }
  return sums;
}

// Decomposes the graph, with repeated pieces as calls. Looks for repeats before it decomposes
// operations, so that a piece consists of whole ones.
Graph prepared(const Graph& graph, const LowerOptions& options) {
  Graph now = with_open_effects(composit::inline_calls(graph));
  now = composit::drop_no_ops(canonicalize(now, {.exact = true}),
                              {.detach = true, .keep_slices = options.keep_slices});
  now = composit::common_subexpressions(composit::join_slices(now));
  if (options.outline) {
    now = composit::outline_repeats(
        now, {.min_saved = has_modules(now) ? kLeastSaved : kLeastSavedWithoutModules,
              .whole_modules = true,
              .effects = true});
    now = composit::outline_nodes(now, is_normalization);
  }
  const auto stays = [&](const Node& node) {
    return options.called && options.called(node) != nullptr;
  };
  return composit::decompose(now, {.keep = stays, .open_bodies = true});
}

}  // namespace

Program lower(const Graph& graph, const LowerOptions& options) {
  Program program = Lowering(options).run(prepared(graph, options));
  Routine& main = program.functions.back();
  for (size_t i = 0; i < std::min(options.results.size(), main.results.size()); ++i)
    if (!options.results[i].empty()) main.values[main.results[i]].name = options.results[i];
  return program;
}

}  // namespace flashlight::loops
