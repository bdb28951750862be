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

}  // namespace

// "L__self__,,TYPE;L__self___a,a,TYPE;L__self___a_b,a.b,TYPE" of "a.b". The types of modules are
// not known, and only shown.
std::string Metadata::module_stack(std::string_view scope) {
  constexpr const char* kType = ",torch.nn.modules.module.Module";
  std::string stack = std::string("L__self__,") + kType;
  size_t depth = 0;
  for (size_t end = 0; !scope.empty() && end != std::string_view::npos; ++depth) {
    end = scope.find('.', end == 0 ? 0 : end + 1);
    const std::string path(scope.substr(0, end));
    if (depth == entered_.size() || entered_[depth].first != path) {
      entered_.resize(depth);
      std::string key = "L__self___" + path;
      std::replace(key.begin(), key.end(), '.', '_');
      if (const size_t before = calls_[path]++; before > 0) key += "@" + std::to_string(before);
      entered_.emplace_back(path, key);
    }
    stack += ";" + entered_[depth].second + "," + path + kType;
  }
  entered_.resize(depth);
  return stack;
}

Json Metadata::next(const Origin& origin) {
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
