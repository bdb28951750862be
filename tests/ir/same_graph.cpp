// first_mismatch of random_graph.h.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "composit/ir/overload.h"
#include "tests/ir/random_graph.h"

namespace composit::test {
namespace {

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

bool same_attribute(const Attribute& a, const Attribute& b);

bool same_scalar(const Scalar& a, const Scalar& b) {
  if (a.wrapped != b.wrapped || a.value.index() != b.value.index()) return false;
  return std::visit(
      [&](const auto& value) {
        return same_bits(value, std::get<std::decay_t<decltype(value)>>(b.value));
      },
      a.value);
}

bool same_list(const List& a, const List& b) {
  return a.element == b.element &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_attribute);
}

bool same_array(const Array& a, const Array& b) {
  if (a.type() != b.type()) return false;
  const Array x = a.contiguous(), y = b.contiguous();
  return std::equal(x.data(), x.data() + x.type().nbytes(), y.data());
}

bool same_attribute(const Attribute& a, const Attribute& b) {
  if (a.kind() != b.kind()) return false;
  return std::visit(
      Overload{[&](double value) { return same_bits(value, b.as<double>()); },
               [&](std::complex<double> value) {
                 return same_bits(value, b.as<std::complex<double>>());
               },
               [&](const Scalar& value) { return same_scalar(value, b.as<Scalar>()); },
               [&](const List& value) { return same_list(value, b.as<List>()); },
               [&](const Array& value) { return same_array(value, b.as<Array>()); },
               [&](const Region& value) { return first_mismatch(*value, *b.as<Region>()).empty(); },
               [&](const auto& value) { return value == b.as<std::decay_t<decltype(value)>>(); }},
      a.value());
}

bool same_attributes(const Attributes& a, const Attributes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.name == y.name && same_attribute(x.value, y.value);
  });
}

// The needed nodes, in the order of the text: inputs first.
std::vector<NodePtr> in_text_order(const Graph& graph) {
  std::vector<NodePtr> nodes;
  for (const LazyTensor& input : graph.inputs()) nodes.push_back(input.node);
  for (const NodePtr& node : graph.nodes())
    if (!is_input(*node)) nodes.push_back(node);
  return nodes;
}

}  // namespace

std::string first_mismatch(const Graph& a, const Graph& b) {
  const auto nodes_a = in_text_order(a), nodes_b = in_text_order(b);
  if (nodes_a.size() != nodes_b.size()) return "number of nodes";
  std::unordered_map<const Node*, const Node*> partner;
  const auto same = [&](const LazyTensor& x, const LazyTensor& y) {
    if (!x || !y) return !x && !y;
    return x.index == y.index && partner.at(x.node.get()) == y.node.get();
  };
  for (size_t i = 0; i < nodes_a.size(); ++i) {
    const Node &x = *nodes_a[i], &y = *nodes_b[i];
    const std::string where = " of node " + std::to_string(i) + ", " + x.op().str();
    partner[&x] = &y;
    if (x.op() != y.op()) return "operation" + where;
    if (x.arguments() != y.arguments()) return "arguments" + where;
    if (!std::equal(x.operands().begin(), x.operands().end(), y.operands().begin(),
                    y.operands().end(), same))
      return "operands" + where;
    if (!same_attributes(x.attributes(), y.attributes())) return "attributes" + where;
    if (!same_attributes(x.execution(), y.execution())) return "execution" + where;
    if (x.outputs() != y.outputs()) return "types" + where;
    if (x.annotations() != y.annotations()) return "annotations" + where;
  }
  const auto same_all = [&](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
  };
  if (!same_all(a.inputs(), b.inputs())) return "inputs";
  if (!same_all(a.outputs(), b.outputs())) return "outputs";
  const auto same_mutation = [&](const Mutation& x, const Mutation& y) {
    return same(x.target, y.target) && same(x.value, y.value);
  };
  if (!std::equal(a.mutations().begin(), a.mutations().end(), b.mutations().begin(),
                  b.mutations().end(), same_mutation))
    return "mutations";
  const auto same_node = [&](const NodePtr& x, const NodePtr& y) {
    return partner[x.get()] == y.get();
  };
  if (!std::equal(a.effects().begin(), a.effects().end(), b.effects().begin(), b.effects().end(),
                  same_node))
    return "effects";
  return {};
}

}  // namespace composit::test
