#include "composit/op/rule.h"

#include <cstring>

#include "composit/ir/error.h"
#include "composit/op/promotion.h"

namespace composit::detail {
namespace {

template <class T>
inline constexpr bool kIsElement =
    std::is_same_v<T, Expr> || std::is_same_v<T, Coefficient> || std::is_same_v<T, Condition>;
template <class T>
inline constexpr bool kIsTensor =
    std::is_same_v<T, In> || std::is_same_v<T, LazyTensor> || std::is_same_v<T, Array>;

Condition condition(const Expr& element) {
  if (element.dtype() == DType::bool_) return Condition(element);
  throw UserError("expected a condition of bool, received " + std::string(name(element.dtype())));
}

bool is_exact(const Scalar::Value& number, DType half) {
  return Expr::literal(number, half).value() == Expr::literal(number, DType::float64).value();
}

// The same for a tensor without axes; of one that is no number in the program no more is known.
bool is_exact(const LazyTensor& tensor, DType half) {
  if (!is_wrapped_number(tensor)) return false;
  const auto read = [&]<class T>(T number) {
    const Array& value = tensor.node->attribute("value").as<Array>();
    std::memcpy(&number, value.data(), sizeof number);
    return is_exact(Scalar::Value(number), half);
  };
  if (tensor.dtype() == DType::float64) return read(0.0);
  return tensor.dtype() == DType::bool_ || (tensor.dtype() == DType::int64 && read(int64_t{0}));
}

// A number beside operands of dtype `common`.
Expr number_beside(const RuleContext& context, const Expr& number) {
  const bool is_real = category(number.dtype()) < DTypeCategory::complex;
  if (context.rounds != nullptr && is_half(context.common) && is_real)
    *context.rounds |= !is_exact(number.value(), context.common);
  return cast(number, context.common);
}

// The same for one that is no more than a factor. An integer fits everything, as in torch.
Coefficient coefficient(const RuleContext& context, const Expr& number) {
  const DType common = context.common;
  if (category(number.dtype()) > std::max(category(common), DTypeCategory::integer))
    throw UserError("expected a coefficient (alpha) that fits " + std::string(name(common)) +
                    ", received " + std::string(name(number.dtype())));
  return Coefficient(number.kind() == ExprKind::literal ? number_beside(context, number)
                                                        : cast(number, common));
}

// The second of two operands, without axes and of another dtype, which kernels of half precision
// take as a number; one of which only its type is known may be any.
bool is_wide_number(const RuleContext& context, size_t place) {
  const LazyTensors& tensors = context.call->tensors();
  return place == 1 && tensors.size() == 2 && tensors[1].rank() == 0 &&
         !is_half(tensors[1].dtype()) && category(tensors[1].dtype()) < DTypeCategory::complex;
}

Expr element_beside(const RuleContext& context, size_t place) {
  const Expr& element = context.elements->at(place);
  const bool is_wide = is_wide_number(context, place);
  if (context.half != DType::count_ && !is_wide)
    return cast(cast(element, context.half), context.common);
  if (is_wide && context.rounds != nullptr && is_half(context.common))
    *context.rounds |= !is_exact(context.call->tensors()[place], context.common);
  return cast(element, context.common);
}

// The tensor at `place` of Call::tensors() as the role P.
template <class P>
P tensor_as(const RuleContext& context, size_t place) {
  const Call& call = *context.call;
  if constexpr (std::is_same_v<P, In>) return In(call.operand(place), call.tensors()[place].type());
  if constexpr (std::is_same_v<P, LazyTensor>) return call.tensors()[place];
  if constexpr (std::is_same_v<P, Array>) return context.values->at(place);
  if constexpr (std::is_same_v<P, Condition>) return condition(context.elements->at(place));
  if constexpr (std::is_same_v<P, Expr>) return element_beside(context, place);
  if constexpr (std::is_same_v<P, Coefficient>)
    return coefficient(context, context.elements->at(place));
}

// Data as P; the kinds were brought to those of the schema when the call was made.
template <class P>
P data_as(const RuleContext& context, const Attribute& data) {
  if constexpr (std::is_same_v<P, Expr>)
    return number_beside(context, Expr(data.as<Scalar>()));
  else if constexpr (std::is_same_v<P, Coefficient>)
    return coefficient(context, Expr(data.as<Scalar>()));
  else if constexpr (std::is_same_v<P, int64_t>)
    return data.as_int();
  else if constexpr (IsVector<P>::value) {
    P items;
    for (const Attribute& item : data.as<List>().items)
      items.push_back(data_as<typename P::value_type>(context, item));
    return items;
  } else {
    return data.as<P>();
  }
}

template <class P>
P list_of_tensors(const RuleContext& context, size_t i) {
  using Item = typename P::value_type;
  const Call& call = *context.call;
  P items;
  if (!call[i].is_list()) return items;
  for (size_t k = 0; k < call[i].tensors().size(); ++k) {
    const size_t place = call.first_tensor(i) + k;
    if constexpr (IsOptional<Item>::value)
      items.push_back(call.tensors()[place].defined()
                          ? Item(tensor_as<typename Item::value_type>(context, place))
                          : std::nullopt);
    else
      items.push_back(tensor_as<Item>(context, place));
  }
  return items;
}

template <class P>
constexpr bool is_tensor_list() {
  if constexpr (!IsVector<P>::value)
    return false;
  else {
    using Item = typename P::value_type;
    if constexpr (IsOptional<Item>::value)
      return kIsTensor<typename Item::value_type> || kIsElement<typename Item::value_type>;
    else
      return kIsTensor<Item> || kIsElement<Item>;
  }
}

// ---- parameters against the schema --------------------------------------------------------------

template <class P>
constexpr const char* name_of() {
  if constexpr (kIsTensor<P>)
    return "a tensor";
  else if constexpr (kIsElement<P>)
    return "an element";
  else if constexpr (std::is_same_v<P, bool>)
    return "a bool";
  else if constexpr (std::is_same_v<P, int64_t>)
    return "an integer";
  else if constexpr (std::is_same_v<P, double>)
    return "a float";
  else if constexpr (std::is_same_v<P, Scalar>)
    return "a number";
  else if constexpr (std::is_same_v<P, std::string>)
    return "a string";
  else if constexpr (std::is_same_v<P, DType>)
    return "a dtype";
  else if constexpr (std::is_same_v<P, Region>)
    return "a graph";
  else if constexpr (std::is_same_v<P, Opaque>)
    return "an object";
  else
    return "a list";
}

template <class P>
bool fits(const SchemaArgument& argument) {
  using enum ArgumentType;
  if constexpr (std::is_same_v<P, Expr> || std::is_same_v<P, Coefficient>)
    return argument.type == tensor || argument.type == scalar;
  else if constexpr (std::is_same_v<P, Condition> || kIsTensor<P>)
    return argument.type == tensor;
  else if constexpr (std::is_same_v<P, bool>)
    return argument.type == boolean;
  else if constexpr (std::is_same_v<P, int64_t>)
    return argument.type == integer || argument.type == symint;
  else if constexpr (std::is_same_v<P, double>)
    return argument.type == floating;
  else if constexpr (std::is_same_v<P, Scalar>)
    return argument.type == scalar;
  else if constexpr (std::is_same_v<P, std::string>)
    return argument.type == string;
  else if constexpr (std::is_same_v<P, DType>)
    return argument.type == dtype;
  else if constexpr (std::is_same_v<P, Region>)
    return argument.type == other && argument.type_name == "Graph";
  else if constexpr (std::is_same_v<P, Opaque>)
    return argument.type == other && argument.type_name != "Graph";
  else
    return argument.type == generator;
}

template <class P>
const char* mismatch_of(const SchemaArgument& argument) {
  if constexpr (IsVector<P>::value) {
    using Item = typename P::value_type;
    if constexpr (IsOptional<Item>::value)
      return argument.list && argument.optional_items && fits<typename Item::value_type>(argument)
                 ? nullptr
                 : "a list with missing items";
    else
      return argument.list && !argument.optional_items && fits<Item>(argument) ? nullptr : "a list";
  } else {
    return !argument.list && fits<P>(argument) ? nullptr : name_of<P>();
  }
}

}  // namespace

template <class P>
P argument(const RuleContext& context, size_t i) {
  const ArgumentValue& value = (*context.call)[i];
  if constexpr (IsOptional<P>::value) {
    if (value.is_none()) return std::nullopt;
    return argument<typename P::value_type>(context, i);
  } else if constexpr (IsVector<P>::value && !is_tensor_list<P>()) {
    return value.is_none() ? P() : data_as<P>(context, value.data());  // torch: none is all axes
  } else if constexpr (is_tensor_list<P>()) {
    return list_of_tensors<P>(context, i);
  } else if constexpr (kIsTensor<P> || std::is_same_v<P, Condition>) {
    return tensor_as<P>(context, context.call->first_tensor(i));
  } else if constexpr (kIsElement<P>) {
    return value.is_tensor() ? tensor_as<P>(context, context.call->first_tensor(i))
                             : data_as<P>(context, value.data());
  } else {
    return data_as<P>(context, value.data());
  }
}

template <class P>
const char* mismatch(const SchemaArgument& argument) {
  if constexpr (IsOptional<P>::value)
    return argument.optional ? mismatch_of<typename P::value_type>(argument) : "optional";
  else
    return argument.optional && !argument.list ? "always there" : mismatch_of<P>(argument);
}

#define COMPOSIT_ROLE(...)                                                \
  template __VA_ARGS__ argument<__VA_ARGS__>(const RuleContext&, size_t); \
  template const char* mismatch<__VA_ARGS__>(const SchemaArgument&);
#define COMPOSIT_ROLES(...)  \
  COMPOSIT_ROLE(__VA_ARGS__) \
  COMPOSIT_ROLE(std::optional<__VA_ARGS__>)
#define COMPOSIT_TENSOR_ROLES(...)         \
  COMPOSIT_ROLES(__VA_ARGS__)              \
  COMPOSIT_ROLES(std::vector<__VA_ARGS__>) \
  COMPOSIT_ROLE(std::vector<std::optional<__VA_ARGS__>>)
COMPOSIT_TENSOR_ROLES(In)
COMPOSIT_TENSOR_ROLES(LazyTensor)
COMPOSIT_TENSOR_ROLES(Array)
COMPOSIT_TENSOR_ROLES(Expr)
COMPOSIT_ROLES(Coefficient)
COMPOSIT_ROLES(Condition)
COMPOSIT_ROLES(bool)
COMPOSIT_ROLES(int64_t)
COMPOSIT_ROLES(double)
COMPOSIT_ROLES(Scalar)
COMPOSIT_ROLES(std::string)
COMPOSIT_ROLES(DType)
COMPOSIT_ROLES(Generator)
COMPOSIT_ROLE(Region)
COMPOSIT_ROLE(Opaque)
COMPOSIT_ROLES(std::vector<bool>)
COMPOSIT_ROLES(std::vector<int64_t>)
COMPOSIT_ROLES(std::vector<double>)
COMPOSIT_ROLES(std::vector<Scalar>)

void check_parameter(const Schema& schema, size_t i,
                     const char* (*mismatch)(const SchemaArgument&)) {
  const auto fail = [&](const std::string& what) {
    throw UserError("[add_operation] " + schema.name.str() + ": " + what);
  };
  if (i >= schema.arguments.size())
    fail("expected as many parameters as the schema has arguments, received more");
  const SchemaArgument& argument = schema.arguments[i];
  if (const char* as = mismatch(argument))
    fail("argument '" + argument.name + "' (" + argument.type_name + (argument.list ? "[]" : "") +
         (argument.optional ? "?" : "") + ") is read as " + as);
}

}  // namespace composit::detail
