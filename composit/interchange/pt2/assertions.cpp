// What a graph takes for granted, as assertions.
#include <cmath>

#include "composit/interchange/definition.h"
#include "composit/interchange/pt2/arguments.h"
#include "composit/interchange/pt2/graph_writer.h"
#include "composit/interchange/pt2/symbols.h"
#include "composit/ir/error.h"
#include "composit/ops/guards.h"

namespace composit::pt2 {
namespace {

bool is_nan(const Scalar::Value& value) {
  const auto* real = std::get_if<double>(&value);
  return real != nullptr && std::isnan(*real);
}

std::string place(const Origin& origin) {
  std::string text;
  if (!origin.scope.empty()) text += " in " + std::string(origin.scope);
  if (!origin.source.empty()) text += " at " + std::string(origin.source);
  return text;
}

}  // namespace

void GraphWriter::add_assertion(const std::string& condition, const std::string& message,
                                const Origin& origin) {
  emit("torch.ops.aten._assert_async.msg",
       Json::array({positional("self", tensor_json(condition)),
                    positional("assert_msg", {{"as_string", message}})}),
       {}, false, origin);
}

void GraphWriter::expect_dtype(const std::string& name, DType dtype) {
  emit("torch.ops.aten._assert_tensor_metadata.default",
       Json::array({positional("a", tensor_json(name)),
                    keyword("dtype", {{"as_scalar_type", number_of(dtype)}})}),
       {}, false, {});
}

bool GraphWriter::add_guard(const Node& node, Frame& frame, const Origin& origin) {
  const Guard* guard = guard_of(node);
  if (guard == nullptr) return false;
  if (guard->expected == Guard::Expected::types) return true;
  if (guard->expected != Guard::Expected::captured) return false;  // ATen asserts by the same name
  const Scalar expected = expected_of(*guard, node);
  std::string asked;
  Type type = tensor_type(DType::bool_, {});
  if (guard->answer) {
    LazyTensors blocks;
    for (const LazyTensor& operand : node.operands())
      blocks.push_back(input(std::to_string(blocks.size()), operand.type(), InputKind::block));
    const Call call = call_of(node, guard->schema, blocks);
    const LazyTensor answer = guard->answer({.call = &call});
    if (!answer) return true;  // their types differ, whatever the values
    Frame inner;
    const Graph graph({.inputs = blocks, .outputs = {answer}});
    add_in_place(node, graph, frame, inner, origin);
    asked = tensor_name(value_of(answer, inner));
  } else {
    asked = tensor_name(value_of(node.operands().at(0), frame));
    type.sizes = node.operands()[0].sizes();
    type.strides = contiguous_strides(type.sizes);
  }
  Json inputs = Json::array({positional("self", tensor_json(asked))});
  const bool nan = is_nan(expected.value);
  if (!nan) inputs.push_back(positional("other", number_json(expected.value)));
  const Names same = emit(nan ? "torch.ops.aten.isnan.default" : "torch.ops.aten.eq.Scalar",
                          std::move(inputs), {type}, false, origin);
  add_assertion(same[0],
                "the number that the program reads" + place(origin) + " was " +
                    number_json(expected.value).begin().value().dump() +
                    " when it was captured, and is another",
                origin);
  return true;
}

void GraphWriter::expect_sizes(const Node& node, const Names& names, const Origin& origin) {
  if (!interchange::sizes_follow_values(node)) return;
  for (uint32_t i = 0; i < names.size(); ++i) {
    const Type& type = node.outputs()[i];
    for (size_t axis = 0; is_defined(type) && axis < type.rank(); ++axis) {
      // A family has others as well.
      if (const Symbols* symbols = program_.symbols();
          symbols != nullptr && !symbols->has_one_size(node, i, axis))
        continue;
      const Json here = integer_node("torch.ops.aten.sym_size.int",
                                     Json::array({positional("self", tensor_json(names[i])),
                                                  positional("dim", {{"as_int", axis}})}),
                                     {{"as_int", type.sizes[axis]}}, "sym_size", origin);
      expect("_operator.eq", here, {{"as_int", type.sizes[axis]}},
             "a size that follows from values" + place(origin) + " was " +
                 std::to_string(type.sizes[axis]) + " when it was captured, and is another",
             origin);
    }
  }
}

}  // namespace composit::pt2
