#include "composit/passes/fold_constants.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "composit/ir/transform.h"
#include "composit/op/promotion.h"
#include "composit/passes/definition.h"

namespace composit {
namespace {

bool is_integral(DType dtype) { return category(dtype) < DTypeCategory::floating; }

// True if every kernel must give the same bits for the same arguments.
bool is_exact(const Expr& x) {
  if (x.kind() != ExprKind::call || is_integral(x.dtype())) return true;
  switch (x.function()) {
    case Function::abs:
      return !is_complex(x[0].dtype());
    case Function::neg:
    case Function::min:
    case Function::max:
    case Function::select:
    case Function::cast:
    case Function::real:
    case Function::imag:
    case Function::conj:
    case Function::complex:
      return true;
    default:
      return false;
  }
}

bool is_exact(const Loops& loops) {
  for (const Statement& statement : loops.statements) {
    std::vector<Expr> roots = {statement.domain};
    for (const auto* part : {&statement.init, &statement.body, &statement.combine})
      roots.insert(roots.end(), part->begin(), part->end());
    for (const Store& store : statement.stores) {
      if (store.add && !is_integral(loops.results.at(store.result).dtype)) return false;
      roots.insert(roots.end(), store.at.begin(), store.at.end());
      roots.push_back(store.value);
    }
    std::erase_if(roots, [](const Expr& root) { return !root.defined(); });
    for (const Expr& part : parts_of(roots))
      if (!is_exact(part)) return false;
  }
  return true;
}

bool is_exact(const Node& node) {
  if (is_input(node) || node.op() == ops::kConstant) return true;
  if (const auto parts = decomposition(node))
    return std::all_of(parts->nodes().begin(), parts->nodes().end(),
                       [](const NodePtr& part) { return is_exact(*part); });
  const auto loops = loops_of(node);
  return loops && is_exact(*loops);
}

// False for a node of a legal graph whose types are others than its row gives.
bool has_types_of_row(const Node& node) {
  const Operation& row = *row_for(node);
  const std::vector<Type> types = infer(row, call_of(node, row.schema));
  return std::equal(
      types.begin(), types.end(), node.outputs().begin(), node.outputs().end(),
      [](const Type& a, const Type& b) { return a.dtype == b.dtype && a.sizes == b.sizes; });
}

class Folder {
 public:
  Folder(const Graph& graph, const FoldOptions& options) : graph_(graph), options_(options) {
    for (const NodePtr& node : graph.nodes())
      if (is_constant(*node) || folds(*node)) known_.insert(node.get(), {});
  }

  Graph run() {
    const LazyTensors wanted = outermost();
    if (wanted.empty()) return graph_;
    const Backend& backend = options_.backend != nullptr ? *options_.backend : reference();
    const std::vector<Array> arrays = evaluate(wanted, {}, backend);
    FlatMap<const Node*, LazyTensors> constants;
    for (size_t i = 0; i < wanted.size(); ++i)
      constants[wanted[i].node.get()].push_back(constant_for(*wanted[i].node, arrays[i]));
    return rebuild(graph_, [&](const Node& node, const LazyTensors&) {
      std::optional<Replacement> replacement;
      if (const auto* found = constants.find(&node)) replacement = Replacement{.outputs = *found};
      return replacement;
    });
  }

 private:
  static bool is_constant(const Node& node) {
    return node.op() == ops::kConstant && node.attribute("value").get_if<Array>() != nullptr;
  }
  bool is_known(const LazyTensor& tensor) const {
    return !tensor || known_.contains(tensor.node.get());
  }
  bool folds(const Node& node) const {
    try {
      return can_fold(node);
    } catch (const UserError&) {
      return false;  // the row refuses the node, which evaluation will tell
    }
  }
  bool can_fold(const Node& node) const {
    const auto fits = [&](const Type& type) {
      return is_defined(type) && is_contiguous(type) && type.device == Device() &&
             type.nbytes() <= options_.max_bytes;
    };
    if (options_.may_fold && !options_.may_fold(node)) return false;
    return is_replaceable(node) && row_for(node) != nullptr &&
           std::all_of(node.operands().begin(), node.operands().end(),
                       [&](const LazyTensor& operand) { return is_known(operand); }) &&
           std::all_of(node.outputs().begin(), node.outputs().end(), fits) &&
           has_types_of_row(node) && (!options_.exact || is_exact(node));
  }

  // All outputs of the nodes that become constants: what others use, and what has operands.
  LazyTensors outermost() const {
    FlatMap<const Node*, std::monostate> used;
    const auto use = [&](const LazyTensor& tensor) {
      if (tensor) used.insert(tensor.node.get(), {});
    };
    for (const NodePtr& node : graph_.nodes())
      if (!known_.contains(node.get()))
        for (const LazyTensor& operand : node->operands()) use(operand);
    for (const LazyTensor& output : graph_.outputs()) use(output);
    for (const Mutation& mutation : graph_.mutations()) use(mutation.value);
    LazyTensors outermost;
    for (const NodePtr& node : graph_.nodes()) {
      if (!known_.contains(node.get()) || !used.contains(node.get()) || node->operands().empty())
        continue;
      const auto outputs = replace_by(node).outputs;
      outermost.insert(outermost.end(), outputs.begin(), outputs.end());
    }
    return outermost;
  }

  static LazyTensor constant_for(const Node& node, const Array& array) {
    const LazyTensor made = constant(array);
    NodeSpec spec = copy_of(*made.node, {});
    spec.place = node.place();
    spec.annotations = node.annotations();
    std::erase_if(spec.annotations, [](const Annotation& one) { return one.operand >= 0; });
    return std::move(spec).make();
  }

  const Graph& graph_;
  const FoldOptions& options_;
  FlatMap<const Node*, std::monostate> known_;
};

}  // namespace

Graph fold_constants(const Graph& graph, const FoldOptions& options) {
  const Graph inner =
      rebuild_regions(graph, [&](const Graph& region) { return fold_constants(region, options); });
  return Folder(inner, options).run();
}

}  // namespace composit
