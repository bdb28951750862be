#include "composit/ir/scope.h"

namespace composit {

bool is_within(std::string_view path, std::string_view scope) {
  return path.starts_with(scope) && (path.size() == scope.size() || path[scope.size()] == '.');
}

std::string common_scope(std::string_view a, std::string_view b) {
  while (!a.empty() && !is_within(b, a)) {
    const size_t dot = a.find_last_of('.');
    a = a.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return std::string(a);
}

std::string unused_name(const std::string& base, std::set<std::string>& taken) {
  std::string name = base;
  for (int number = 2; !taken.insert(name).second; ++number)
    name = base + "_" + std::to_string(number);
  return name;
}

}  // namespace composit
