#include "flashlight/loops/control.h"

namespace flashlight::loops {
namespace {

using composit::Node;
using composit::Symbol;

const Symbol kCond("composit::cond"), kMap("composit::map"), kScan("composit::scan"),
    kWhileLoop("composit::while_loop");

}  // namespace

bool is_control(const composit::Symbol& operation) {
  return operation == kCond || operation == kMap || operation == kScan || operation == kWhileLoop;
}

Control control_of(
    const Node& node, const std::function<ValueId(const composit::LazyTensor&)>& value_of,
    const std::function<FunctionId(const composit::Region&, const std::string&)>& function_of) {
  const auto operands = [&](size_t argument) {
    ValueIds values;
    const composit::Argument& range = node.arguments().at(argument);
    for (uint32_t i = 0; i < range.size; ++i)
      values.push_back(value_of(node.operands()[range.begin + i]));
    return values;
  };
  const auto function = [&](const char* attribute, const char* name) {
    return function_of(node.attribute(attribute).as<composit::Region>(), name);
  };
  Control control;
  if (node.op() == kCond) {
    control.predicate = operands(0)[0];
    control.outside = operands(1);
    control.functions = {function("then_body", "then_branch"),
                         function("else_body", "else_branch")};
  } else if (node.op() == kMap) {
    control.kind = Control::Kind::map;
    control.sequences = operands(0);
    control.outside = operands(1);
    control.length = node.attribute("length").as<int64_t>();
    control.functions = {function("body", "map_body")};
  } else if (node.op() == kScan) {
    control.kind = Control::Kind::scan;
    control.carried = operands(0);
    control.sequences = operands(1);
    control.outside = operands(2);
    if (const ValueIds trips = operands(3); !trips.empty()) control.trips = trips[0];
    control.length = node.attribute("length").as<int64_t>();
    control.reverse = node.attribute("reverse").as<bool>();
    control.functions = {function("body", "scan_body")};
  } else {
    control.kind = Control::Kind::repeat;
    control.carried = operands(0);
    control.outside = operands(1);
    if (const auto* limit = node.attribute("limit").get_if<int64_t>()) control.limit = *limit;
    control.functions = {function("condition", "loop_condition"), function("body", "loop_body")};
  }
  return control;
}

}  // namespace flashlight::loops
