#include "composit/op/operation.h"

#include <algorithm>
#include <utility>

#include "composit/op/promotion.h"

namespace composit {
namespace {

[[noreturn]] void refuse(const Schema& schema, const std::string& what) {
  throw UserError("[add_operation] " + schema.name.str() + ": " + what);
}

void check(const Row& row, const Schema& schema) {
  row.scalar.check(schema);
  row.loops.check(schema);
  row.decompose.check(schema);
  row.infer.check(schema);
  row.native.check(schema);
  row.runtime_options.check(schema);
  row.opened.check(schema);
  row.vjp.check(schema);
  const int forms = int{bool(row.scalar)} + int{bool(row.loops)} + int{bool(row.decompose)} +
                    int{bool(row.native)};
  if (forms != 1)
    refuse(schema, "expected one form of scalar, loops, decompose and native, received " +
                       std::to_string(forms));
  if (bool(row.native) != bool(row.infer))
    refuse(schema, "expected `infer` with `native`, and with no other form");
}

void add(Promotion& promotion, const LazyTensor& tensor) {
  if (!tensor.defined()) return;
  if (is_wrapped_number(tensor))
    promotion.add_number(tensor.dtype());
  else
    promotion.add(tensor.type());
}

DType common_dtype(const Row& row, const Call& call) {
  Promotion promotion;
  const std::vector<bool> promoted = row.scalar.promoted();
  for (size_t i = 0; i < promoted.size(); ++i) {
    if (!promoted[i]) continue;
    const ArgumentValue& value = call[i];
    if (value.is_tensor())
      add(promotion, value.tensor());
    else if (value.is_list())
      for (const LazyTensor& item : value.tensors()) add(promotion, item);
    else if (!value.data().is_none())
      promotion.add_number(Expr(value.data().as<Scalar>()).dtype());
  }
  const DType common = promotion.result();
  return row.promote == Promote::to_float ? to_float(common) : common;
}

// The scalar form at `elements`, one per place of Call::tensors().
struct Pointwise {
  Expr result;
  bool is_wide;  // computed in float32 and rounded
};

Pointwise pointwise(const Row& row, const Call& call, const std::vector<Expr>& elements) {
  bool rounds = false;
  RuleContext context{.call = &call,
                      .common = common_dtype(row, call),
                      .rounds = row.wide_numbers ? &rounds : nullptr,
                      .elements = &elements};
  Expr result = with_dtype(row.scalar(context), context.common);
  if (!rounds) return {std::move(result), false};
  context.half = std::exchange(context.common, DType::float32);
  return {cast(row.scalar(context), context.half), true};
}

// The elements of the call's tensors, which broadcast, at axes of `nest`.
std::vector<Expr> elements_in(Nest& nest, const Call& call) {
  std::vector<Ints> sizes;
  for (const LazyTensor& tensor : call.tensors())
    if (tensor.defined()) sizes.push_back(tensor.sizes());
  const Index index = nest.parallel(broadcast_sizes(sizes));
  std::vector<Expr> elements;
  for (size_t place = 0; place < call.tensors().size(); ++place) {
    const LazyTensor& tensor = call.tensors()[place];
    elements.push_back(tensor.defined() ? In(call.operand(place), tensor.type()).broadcast(index)
                                        : Expr());
  }
  return elements;
}

Loops pointwise_loops(const Row& row, const Call& call) {
  Nest nest;
  const std::vector<Expr> elements = elements_in(nest, call);
  return nest.store(pointwise(row, call, elements).result).loops();
}

}  // namespace

std::string within(const Schema& schema, std::string_view message) {
  const std::string name = schema.name.str();
  std::string text(message);
  if (text.starts_with("[")) {
    const size_t end = text.find("] ");
    if (end != std::string::npos) {
      const std::string inner = text.substr(1, end - 1);
      if (inner == name) return text;
      text = text.substr(end + 2);
      if (inner.find("::") != std::string::npos) text = "in " + inner + ": " + text;
    }
  }
  return "[" + name + "] " + text;
}

void OperationTable::add(Row row) {
  Schema schema = parse_schema(row.schema);
  check(row, schema);
  const std::string name = schema.name.str();
  std::vector<std::string_view> names = {name};
  names.insert(names.end(), row.also.begin(), row.also.end());
  for (std::string_view one : names)
    if (names_.contains(one)) refuse(schema, "there is a row for " + std::string(one) + " already");
  auto operation = std::make_unique<Operation>(Operation{std::move(row), std::move(schema)});
  for (std::string_view one : names) names_.emplace(one, operation.get());
  operations_.emplace(name, std::move(operation));
}

const Operation* OperationTable::find(Symbol name) const {
  const auto found = names_.find(name.str());
  return found == names_.end() ? nullptr : found->second;
}

std::vector<const Operation*> OperationTable::all() const {
  std::vector<const Operation*> all;
  for (const auto& [name, operation] : operations_) all.push_back(operation.get());
  return all;
}

bool computes_wide(const Operation& operation, const Call& call) {
  if (!operation.row.wide_numbers) return false;
  Nest nest;
  return pointwise(operation.row, call, elements_in(nest, call)).is_wide;
}

std::optional<Loops> loops_of(const Operation& operation, const Call& call) {
  const Row& row = operation.row;
  if (!row.scalar && !row.loops) return std::nullopt;
  return in_operation(operation.schema, [&] {
    Loops loops = row.scalar ? pointwise_loops(row, call) : row.loops({.call = &call});
    loops.operands = call.operand_types();
    return loops;
  });
}

std::vector<Type> infer(const Operation& operation, const Call& call) {
  if (auto loops = loops_of(operation, call)) return std::move(loops->results);
  if (operation.row.infer)
    return in_operation(operation.schema, [&] { return operation.row.infer({.call = &call}); });
  std::vector<Type> types;
  for (const LazyTensor& result : decompose(operation, call))
    types.push_back(result.defined() ? tensor_type(result.dtype(), result.type().sizes)
                                     : undefined_type());
  return types;
}

LazyTensors decompose(const Operation& operation, const Call& call) {
  return in_operation(operation.schema, [&] { return operation.row.decompose({.call = &call}); });
}

}  // namespace composit
