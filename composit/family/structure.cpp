#include "composit/family/structure.h"

#include "composit/ir/integers.h"

namespace composit {
namespace {

void add_form(Hasher& hasher, const Attribute& attribute) {
  hasher.add(static_cast<uint64_t>(attribute.kind()));
  if (const auto* region = attribute.get_if<Region>(); region != nullptr && *region) {
    for (const Hash& hash : structure_of(**region)) hasher.add(hash);
    return;
  }
  const bool is_number =
      attribute.kind() == AttributeKind::float_ || attribute.kind() == AttributeKind::scalar;
  if (is_number) return;
  if (real_number_of(attribute)) {  // a constant that was written as a number
    hasher.add(uint64_t{attribute.get_if<Array>() != nullptr});
    return;
  }
  const std::vector<int64_t> none(integers_of(attribute).size(), 0);
  with_integers(attribute, none).add_to(hasher);
}

// Of all of a node but its operands.
void add_form(Hasher& hasher, const Node& node) {
  hasher.add(node.op().str());
  for (const Argument& argument : node.arguments()) {
    hasher.add(static_cast<uint64_t>(argument.kind));
    hasher.add(uint64_t{argument.size});
  }
  for (const Attributes* attributes : {&node.attributes(), &node.execution()})
    for (const NamedAttribute& attribute : *attributes) {
      hasher.add(attribute.name.str());
      add_form(hasher, attribute.value);
    }
  for (const Type& type : node.outputs()) {
    hasher.add(static_cast<uint64_t>(type.dtype));
    hasher.add(uint64_t{type.rank()});
  }
}

class Structure {
 public:
  explicit Structure(const Graph& graph) : graph_(graph) {}

  std::vector<Hash> hashes() {
    std::vector<Hash> hashes;
    for (const NodePtr& node : graph_.nodes()) {
      if (is_input(*node)) continue;
      hashes.push_back(hash_of(*node));
      places_.insert(node.get(), hashes.size());
    }
    hashes.push_back(hash_of_ends());
    return hashes;
  }

 private:
  void add(Hasher& hasher, const LazyTensor& value) const {
    hasher.add(uint64_t{value.defined()});
    if (!value) return;
    if (is_input(*value.node)) {
      hasher.add(input_name(*value.node));
    } else {
      hasher.add(uint64_t{*places_.find(value.node.get())});
      hasher.add(uint64_t{value.index});
    }
  }

  Hash hash_of(const Node& node) const {
    Hasher hasher;
    add_form(hasher, node);
    for (const LazyTensor& operand : node.operands()) add(hasher, operand);
    return hasher.finish();
  }

  Hash hash_of_ends() const {
    Hasher hasher;
    hasher.add(uint64_t{graph_.outputs().size()});
    for (const LazyTensor& output : graph_.outputs()) add(hasher, output);
    for (const auto& [target, value] : graph_.mutations()) {
      add(hasher, target);
      add(hasher, value);
    }
    return hasher.finish();
  }

  const Graph& graph_;
  FlatMap<const Node*, size_t> places_;
};

}  // namespace

Hash form_of(const Node& node) {
  Hasher hasher;
  add_form(hasher, node);
  return hasher.finish();
}

std::vector<Hash> structure_of(const Graph& graph) { return Structure(graph).hashes(); }

}  // namespace composit
