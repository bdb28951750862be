#include "tracer/module_scopes.h"

#include "tracer/liveness.h"

namespace flashlight::tracer {
namespace {

std::string parent(const std::string& path) {
  const auto dot = path.rfind('.');
  return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

// The longest common path of two module paths.
std::string common(const std::string& a, const std::string& b) {
  size_t end = 0;
  for (size_t i = 0; i <= std::min(a.size(), b.size()); ++i) {
    const bool a_ends = i == a.size() || a[i] == '.', b_ends = i == b.size() || b[i] == '.';
    if (a_ends && b_ends) end = i;
    if (i == a.size() || i == b.size() || a[i] != b[i]) break;
  }
  return a.substr(0, end);
}

}  // namespace

ModuleScopes::ModuleScopes(const Recording& recording)
    : recording_(recording), origin_(recording.values.size(), -1) {
  for (const RecordedInput& input : recording.inputs) {
    if (input.kind == composit::InputKind::user_input || input.value == kNone) continue;
    origin_[input.value] = static_cast<int>(prefixes_.size());
    prefixes_.push_back(parent(input.name));
  }
}

std::string ModuleScopes::of_operands(uint32_t operands, uint32_t operand_count) {
  bool found = false;
  std::string scope;
  for_each_operand(recording_, operands, operand_count, [&](ValueId value) {
    if (value == kNone || origin_[value] < 0) return;
    const std::string& prefix = prefixes_[static_cast<size_t>(origin_[value])];
    scope = found ? common(scope, prefix) : prefix;
    found = true;
  });
  if (!found) return parent(last_);
  last_ = scope;
  return scope;
}

}  // namespace flashlight::tracer
