#include "composit/op/scalar_function.h"

#include <algorithm>
#include <array>

#include "composit/ir/error.h"

namespace composit {
namespace {

using enum FunctionDType;
constexpr size_t kCount = static_cast<size_t>(Function::count_);

// In the order of `Function`.
// clang-format off
constexpr std::array<FunctionInfo, kCount> kTable = {{
    {"abs", 1, magnitude}, {"sign", 1, real}, {"exp", 1, to_float}, {"exp2", 1, to_float},
    {"expm1", 1, to_float}, {"log", 1, to_float}, {"log2", 1, to_float}, {"log10", 1, to_float},
    {"log1p", 1, to_float}, {"sqrt", 1, to_float}, {"rsqrt", 1, to_float}, {"sin", 1, to_float},
    {"cos", 1, to_float}, {"tan", 1, to_float}, {"asin", 1, to_float}, {"acos", 1, to_float},
    {"atan", 1, to_float}, {"sinh", 1, to_float}, {"cosh", 1, to_float}, {"tanh", 1, to_float},
    {"asinh", 1, to_float}, {"acosh", 1, to_float}, {"atanh", 1, to_float},
    {"erf", 1, to_real_float}, {"erfc", 1, to_real_float}, {"erfinv", 1, to_real_float},
    {"lgamma", 1, to_real_float}, {"digamma", 1, to_real_float}, {"floor", 1, real},
    {"ceil", 1, real}, {"round", 1, real}, {"trunc", 1, real}, {"isnan", 1, comparison},
    {"bitwise_not", 1, integer}, {"real", 1, magnitude}, {"imag", 1, magnitude}, {"conj", 1, same},
    {"min", 2, real}, {"max", 2, real}, {"pow", 2, number}, {"atan2", 2, to_real_float},
    {"floor_divide", 2, real}, {"trunc_divide", 2, real}, {"remainder", 2, real}, {"fmod", 2, real},
    {"nextafter", 2, to_real_float}, {"hypot", 2, to_real_float}, {"copysign", 2, to_real_float},
    {"complex", 2, special}, {"bitwise_and", 2, integer, "&", 6}, {"bitwise_or", 2, integer, "|", 4},
    {"bitwise_xor", 2, integer, "^", 5}, {"shift_left", 2, integer, "<<", 9},
    {"shift_right", 2, integer, ">>", 9}, {"polygamma", 2, to_real_float},
    {"zeta", 2, to_real_float},
    {"neg", 1, number, "-", 12}, {"add", 2, same, "+", 10}, {"sub", 2, same, "-", 10},
    {"mul", 2, same, "*", 11}, {"div", 2, to_float, "/", 11}, {"lt", 2, order, "<", 8},
    {"le", 2, order, "<=", 8}, {"gt", 2, order, ">", 8}, {"ge", 2, order, ">=", 8},
    {"eq", 2, comparison, "==", 7}, {"ne", 2, comparison, "!=", 7},
    {"logical_and", 2, logical, "&&", 3}, {"logical_or", 2, logical, "||", 2},
    {"logical_not", 1, logical, "!", 12}, {"select", 3, special}, {"cast", 1, special}}};
// clang-format on

static_assert(kTable[static_cast<size_t>(Function::cast)].name == "cast");
static_assert(kTable[static_cast<size_t>(Function::floor)].name == "floor");
static_assert(kTable[static_cast<size_t>(Function::complex)].name == "complex");
static_assert(kTable[static_cast<size_t>(Function::add)].name == "add");

}  // namespace

const FunctionInfo& info_of(Function function) {
  COMPOSIT_ASSERT(function < Function::count_, "no such function");
  return kTable[static_cast<size_t>(function)];
}

std::optional<Function> function_from_name(std::string_view name) {
  const auto found = std::find_if(kTable.begin(), kTable.end(),
                                  [&](const FunctionInfo& info) { return info.name == name; });
  if (found == kTable.end()) return std::nullopt;
  return static_cast<Function>(found - kTable.begin());
}

}  // namespace composit
