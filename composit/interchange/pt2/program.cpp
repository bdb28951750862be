#include "composit/interchange/pt2/program.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "composit/ops/draws.h"
#include "composit/ops/guards.h"
#include "composit/ops/operations.h"

namespace composit::pt2 {

Program::Program(const std::vector<std::string>& schemas, const Symbols* symbols,
                 const SizedCases* cases)
    : symbols_(symbols), cases_(cases) {
  for (const std::string& text : schemas) {
    if (text.empty()) continue;  // of an operator that LibTorch does not know
    Schema schema = parse_schema(text);
    const std::string name = schema.name.str();
    schemas_.emplace(name, std::move(schema));
  }
}

const Schema* Program::schema_of(Symbol op) {
  if (op.domain() == "composit") return nullptr;
  if (const auto known = schemas_.find(op.str()); known != schemas_.end()) return &known->second;
  // Nodes of derivatives and decompositions. Rows of users under names of their own are no ATen.
  if (op.domain() != "aten") return nullptr;
  if (const Operation* row = find_operation(op)) return &row->schema;
  if (const Draw* draw = find_draw(op)) return &draw->schema;
  const Guard* guard = guard_of(*NodeSpec(op).make_node());
  return guard != nullptr ? &guard->schema : nullptr;
}

const std::string& Program::constant(const Array& value) {
  const auto known = std::find_if(constants_.begin(), constants_.end(), [&](const Constant& one) {
    return one.value.type() == value.type() && one.value.content_hash() == value.content_hash();
  });
  if (known != constants_.end()) return known->input;
  const std::string name = "constant_" + std::to_string(constants_.size());
  constants_.push_back({name, names_.identifier("c_", name), value});
  return constants_.back().input;
}

}  // namespace composit::pt2
