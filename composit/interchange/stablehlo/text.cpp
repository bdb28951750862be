#include "composit/interchange/stablehlo/text.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "composit/interchange/stablehlo/forms.h"
#include "composit/interchange/stablehlo/ops.h"
#include "composit/interchange/stablehlo/types.h"
#include "composit/ir/error.h"
#include "composit/ir/graph.h"
#include "composit/ir/scope.h"

namespace composit::stablehlo {
namespace {

// As MLIR quotes text; what is not plain ASCII as two digits.
std::string in_quotes(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string result = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 32 && code < 127 && c != '"' && c != '\\') {
      result += c;
      continue;
    }
    result += '\\';
    result += kDigits[code >> 4];
    result += kDigits[code & 15];
  }
  return result + "\"";
}

class ModuleWriter {
 public:
  explicit ModuleWriter(const Module& module) : module_(module) {}

  std::string run() {
    std::string arguments, results;
    for (const Port& port : module_.inputs) {
      name_value(port.value, port.name);
      arguments += (arguments.empty() ? "\n      " : ",\n      ") + name_of(port.value) + ": " +
                   type_of(port.value) + attributes_of(port);
    }
    std::string globals;
    for (const Port& port : module_.globals) add_global(port, globals);
    std::vector<std::string> values;
    std::string types;
    LazyTensors outputs;
    for (const Port& port : module_.results) outputs.push_back(port.value);
    add_nodes(Graph({.inputs = inputs(), .outputs = outputs}), "    ");
    for (const Port& port : module_.results) {
      results +=
          (results.empty() ? "\n      " : ",\n      ") + type_of(port.value) + attributes_of(port);
      values.push_back(name_of(port.value));
      types += (types.empty() ? "" : ", ") + type_of(port.value);
    }
    return "module @" + symbol_of(module_.name) + " {\n" + globals + "  func.func public @main(" +
           arguments + ") -> (" + results + ") {\n" + body_ + "    return" +
           (values.empty() ? "" : " " + joined(values) + " : " + types) + "\n  }\n}\n";
  }

 private:
  using Key = std::pair<const Node*, uint32_t>;

  // ---- names ------------------------------------------------------------------------------------

  static std::string symbol_of(const std::string& name) { return in_quotes(name); }

