#include "composit/interchange/pt2_read/numbers.h"

#include <algorithm>
#include <map>
#include <string>

#include "composit/ir/error.h"

namespace composit::pt2_read {
namespace {

[[noreturn]] void refuse_overflow() { throw UserError("a number of more than 64 bits"); }

int64_t int_in(const Attribute& value) {
  if (const bool* truth = value.get_if<bool>()) return *truth ? 1 : 0;
  if (const int64_t* integer = value.get_if<int64_t>()) return *integer;
  throw UserError("a number that is no integer follows from sizes");
}

void expect_divisor(int64_t b) {
  if (b == 0) throw UserError("a division by zero");
  // The least integer has no opposite.
  if (b == -1) throw UserError("a division by -1");
}
int64_t floor_quotient(int64_t a, int64_t b) {
  expect_divisor(b);
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

using Binary = Attribute (*)(int64_t, int64_t);
using Unary = Attribute (*)(int64_t);

Attribute sum(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) refuse_overflow();
  return result;
}
Attribute difference(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_sub_overflow(a, b, &result)) refuse_overflow();
  return result;
}
Attribute product(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) refuse_overflow();
  return result;
}
Attribute remainder(int64_t a, int64_t b) {
  return difference(a, product(floor_quotient(a, b), b).as_int());
}

const std::map<std::string_view, Binary>& binaries() {
  static const auto* table = new std::map<std::string_view, Binary>{
      {"_operator.add", sum},
      {"_operator.sub", difference},
      {"_operator.mul", product},
      {"_operator.floordiv", [](int64_t a, int64_t b) { return Attribute(floor_quotient(a, b)); }},
      {"_operator.mod", remainder},
      {"_operator.eq", [](int64_t a, int64_t b) { return Attribute(a == b); }},
      {"_operator.ne", [](int64_t a, int64_t b) { return Attribute(a != b); }},
      {"_operator.lt", [](int64_t a, int64_t b) { return Attribute(a < b); }},
      {"_operator.le", [](int64_t a, int64_t b) { return Attribute(a <= b); }},
      {"_operator.gt", [](int64_t a, int64_t b) { return Attribute(a > b); }},
      {"_operator.ge", [](int64_t a, int64_t b) { return Attribute(a >= b); }},
      {"torch.sym_min", [](int64_t a, int64_t b) { return Attribute(std::min(a, b)); }},
      {"torch.sym_max", [](int64_t a, int64_t b) { return Attribute(std::max(a, b)); }}};
  return *table;
}

const std::map<std::string_view, Unary>& unaries() {
  static const auto* table = new std::map<std::string_view, Unary>{
      {"_operator.neg", [](int64_t a) { return difference(0, a); }},
      {"torch.sym_not", [](int64_t a) { return Attribute(a == 0); }},
      {"torch.sym_float", [](int64_t a) { return Attribute(static_cast<double>(a)); }},
      {"torch.sym_int", [](int64_t a) { return Attribute(a); }},
      {"math.trunc", [](int64_t a) { return Attribute(a); }},
      {"math.floor", [](int64_t a) { return Attribute(a); }},
      {"math.ceil", [](int64_t a) { return Attribute(a); }}};
  return *table;
}

// True or false stays so.
std::optional<Attribute> of_truths(std::string_view target, const std::vector<Attribute>& given) {
  const bool truths = given.size() == 2 && given[0].get_if<bool>() && given[1].get_if<bool>();
  if (truths && target == "_operator.and_")
    return Attribute(given[0].as<bool>() && given[1].as<bool>());
  if (truths && target == "_operator.or_")
    return Attribute(given[0].as<bool>() || given[1].as<bool>());
  return std::nullopt;
}

}  // namespace

std::optional<Attribute> number_call(std::string_view target, const std::vector<Attribute>& given) {
  if (const auto truth = of_truths(target, given)) return truth;
  if (const auto binary = binaries().find(target); binary != binaries().end()) {
    if (given.size() != 2) throw UserError("it takes two numbers");
    return binary->second(int_in(given[0]), int_in(given[1]));
  }
  if (const auto unary = unaries().find(target); unary != unaries().end()) {
    if (given.size() != 1) throw UserError("it takes one number");
    return unary->second(int_in(given[0]));
  }
  return std::nullopt;
}

}  // namespace composit::pt2_read
