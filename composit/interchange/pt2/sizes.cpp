// Integers that follow from sizes, as nodes; and what a family holds for, as assertions.
#include "composit/interchange/pt2/arguments.h"
#include "composit/interchange/pt2/graph_writer.h"
#include "composit/interchange/pt2/symbols.h"
#include "composit/ir/error.h"
#include "composit/ir/integers.h"

namespace composit::pt2 {
namespace {

using Function = SizeFormula::Kind;

Json named_integer(const std::string& name) { return {{"as_sym_int", {{"as_name", name}}}}; }

// The operator of Python for a function of two integers.
std::string operator_of(Function kind) {
  switch (kind) {
    case Function::add:
      return "_operator.add";
    case Function::subtract:
      return "_operator.sub";
    case Function::multiply:
      return "_operator.mul";
    case Function::mod:
      return "_operator.mod";
    case Function::min:
      return "torch.sym_min";
    case Function::max:
      return "torch.sym_max";
    default:
      return "_operator.floordiv";
  }
}

// {"as_int": 3} or {"as_sym_int": …} as the item of a list of them.
Json item_of(const Json& integer) {
  if (integer.contains("as_int")) return integer;
  return integer.at("as_sym_int");
}

}  // namespace

Json GraphWriter::integer_node(const std::string& target, Json inputs, Json value,
                               const std::string& hint, const Origin& origin) {
  const std::string name = program_.value_name(hint);
  integers_[name] = std::move(value);
  nodes_.push_back({{"target", target},
                    {"inputs", std::move(inputs)},
                    {"outputs", Json::array({named_integer(name)})},
                    {"metadata", metadata_.next(origin)}});
  return named_integer(name);
}

Json GraphWriter::size_of(const LazyTensor& tensor, size_t axis, const Frame& frame,
                          const Origin& origin) {
  const Json value = program_.symbols()->size_json(tensor, axis);
  if (value.contains("as_int")) return value;
  const std::string name = tensor_name(value_of(tensor, frame));
  const auto [known, added] = sizes_.try_emplace({name, axis});
  if (added)
    known->second = integer_node(
        "torch.ops.aten.sym_size.int",
        Json::array({positional("self", tensor_json(name)), positional("dim", {{"as_int", axis}})}),
        value, "sym_size", origin);
  return known->second;
}

Json GraphWriter::integer_of(const SizeFormula& formula, const Frame& frame, const Origin& origin) {
  if (formula.kind() == Function::constant) return {{"as_int", formula.constant()}};
  if (formula.kind() == Function::size)
    return size_of(formula.tensor(), formula.axis(), frame, origin);
  const Json left = integer_of(formula.left(), frame, origin);
  const Json right = integer_of(formula.right(), frame, origin);
  const auto text = [&](const SizeFormula& of) {
    return expression(of, [&](const LazyTensor& tensor, size_t axis) {
      const Json size = program_.symbols()->size_json(tensor, axis);
      return size.contains("as_int") ? "Integer(" + size["as_int"].dump() + ")"
                                     : size["as_expr"]["expr_str"].get<std::string>();
    });
  };
  const auto here = [](const LazyTensor& tensor, size_t axis) { return tensor.sizes().at(axis); };
  const auto value = [&](const SizeFormula& of) -> Json {
    return {{"as_expr", {{"expr_str", text(of)}, {"hint", {{"as_int", of.evaluate(here)}}}}}};
  };
  const auto apply = [&](const std::string& target, const Json& a, const Json& b, Json result) {
    return integer_node(target, Json::array({positional("a", a), positional("b", b)}),
                        std::move(result), "size", origin);
  };
  if (formula.kind() == Function::exact_div)
    expect("_operator.eq",
           apply("_operator.mod", left, right, value(mod(formula.left(), formula.right()))),
           {{"as_int", 0}}, "a size that has to be divisible is not", origin);
  if (formula.kind() != Function::ceil_div)
    return apply(operator_of(formula.kind()), left, right, value(formula));
  const SizeFormula negative = SizeFormula(0) - formula.left();
  const SizeFormula quotient = div(negative, formula.right());
  const Json zero = {{"as_int", 0}};
  return apply("_operator.sub", zero,
               apply("_operator.floordiv", apply("_operator.sub", zero, left, value(negative)),
                     right, value(quotient)),
               value(formula));
}

Json GraphWriter::argument_with_formulas(const Node& node, const SchemaArgument& argument,
                                         const Attribute& value, const Frame& frame,
                                         const Origin& origin) {
  Json json = argument_json(argument, value);
  if (program_.symbols() == nullptr) return json;
  if (const NumberFormula* formula = number_use(node, argument.name)) {
    const bool is_float = json.contains("as_float");
    const bool is_whole = json.contains("as_int") && argument.type_name == "Scalar" &&
                          is_floating_point(node.outputs().at(0).dtype);
    if (!is_float && !is_whole)
      throw UserError("its '" + argument.name + "', a whole number, differs from call to call");
    return number_argument(*formula, origin).argument;
  }
  for (const IntegerFormula& one : program_.symbols()->family().formulas_of(node)) {
    if (one.of == IntegerFormula::Of::execution)
      throw UserError("a number that it asks for follows from sizes");
    if (one.of != IntegerFormula::Of::attribute ||
        node.attributes().at(one.number).key() != argument.name)
      continue;
    const Json integer = integer_of(one.formula, frame, origin);
    if (json.contains("as_int")) {
      json = integer;
      continue;
    }
    if (json.contains("as_ints")) {
      Json items = Json::array();
      for (const Json& item : json["as_ints"]) items.push_back({{"as_int", item}});
      json = {{"as_sym_ints", items}};
    }
    if (!json.contains("as_sym_ints"))
      throw UserError("its argument '" + argument.name +
                      "' follows from sizes in a way that has no "
                      "form in the format");
    json["as_sym_ints"].at(one.position) = item_of(integer);
  }
  return json;
}

void GraphWriter::expect(const std::string& comparison, const Json& a, const Json& b,
                         const std::string& message, const Origin& origin) {
  const std::string holds = program_.value_name("holds");
  bools_[holds] = {{"as_bool", true}};
  const Json named = {{"as_sym_bool", {{"as_name", holds}}}};
  nodes_.push_back({{"target", comparison},
                    {"inputs", Json::array({positional("a", a), positional("b", b)})},
                    {"outputs", Json::array({named})},
                    {"metadata", metadata_.next(origin)}});
  emit("torch.ops.aten._assert_scalar.default",
       Json::array({positional("self", named), positional("assert_msg", {{"as_string", message}})}),
       {}, false, origin);
}

// A size is within the range that was shown, in its steps, and the same in all axes that have it.
void GraphWriter::expect_range(const FreeSize& size, const LazyTensors& inputs) {
  const auto of = [&](const InputAxis& axis) {
    return size_of(inputs.at(axis.input), axis.axis, frame_, {});
  };
  const Json first = of(size.axes.at(0));
  if (first.contains("as_int")) return;  // one size
  const std::string what = "the size '" + size.name + "' was shown from " +
                           std::to_string(size.low) + " to " + std::to_string(size.high);
  expect("_operator.ge", first, {{"as_int", size.low}}, what, {});
  expect("_operator.le", first, {{"as_int", size.high}}, what, {});
  for (size_t i = 1; i < size.axes.size(); ++i)
    expect("_operator.eq", of(size.axes[i]), first,
           "two inputs have other sizes '" + size.name + "'", {});
  if (size.step == 1) return;
  const Json rest =
      integer_node("_operator.mod",
                   Json::array({positional("a", first), positional("b", {{"as_int", size.step}})}),
                   {{"as_int", size.low % size.step}}, "rest", {});
  expect("_operator.eq", rest, {{"as_int", size.low % size.step}},
         what + " in steps of " + std::to_string(size.step), {});
}

}  // namespace composit::pt2
