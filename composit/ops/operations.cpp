#include "composit/ops/operations.h"

#include <mutex>

#include "composit/ir/error.h"
#include "composit/ops/row_families.h"

namespace composit {
namespace {

struct Shared {
  std::mutex mutex;
  OperationTable table;
};

Shared& shared() {
  static Shared* all = [] {
    auto* fresh = new Shared;  // outlives what static destructors may still call
    add_all_rows(fresh->table);
    return fresh;
  }();
  return *all;
}

}  // namespace

const Operation* find_operation(Symbol name) {
  std::lock_guard lock(shared().mutex);
  return shared().table.find(name);
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

Tensors apply(std::string_view name, std::vector<ArgumentValue> arguments) {
  const Operation& operation = operation_named(name);
  const Call call(operation.schema, std::move(arguments));
  const NodePtr node = call.node(infer(operation, call));
  Tensors results;
  for (uint32_t i = 0; i < node->outputs().size(); ++i)
    results.emplace_back(is_defined(node->outputs()[i]) ? Tensor(LazyTensor{node, i}) : Tensor());
  return results;
}

}  // namespace composit
