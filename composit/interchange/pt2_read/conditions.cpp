#include "composit/interchange/pt2_read/conditions.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "composit/interchange/pt2_read/numbers.h"
#include "composit/ir/error.h"
#include "composit/ir/literal.h"

namespace composit::pt2_read {
namespace {

constexpr int kDeepestCondition = 100;

// Reads Python's expressions of integers by descent.
class ConditionReader {
 public:
  ConditionReader(std::string_view text, const SizeOfAxis& size) : text_(text), size_(size) {}

  bool comparison() {
    const int64_t left = sum(0);
    skip();
    for (const auto& [sign, target] : kComparisons)
      if (take(sign)) {
        const int64_t right = sum(0);
        skip();
        if (at_ != text_.size()) fail();
        return number_call(target, {Attribute(left), Attribute(right)})->as<bool>();
      }
    fail();
  }

 private:
  // The longer ones first.
  static constexpr std::pair<std::string_view, std::string_view> kComparisons[] = {
      {"==", "_operator.eq"}, {"!=", "_operator.ne"}, {"<=", "_operator.le"},
      {">=", "_operator.ge"}, {"<", "_operator.lt"},  {">", "_operator.gt"}};

  [[noreturn]] void fail() const {
    throw UserError("a condition on sizes that is not read: " + std::string(text_));
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view word) {
    skip();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) fail();
  }
  static int64_t applied(std::string_view target, int64_t a, int64_t b) {
    return number_call(target, {Attribute(a), Attribute(b)})->as_int();
  }

  int64_t sum(int depth) {
    if (depth > kDeepestCondition) fail();
    int64_t value = product(depth);
    for (;;) {
      if (take("+"))
        value = applied("_operator.add", value, product(depth));
      else if (take("-"))
        value = applied("_operator.sub", value, product(depth));
      else
        return value;
    }
  }
  int64_t product(int depth) {
    int64_t value = factor(depth);
    for (;;) {
      if (take("//"))
        value = applied("_operator.floordiv", value, factor(depth));
      else if (take("%"))
        value = applied("_operator.mod", value, factor(depth));
      else if (take("*"))
        value = applied("_operator.mul", value, factor(depth));
      else
        return value;
    }
  }
  int64_t factor(int depth) {
    if (depth > kDeepestCondition) fail();
    if (take("-")) return applied("_operator.sub", 0, factor(depth + 1));
    if (take("(")) {
      const int64_t value = sum(depth + 1);
      expect(")");
      return value;
    }
    for (const auto& [name, target] :
         {std::pair("max(", "torch.sym_max"), std::pair("min(", "torch.sym_min")})
      if (take(name)) {
        int64_t value = sum(depth + 1);
        while (take(",")) value = applied(target, value, sum(depth + 1));
        expect(")");
        return value;
      }
    if (take("L[")) return size();
    return integer();
  }

  int64_t integer() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    const std::optional<int64_t> value = parse_int(text_.substr(begin, at_ - begin));
    if (!value) fail();
    return *value;
  }
  // 'x' or 0, behind a bracket that is open.
  std::string key() {
    std::string text;
    if (take("'")) {
      const size_t end = text_.find('\'', at_);
      if (end == std::string_view::npos) fail();
      text = text_.substr(at_, end - at_);
      at_ = end + 1;
    } else {
      text = std::to_string(integer());
    }
    expect("]");
    return text;
  }
  int64_t size() {
    AxisOf axis{key(), {}, 0};
    while (take("[")) axis.keys.push_back(key());
    expect(".size()[");
    axis.axis = integer();
    expect("]");
    return size_(axis);
  }

  std::string_view text_;
  const SizeOfAxis& size_;
  size_t at_ = 0;
};

}  // namespace

bool AxisOf::operator<(const AxisOf& other) const {
  return std::tie(argument, keys, axis) < std::tie(other.argument, other.keys, other.axis);
}

bool holds(const std::string& condition, const SizeOfAxis& size) {
  return ConditionReader(condition, size).comparison();
}

std::vector<AxisOf> axes_in(const std::string& condition) {
  std::set<AxisOf> axes;
  constexpr int64_t kAny = 64;  // divides by what divisors are
  holds(condition, [&](const AxisOf& axis) {
    axes.insert(axis);
    return kAny;
  });
  return {axes.begin(), axes.end()};
}

}  // namespace composit::pt2_read
