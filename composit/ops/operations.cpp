#include "composit/ops/operations.h"

#include <memory>
#include <mutex>
#include <unordered_map>

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ops/functions.h"
#include "composit/ops/row_families.h"

namespace composit {
namespace {

struct Shared {
  std::mutex mutex;
  OperationTable table;
  std::unordered_map<Symbol, std::unique_ptr<Operation>> in_place;  // those asked for so far
};

Shared& shared() {
  static Shared* all = [] {
    auto* fresh = new Shared;  // outlives what static destructors may still call
    add_all_rows(fresh->table);
    return fresh;
  }();
  return *all;
}

// "aten::add.Tensor" of "aten::add_.Tensor"; nothing of a name that is not of an in-place operator.
std::optional<Symbol> functional_name(Symbol name) {
  const std::string_view base = name.base_name();
  if (!base.ends_with('_') || base.ends_with("__")) return std::nullopt;
  std::string text = name.str();
  text.erase(static_cast<size_t>(base.data() - name.str().data()) + base.size() - 1, 1);
  return Symbol(text);
}

// In a graph an in-place operator gives what it writes: the functional form in the dtype that is
// there, which promotion may make wider (float32 += float64; a comparison gives bool).
LazyTensors write_in_place(const RuleContext& context) {
  const Call& call = *context.call;
  std::vector<ArgumentValue> arguments;
  for (size_t i = 0; i < call.size(); ++i) arguments.push_back(call[i]);
  const LazyTensor& written = call[0].tensor();
  const Symbol functional = *functional_name(call.schema().name);
  const LazyTensor result = composit::apply(functional.str(), std::move(arguments))[0];
  if (result.sizes() != written.sizes())
    throw UserError("gives " + print(result.type()) + ", which " + print(written.type()) +
                    " cannot hold");
  return {to(result, written.dtype())};
}

const Operation* find_in_place(Shared& all, Symbol name) {
  const auto found = all.in_place.find(name);
  if (found != all.in_place.end()) return found->second.get();
  const auto functional = functional_name(name);
  const Operation* base = functional ? all.table.find(*functional) : nullptr;
  if (base == nullptr || base->schema.results.size() != 1 || base->schema.results[0].list ||
      base->schema.arguments.empty() || !base->schema.arguments[0].is_tensor() ||
      base->schema.arguments[0].list || base->schema.arguments[0].optional)
    return nullptr;
  Row row{.schema = base->row.schema,
          .decompose = Rule<LazyTensors>::of_any(&write_in_place),
          .nondifferentiable = base->row.nondifferentiable};
  Schema schema = base->schema;
  schema.name = name;
  auto operation = std::make_unique<Operation>(Operation{std::move(row), std::move(schema)});
  return all.in_place.emplace(name, std::move(operation)).first->second.get();
}

}  // namespace

const Operation* find_operation(Symbol name) {
  std::lock_guard lock(shared().mutex);
  return shared().table.find(name);
}

const Operation* operation_of(const Node& node) {
  Shared& all = shared();
  std::lock_guard lock(all.mutex);
  if (const Operation* found = all.table.find(node.op())) return found;
  if (node.find_run("views") != nullptr || node.find_run("throws") != nullptr) return nullptr;
  return find_in_place(all, node.op());
}

std::vector<const Operation*> all_operations() {
  std::lock_guard lock(shared().mutex);
  return shared().table.all();
}

void add_operation(Row row) {
  std::lock_guard lock(shared().mutex);
  shared().table.add(std::move(row));
}

const Operation& operation_named(std::string_view name) {
  if (const Operation* found = find_operation(Symbol(name))) return *found;
  throw UserError("composit has no operation '" + std::string(name) +
                  "'; `flashlight ops` lists those it has, add_operation adds yours");
}

LazyTensors apply(std::string_view name, std::vector<ArgumentValue> arguments) {
  const Operation& operation = operation_named(name);
  const Call call(operation.schema, std::move(arguments));
  const NodePtr node = call.node(infer(operation, call));
  LazyTensors results;
  for (uint32_t i = 0; i < node->outputs().size(); ++i)
    results.emplace_back(is_defined(node->outputs()[i]) ? LazyTensor{node, i} : LazyTensor());
  return results;
}

}  // namespace composit
