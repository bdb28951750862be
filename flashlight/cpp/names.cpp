#include "flashlight/cpp/names.h"

#include <algorithm>
#include <cctype>

namespace flashlight::cpp {

std::string name_of(const composit::Node& node) {
  if (const composit::Attribute* name = node.find_attribute("name"))
    if (const auto* text = name->get_if<std::string>()) return *text;
  std::string_view name = node.op().base_name();
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  return std::string(name);
}

bool is_number(std::string_view name) {
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace flashlight::cpp
