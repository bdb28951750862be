#include "composit/family/local_hash.h"

namespace composit {

Hash local_hash(const Node& node) {
  static const Symbol effect("effect");
  Hasher hasher;
  hasher.add(std::string_view(node.op().str()));
  for (const Argument& argument : node.arguments()) {
    hasher.add(static_cast<uint64_t>(argument.kind));
    hasher.add(uint64_t{argument.size});
  }
  for (const Attributes* attributes : {&node.attributes(), &node.execution()})
    for (const NamedAttribute& attribute : *attributes) {
      if (attribute.name == effect) continue;
      hasher.add(std::string_view(attribute.name.str()));
      attribute.value.add_to(hasher);
    }
  for (const Type& type : node.outputs()) type.add_to(hasher);
  return hasher.finish();
}

bool views_memory(const Node& node) {
  const std::string& op = node.op().str();
  return op.starts_with("aten::as_strided") || op.starts_with("composit::storage") ||
         node.find_run("views") != nullptr;
}

}  // namespace composit
