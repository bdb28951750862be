#include "composit/interchange/pt2/metadata.h"

#include <algorithm>

namespace composit::pt2 {
namespace {

// "net.cpp:12 in Net::forward" as `File "net.cpp", line 12, in Net::forward`; other text as it is.
std::string stack_trace(std::string_view source) {
  constexpr std::string_view kIn = " in ";
  const size_t in = source.find(kIn);
  const std::string_view place = source.substr(0, in);
  const size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || !std::all_of(place.begin() + colon + 1, place.end(),
                                                      [](char c) { return '0' <= c && c <= '9'; }))
    return std::string(source);
  std::string text = "  File \"" + std::string(place.substr(0, colon)) + "\", line " +
                     std::string(place.substr(colon + 1));
  if (in != std::string_view::npos) text += ", in " + std::string(source.substr(in + kIn.size()));
  return text;
}

// "L__self__,,TYPE;L__self___a,a,TYPE;L__self___a_b,a.b,TYPE" of "a.b". The types of modules are
// not known, and only shown.
std::string module_stack(std::string_view scope) {
  constexpr std::string_view kType = ",torch.nn.modules.module.Module";
  std::string stack = "L__self__,";
  stack += kType;
  for (size_t end = 0; !scope.empty() && end != std::string_view::npos;) {
    end = scope.find('.', end == 0 ? 0 : end + 1);
    std::string path(scope.substr(0, end)), key = path;
    std::replace(key.begin(), key.end(), '.', '_');
    stack += ";L__self___" + key + "," + path + std::string(kType);
  }
  return stack;
}

}  // namespace

Origin origin_of(const Node& node, const Origin& around) {
  Origin origin = {node.annotation("scope"), node.annotation("source")};
  if (origin.scope.empty()) origin.scope = around.scope;
  if (origin.source.empty()) origin.source = around.source;
  return origin;
}

Json metadata_of(const Origin& origin) {
  Json metadata = {{"nn_module_stack", module_stack(origin.scope)}};
  if (!origin.source.empty()) metadata["stack_trace"] = stack_trace(origin.source);
  return metadata;
}

std::string target_of(Symbol op) {
  std::string target = op.str();
  target.replace(target.find("::"), 2, ".");
  const bool overloaded = op.base_name().size() + op.domain().size() + 2 < op.str().size();
  return "torch.ops." + target + (overloaded ? "" : ".default");
}

}  // namespace composit::pt2
