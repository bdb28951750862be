// Writes the assumptions of a capture as sentences.
#include <c10/util/StringUtil.h>

#include "flashlight/capture_state.h"
#include "tracer/convert.h"

namespace flashlight {
namespace {

using composit::Attribute;
using composit::InputKind;
using composit::Node;

std::string describe(const composit::Type& type) {
  std::string text = std::string(composit::name(type.dtype)) + "[";
  for (size_t i = 0; i < type.rank(); ++i) text += (i ? ", " : "") + std::to_string(type.sizes[i]);
  text += "]";
  if (!is_contiguous(type) && type.layout == composit::Layout::strided)
    text += " with strides " + c10::str(type.strides);
  return text;
}

bool is_random(const Node& node) {
  return node.op() == composit::Symbol("composit::set_generator_state");
}
bool restores(const Node& node) {
  return node.op() == composit::Symbol("composit::restore_generator_state");
}
bool reads_state(const Node& node) {
  return node.op() == composit::Symbol("composit::generator_state");
}
std::string role(const Node& node) {
  return "random generator '" + node.attribute("generator").as<composit::Generator>().role + "'";
}

class Assumptions {
 public:
  std::vector<std::string> lines;

  void add_trust(const CaptureBase::State& state) {
    lines.emplace_back(name(state.trust));
    lines.insert(lines.end(), state.notes.begin(), state.notes.end());
    std::vector<const Node*> nodes;
    for_each_node(state.replayed.graph, [&](const Node& node) { nodes.push_back(&node); });
    for (const ChangingPlace& place : state.changing)
      if (!place.reads.empty())
        lines.push_back("'" + place.key + "' of " + tracer::place_of(*nodes.at(place.node)) +
                        " follows from what the program reads: " + print(place.formula));
    for (const ChangingPlace& place : state.changing)
      if (place.reads.empty())
        lines.push_back("'" + place.key + "' of " + tracer::place_of(*nodes.at(place.node)) +
                        " follows the calls: " + print(place.formula) +
                        ", next for calls = " + std::to_string(state.next_call));
  }

  void add_inputs(const composit::Graph& graph) {
    for (const composit::LazyTensor& input : graph.inputs()) {
      const std::string& name = input_name(*input.node);
      if (input_kind(*input.node) == InputKind::user_input)
        lines.push_back("argument '" + name + "' is " + describe(input.type()));
      if (name.rfind("parameter_", 0) == 0 || name.rfind("buffer_", 0) == 0)
        lines.push_back("'" + name + "', " + describe(input.type()) +
                        ", is a tensor from outside that no module names; give its module in "
                        "TraceSettings::named");
    }
    for (const composit::Mutation& mutation : graph.mutations())
      lines.push_back("writes " + std::string(name(input_kind(*mutation.target.node))) + " '" +
                      input_name(*mutation.target.node) + "'");
  }

  void add(const Node& node) {
    const std::string place = tracer::place_of(node);
    if (node.op() == composit::ops::kConstant)
      lines.push_back("constant '" + std::string(node.annotation("name")) + "', " +
                      describe(node.outputs()[0]) + ", is baked in" + read_at(node));
    else if (const Attribute* expected = node.find_run("expected"))
      lines.push_back("guard: " + place + " gives " + numbers(*expected));
    else if (node.find_run("throws"))
      lines.push_back("guard: " + place + " throws");
    else if (is_random(node))
      lines.push_back("sets the " + role(node) + " to the state it had: the program seeded it");
    else if (restores(node))
      lines.push_back("sets the " + role(node) + " to a state that the run reads");
    else if (reads_state(node))
      lines.push_back("reads the state of the " + role(node));
    else if (node.effect() >= 0 && !node.find_run("body"))
      lines.push_back("keeps its place: " + place);
  }

 private:
  static std::string read_at(const Node& constant) {
    const std::string_view line = constant.annotation("source");
    return line.empty() ? "" : "; read first at " + std::string(line);
  }
  static std::string numbers(const Attribute& expected) {
    std::string text;
    for (const Attribute& number : expected.as<composit::List>().items)
      text += (text.empty() ? "" : ", ") + c10::str(tracer::to_c10(number.as<composit::Scalar>()));
    return text;
  }
};

}  // namespace

std::vector<std::string> CaptureBase::assumptions() const {
  Assumptions assumptions;
  assumptions.add_trust(now());
  assumptions.add_inputs(now().graph);
  for_each_node(now().graph, [&](const Node& node) { assumptions.add(node); });
  assumptions.lines.insert(assumptions.lines.end(), now().remarks.begin(), now().remarks.end());
  return assumptions.lines;
}

}  // namespace flashlight
