#include "composit/interchange/refusals.h"

#include "composit/ir/error.h"

namespace composit::interchange {

Origin origin_of(const Node& node, const Origin& around) {
  Origin origin = {node.annotation("scope"), node.annotation("source")};
  if (origin.scope.empty()) origin.scope = around.scope;
  if (origin.source.empty()) origin.source = around.source;
  return origin;
}

void Refusals::add(const Node& node, const Origin& around, const std::string& why) {
  add(node.op().str(), origin_of(node, around), why);
}

void Refusals::add(const std::string& op, const Origin& origin, const std::string& why) {
  std::string line = op;
  if (!origin.scope.empty()) line += " in " + std::string(origin.scope);
  if (!origin.source.empty()) line += " at " + std::string(origin.source);
  ++lines_[line + ": " + why];
}

void Refusals::expect_none() const {
  if (lines_.empty()) return;
  constexpr size_t kShown = 20;
  std::string text = title_;
  size_t shown = 0;
  for (const auto& [line, count] : lines_) {
    if (shown++ == kShown) {
      text += "\n  and " + std::to_string(lines_.size() - kShown) + " more";
      break;
    }
    text += "\n  " + line;
    if (count > 1) text += " (" + std::to_string(count) + " times)";
  }
  throw UserError(text);
}

}  // namespace composit::interchange
