#include "composit/interchange/pt2_read/known.h"

#include "composit/ir/error.h"
#include "composit/ops/draws.h"
#include "composit/ops/guards.h"
#include "composit/ops/operations.h"

namespace composit::pt2_read {

bool GraphReader::Known::draws(const Call& call) const {
  // A dropout that draws has an opened form, and a row only for where it draws nothing.
  if (!row->row.opened || sizes_follow_values(call)) return false;
  try {
    infer(*row, call);
  } catch (const UserError&) {
    return true;
  }
  return false;
}

bool GraphReader::Known::sizes_follow_values(const Call& call) const {
  if (row == nullptr) return false;
  try {
    infer(*row, call);
  } catch (const SizesDependOnValues&) {
    return true;
  } catch (const UserError&) {  // told where its types are asked for
  }
  return false;
}

Symbol operator_of(std::string_view target) {
  constexpr std::string_view kOperators = "torch.ops.", kDefault = ".default";
  const size_t dot = target.find('.', kOperators.size());
  if (!target.starts_with(kOperators) || dot == std::string_view::npos)
    throw UserError("it is no operator of ATen");
  const std::string_view domain = target.substr(kOperators.size(), dot - kOperators.size());
  std::string_view name = target.substr(dot + 1);
  if (name.ends_with(kDefault)) name.remove_suffix(kDefault.size());
  const Symbol op(std::string(domain) + "::" + std::string(name));
  // It has the same arguments by name, and the device is the one that there is.
  return op == Symbol("aten::to.device") ? Symbol("aten::to.dtype_layout") : op;
}

bool is_number_target(std::string_view target) {
  return target.starts_with("_operator.") || target.starts_with("torch.sym_") ||
         target.starts_with("math.");
}

std::optional<GraphReader::Known> known_operator(Symbol op) {
  if (const Operation* row = find_operation(op))
    return GraphReader::Known{&row->schema, row, static_cast<bool>(row->row.opened)};
  if (const Draw* draw = find_draw(op)) return GraphReader::Known{&draw->schema, nullptr, true};
  const NodePtr bare = NodeSpec(op).make_node();
  if (const Guard* guard = guard_of(*bare))
    return GraphReader::Known{&guard->schema, nullptr, true};
  return std::nullopt;
}

std::string reason_against(Symbol op) {
  const std::string_view base = op.base_name();
  if (base == "item" || base == "_local_scalar_dense")
    return "the program reads a number of a tensor and goes on with it; composit has such numbers "
           "as tensors";
  if (op.domain() == "higher_order") return "composit has no such higher-order operator";
  if (functional_twin(op)) return "it writes to its arguments; " + std::string(kAdvice);
  return "composit has no such operation; `flashlight ops` lists those it has, and "
         "`run_decompositions()` writes a program in fewer";
}

std::optional<Symbol> functional_twin(Symbol op) {
  const std::string& name = op.str();
  const size_t dot = name.find('.');
  const size_t end = dot == std::string::npos ? name.size() : dot;
  const std::string_view base = op.base_name();
  if (base.size() < 2 || name[end - 1] != '_' || base.starts_with("__")) return std::nullopt;
  return Symbol(name.substr(0, end - 1) + name.substr(end));
}

}  // namespace composit::pt2_read
