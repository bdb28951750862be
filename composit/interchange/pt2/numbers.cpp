// Numbers of a family that are no sizes, as torch writes `rate.item()`: inputs without axes, read
// by `item`, and Python's operators on what was read, in double precision as the program computes.
#include <cmath>
#include <cstdio>

#include "composit/interchange/lower.h"
#include "composit/interchange/pt2/arguments.h"
#include "composit/interchange/pt2/graph_writer.h"
#include "composit/interchange/pt2/symbols.h"
#include "composit/ir/error.h"

namespace composit::pt2 {
namespace {

using Kind = NumberFormula::Kind;

// sympy's text of a number, with all its digits.
std::string text_of_number(double number) {
  char text[64];
  std::snprintf(text, sizeof(text), "Float('%.17g', precision=53)", number);
  return text;
}

// The operator of Python, and the function of sympy or torch that says what it gives.
struct Spelling {
  std::string target, function;
};

Spelling spelling_of(Kind kind) {
  switch (kind) {
    case Kind::negate:
      return {"_operator.neg", "Mul(Integer(-1), "};
    case Kind::add:
      return {"_operator.add", "Add("};
    case Kind::subtract:
      return {"_operator.sub", "Add("};
    case Kind::multiply:
      return {"_operator.mul", "Mul("};
    case Kind::divide:
      return {"_operator.truediv", "FloatTrueDiv("};
    case Kind::power:
      return {"_operator.pow", "FloatPow("};
    default:
      return {};
  }
}

}  // namespace

std::string GraphWriter::add_float(const std::string& target, Json inputs, const std::string& text,
                                   const Origin& origin) {
  const std::string name = program_.value_name("number");
  floats_[name] = {{"as_expr", {{"expr_str", text}, {"hint", nullptr}}}};
  nodes_.push_back({{"target", target},
                    {"inputs", std::move(inputs)},
                    {"outputs", Json::array({{{"as_sym_float", {{"as_name", name}}}}})},
                    {"metadata", metadata_.next(origin)}});
  return name;
}

GraphWriter::Number GraphWriter::read_number(const std::string& tensor, const Origin& origin) {
  const std::string text = "Symbol('zuf" + std::to_string(open_numbers_++) + "')";
  const std::string name =
      add_float("torch.ops.aten.item.default",
                Json::array({positional("self", tensor_json(tensor))}), text, origin);
  return {{{"as_sym_float", {{"as_name", name}}}}, text};
}

void GraphWriter::add_number(const FreeNumber& number, const std::string& value,
                             const Origin& origin) {
  numbers_[print(NumberFormula::named(number.name))] = read_number(value, origin);
  for (const double one : number.shown)
    if (one != std::floor(one)) return;
  // Where all examples had whole numbers, nobody knows what the program does with others.
  const Type type = tensor_type(DType::float64, {});
  const std::string floor = add("torch.ops.aten.floor.default",
                                Json::array({positional("self", tensor_json(value))}), type);
  const std::string same = add("torch.ops.aten.eq.Tensor",
                               Json::array({positional("self", tensor_json(value)),
                                            positional("other", tensor_json(floor))}),
                               tensor_type(DType::bool_, {}));
  add_assertion(same, "the number '" + number.name + "' was shown whole, and is not", origin);
}

// In double precision, as C++ and Python compute with what they read.
bool GraphWriter::add_read(const Node& node, const Frame& frame, const Origin& origin) {
  const NumberFormula* formula = number_use(node, "read");
  if (formula == nullptr) return false;
  const LazyTensor& tensor = node.operands().at(0);
  std::string value = tensor_name(value_of(tensor, frame));
  if (tensor.dtype() != DType::float64)
    value = add("torch.ops.aten._to_copy.default",
                Json::array({positional("self", tensor_json(value)),
                             keyword("dtype", {{"as_scalar_type", number_of(DType::float64)}})}),
                tensor_type(DType::float64, tensor.sizes()), origin);
  if (tensor.type().rank() > 0)
    value = add("torch.ops.aten.reshape.default",
                Json::array({positional("self", tensor_json(value)),
                             positional("shape", {{"as_ints", Json::array()}})}),
                tensor_type(DType::float64, {}), origin);
  for (const FreeNumber& number : program_.symbols()->family().numbers)
    if (number.name == formula->name()) add_number(number, value, origin);
  return true;
}

const GraphWriter::Number& GraphWriter::number_argument(const NumberFormula& formula,
                                                        const Origin& origin) {
  const std::string key = print(formula);
  if (const auto known = numbers_.find(key); known != numbers_.end()) return known->second;
  if (formula.kind() == Kind::constant)
    return numbers_[key] = {number_json(formula.constant()), text_of_number(formula.constant())};
  if (formula.kind() == Kind::named)
    throw UserError("it follows from the number '" + formula.name() + "', which is not known");
  std::vector<Number> arguments;
  for (const NumberFormula& argument : formula.arguments())
    arguments.push_back(number_argument(argument, origin));
  if (formula.kind() == Kind::single) {
    const std::string rounded = rounded_tensor(arguments[0].argument, DType::float32, origin);
    return numbers_[key] = read_number(rounded, origin);
  }
  Json inputs = Json::array({positional("a", arguments[0].argument)});
  std::string text = arguments[0].text;
  if (arguments.size() > 1) {
    inputs.push_back(positional("b", arguments[1].argument));
    const bool minus = formula.kind() == Kind::subtract;
    text += ", " + (minus ? "Mul(Integer(-1), " + arguments[1].text + ")" : arguments[1].text);
  }
  if (formula.kind() == Kind::root)
    return numbers_[key] = {
               {{"as_sym_float",
                 {{"as_name", add_float("torch.sym_sqrt", std::move(inputs),
                                        "OpaqueUnaryFn_sqrt(" + text + ")", origin)}}}},
               "OpaqueUnaryFn_sqrt(" + text + ")"};
  const Spelling spelling = spelling_of(formula.kind());
  text = spelling.function + text + ")";
  const std::string name = add_float(spelling.target, std::move(inputs), text, origin);
  return numbers_[key] = {{{"as_sym_float", {{"as_name", name}}}}, text};
}

std::string GraphWriter::rounded_tensor(const Json& number, DType dtype, const Origin& origin) {
  return add("torch.ops.aten.scalar_tensor.default",
             Json::array({positional("s", number),
                          keyword("dtype", {{"as_scalar_type", number_of(dtype)}})}),
             tensor_type(dtype, {}), origin);
}

const NumberFormula* GraphWriter::number_use(const Node& node, std::string_view key) {
  if (program_.symbols() == nullptr) return nullptr;
  for (const NumberUse& use : program_.symbols()->family().number_uses)
    if (use.node.get() == &node && use.key == key) {
      written_uses_.insert(&use);
      return &use.formula;
    }
  return nullptr;
}

void GraphWriter::expect_all_numbers(const Family& family) const {
  for (const NumberUse& use : family.number_uses)
    if (!written_uses_.contains(&use))
      throw UserError(use.node->op().str() + interchange::place_of(*use.node) + ": its '" +
                      use.key +
                      "' is a number that differs from call to call, which it has no form for");
}

}  // namespace composit::pt2
