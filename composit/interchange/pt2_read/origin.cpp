#include "composit/interchange/pt2_read/origin.h"

#include <string_view>

namespace composit::pt2_read {
namespace {

// The last of "key,path,type;key,path,type": the module that the node stands in. Paths may have
// commas, keys and types have none.
std::string scope_of(std::string_view stack) {
  const size_t last = stack.rfind(';');
  if (last != std::string_view::npos) stack.remove_prefix(last + 1);
  const size_t begin = stack.find(','), end = stack.rfind(',');
  if (begin == std::string_view::npos || begin == end) return "";
  std::string_view path = stack.substr(begin + 1, end - begin - 1);
  constexpr std::string_view kSelf = "L['self'].";
  if (path.starts_with(kSelf)) path.remove_prefix(kSelf.size());
  return std::string(path);
}

// `File "net.py", line 12, in forward` as "net.py:12 in forward"; empty for other lines.
std::string place_in(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kIn = ", in ";
  const size_t begin = line.find(kFile);
  const size_t end = line.find(kLine, begin == std::string_view::npos ? 0 : begin);
  if (begin == std::string_view::npos || end == std::string_view::npos) return "";
  const size_t first = begin + kFile.size();
  const std::string_view rest = line.substr(end + kLine.size());
  const size_t in = rest.find(kIn);
  std::string place =
      std::string(line.substr(first, end - first)) + ":" + std::string(rest.substr(0, in));
  if (in != std::string_view::npos) place += " in " + std::string(rest.substr(in + kIn.size()));
  return place;
}

// The innermost frame that is no part of torch; where all are, the innermost.
std::string source_of(std::string_view trace) {
  std::string innermost, own;
  while (!trace.empty()) {
    const size_t end = trace.find('\n');
    if (std::string place = place_in(trace.substr(0, end)); !place.empty()) {
      if (place.find("/site-packages/torch/") == std::string::npos) own = place;
      innermost = std::move(place);
    }
    trace.remove_prefix(end == std::string_view::npos ? trace.size() : end + 1);
  }
  return own.empty() ? innermost : own;
}

// Text, or nothing: what a node says of itself decides nothing.
std::string_view text_in(const Json& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() || !found->is_string()
             ? std::string_view()
             : std::string_view(found->get_ref<const std::string&>());
}

}  // namespace

NodeOrigin origin_of(const Json& metadata) {
  if (!metadata.is_object()) return {};
  return {scope_of(text_in(metadata, "nn_module_stack")),
          source_of(text_in(metadata, "stack_trace"))};
}

}  // namespace composit::pt2_read