  // Letters, digits, '_' and '.', not digits first.
  static std::string identifier(const std::string& wanted) {
    std::string name;
    for (const char c : wanted) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '_' || c == '.';
      name += plain ? c : '_';
    }
    return name.empty() || (name[0] >= '0' && name[0] <= '9') || name[0] == '.' ? "_" + name : name;
  }

  void name_value(const LazyTensor& value, const std::string& wanted) {
    set_name(value, "%" + unused_name(identifier(wanted), taken_));
  }

  void set_name(const LazyTensor& value, const std::string& name) {
    const Key key{value.node.get(), value.index};
    names_[key] = name;
    added_.push_back(key);
  }

  const std::string& name_of(const LazyTensor& value) const {
    const auto found = names_.find({value.node.get(), value.index});
    COMPOSIT_ASSERT(found != names_.end(), "a value without a name");
    return found->second;
  }

  static std::string type_of(const LazyTensor& value) { return type_text(value.type()); }

  static std::string attributes_of(const Port& port) {
    return " {flashlight." + port.key + " = " + in_quotes(port.name) + "}";
  }

  LazyTensors inputs() const {
    LazyTensors all;
    for (const Port& port : module_.inputs) all.push_back(port.value);
    for (const Port& port : module_.globals) all.push_back(port.value);
    return all;
  }

  void add_global(const Port& port, std::string& globals) {
    const std::string symbol = "@" + symbol_of(port.name), type = type_of(port.value);
    globals += "  util.global private " + symbol +
               " = #flow.parameter.named<\"model\"::" + in_quotes(port.name) + "> : " + type + "\n";
    name_value(port.value, port.name);
    body_ += "    " + name_of(port.value) + " = util.global.load " + symbol + " : " + type + "\n";
  }

  // ---- nodes ------------------------------------------------------------------------------------

  static std::string operator_of(const Node& node) {
    return std::string(node.op().str().substr(kDomain.size() + 2));
  }

  void add_nodes(const Graph& graph, const std::string& indent) {
    for (const NodePtr& node : graph.nodes()) {
      // A region sees what is made around it.
      if (is_input(*node) || names_.contains({node.get(), 0})) continue;
      if (node->op() == ops::kConstant) {
        add_constant({node, 0}, indent);
        continue;
      }
      COMPOSIT_ASSERT(node->op().domain() == kDomain, "a node that is no operator of StableHLO");
      add_node(node, indent);
    }
  }

  // Equal ones are written once per region.
  void add_constant(const LazyTensor& value, const std::string& indent) {
    const std::string text =
        value_text(value.node->attribute("value").as<Array>()) + " : " + type_of(value);
    const auto known = constants_.find(text);
    if (known != constants_.end()) {
      set_name(value, known->second);
      return;
    }
    name_value(value, "cst");
    constants_[text] = name_of(value);
    body_ += indent + name_of(value) + " = stablehlo.constant " + text + "\n";
  }

  std::string left_side(const NodePtr& node, const std::string& op) {
    const size_t count = node->outputs().size();
    if (count == 1) {
      name_value({node, 0}, op);
      return name_of({node, 0}) + " = ";
    }
    const std::string base = "%" + unused_name(op, taken_);
    for (uint32_t i = 0; i < count; ++i) set_name({node, i}, base + "#" + std::to_string(i));
    return base + ":" + std::to_string(count) + " = ";
  }

  std::string names_text(const Node& node, size_t count) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) names.push_back(name_of(node.operands()[i]));
    return joined(names);
  }

  static std::string types_text(const Node& node, size_t count) {
    std::vector<std::string> types;
    for (size_t i = 0; i < count; ++i) types.push_back(type_of(node.operands()[i]));
    return joined(types);
  }

  // "(tensor<…>, …) -> tensor<…>", of the first `count` operands.
  static std::string function_type(const Node& node, size_t count) {
    std::vector<std::string> results;
    for (const Type& type : node.outputs()) results.push_back(type_text(type));
    const bool many = results.size() != 1;
    return "(" + types_text(node, count) + ") -> " + (many ? "(" : "") + joined(results) +
           (many ? ")" : "");
  }

  void add_node(const NodePtr& pointer, const std::string& indent) {
    const Node& node = *pointer;
    const std::string op = operator_of(node);
    const std::string text = right_side(node, op, indent);
    const std::string left = left_side(pointer, op);
    body_ += indent + left + text + location(node) + "\n";
  }

  std::string right_side(const Node& node, const std::string& op, const std::string& indent) {
    const size_t count = node.operands().size();
    const std::string type = count == 0 ? "" : type_of(node.operands()[0]);
    const std::string prefix = (is_chlo(op) ? "chlo." : "stablehlo.") + op;
    if (op == "if" || op == "while") return control_text(node, op, indent);
    if (op == "iota")
      return prefix + " dim = " + std::to_string(node.attribute("dim").as_int()) + " : " +
             type_text(node.outputs()[0]);
    if (op == "compare")
      return prefix + " " + node.attribute("direction").as<std::string>() + ", " +
             names_text(node, 2) + ", " + compare_kind(node.operands()[0].type()) + " : " +
             function_type(node, 2);
    if (op == "select") return prefix + " " + names_text(node, 3) + " : " + types_text(node, 2);
    if (op == "reverse")
      return prefix + " " + names_text(node, 1) + ", dims = " + listed(node, "dims") + " : " + type;
    if (op == "convolution")
      return prefix + "(" + names_text(node, 2) + ")" + convolution_form(node) + " : " +
             function_type(node, 2);
    if (op == "reduce" && node.find_attribute("applies") != nullptr)
      return prefix + "(" + name_of(node.operands()[0]) + " init: " + name_of(node.operands()[1]) +
             ") applies stablehlo." + node.attribute("applies").as<std::string>() +
             " across dimensions = " + listed(node, "dimensions") + " : " + function_type(node, 2);
    if (const auto own = own_form(op, node))
      return prefix + " " + names_text(node, count) + *own + " : " + function_type(node, count);
    if (const auto attributes = general_form(op, node))
      return general_text(node, op, *attributes, indent);
    if (is_chlo(op))
      return prefix + " " + names_text(node, count) + " : " + types_text(node, count) + " -> " +
             type_text(node.outputs()[0]);
    return prefix + " " + names_text(node, count) + " : " + type_text(node.outputs()[0]);
  }

  std::string general_text(const Node& node, const std::string& op, const std::string& attributes,
                           const std::string& indent) {
    const size_t count = node.operands().size();
    std::string text = "\"stablehlo." + op + "\"(" + names_text(node, count) + ")";
    if (const Attribute* body = node.find_attribute("body"))
      text += " (" + region_text(*body->as<Region>(), {}, indent) + ")";
    if (!attributes.empty()) text += " {" + attributes + "}";
    return text + " : " + function_type(node, count);
  }

  // ---- regions ----------------------------------------------------------------------------------

  // `outside`: operands that inputs of the region are, from the last one on; the others are
  // arguments of its block.
  std::string region_text(const Graph& region, const LazyTensors& outside,
                          const std::string& indent) {
    const size_t own = region.inputs().size() - outside.size();
    const auto constants = constants_;  // those of around may be used, own ones not outside
    const std::vector<Key> before = std::exchange(added_, {});
    std::vector<std::string> arguments;
    for (size_t i = 0; i < region.inputs().size(); ++i) {
      const LazyTensor& input = region.inputs()[i];
      if (i >= own) {
        set_name(input, name_of(outside[i - own]));
        continue;
      }
      name_value(input, "arg");
      arguments.push_back(name_of(input) + ": " + type_of(input));
    }
    std::string around = std::move(body_);
    body_.clear();
    add_nodes(region, indent + "    ");
    std::vector<std::string> results, types;
    for (const LazyTensor& output : region.outputs()) {
      results.push_back(name_of(output));
      types.push_back(type_of(output));
    }
    std::string text = "{\n";
    if (!arguments.empty()) text += indent + "  ^bb0(" + joined(arguments) + "):\n";
    text += body_ + indent + "    stablehlo.return " + joined(results) + " : " + joined(types) +
            "\n" + indent + "  }";
    body_ = std::move(around);
    constants_ = constants;
    for (const Key& key : added_) names_.erase(key);
    added_ = before;
    return text;
  }

  std::string control_text(const Node& node, const std::string& op, const std::string& indent) {
    const LazyTensors& operands = node.operands();
    const bool branches = op == "if";
    const size_t own = branches ? 1 : static_cast<size_t>(node.attribute("carried").as_int());
    const LazyTensors outside(operands.begin() + static_cast<int64_t>(own), operands.end());
    const Graph& first = *node.attribute(branches ? "then" : "condition").as<Region>();
    const Graph& second = *node.attribute(branches ? "else" : "body").as<Region>();
    const std::string one = region_text(first, outside, indent);
    const std::string two = region_text(second, outside, indent);
    return "\"stablehlo." + op + "\"(" + names_text(node, own) + ") (" + one + ", " + two +
           ") : " + function_type(node, own);
  }

  // ---- places -----------------------------------------------------------------------------------

  static std::string location(const Node& node) {
    const std::string_view scope = node.annotation("scope"), source = node.annotation("source");
    if (scope.empty() && source.empty()) return "";
    const size_t colon = source.rfind(':');
    const std::string_view line = colon == std::string_view::npos ? "" : source.substr(colon + 1);
    const bool has_line =
        !line.empty() && line.size() < 9 &&
        std::all_of(line.begin(), line.end(), [](char c) { return c >= '0' && c <= '9'; });
    const std::string place =
        has_line ? in_quotes(source.substr(0, colon)) + ":" + std::string(line) + ":1" : "";
    if (scope.empty()) return place.empty() ? "" : " loc(" + place + ")";
    return " loc(" + in_quotes(scope) + (place.empty() ? "" : "(" + place + ")") + ")";
  }

  const Module& module_;
  std::map<Key, std::string> names_;
  std::vector<Key> added_;  // to them, in the region that is being written
  std::map<std::string, std::string> constants_;
  std::set<std::string> taken_;
  std::string body_;
};

}  // namespace

std::string text_of(const Module& module) { return ModuleWriter(module).run(); }

}  // namespace composit::stablehlo
