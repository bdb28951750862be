#include "composit/interchange/pt2_read/symbols.h"

#include <string>
#include <vector>

#include "composit/ir/error.h"

namespace composit::pt2_read {
namespace {

// An expression, and its number in the example.
struct Hinted {
  std::string text;
  int64_t number = 0;
};

void collect(const Json& json, std::vector<Hinted>& found) {
  if (json.is_object() && json.contains("expr_str")) {
    const Json* hint = find_field(json, "hint");
    if (hint != nullptr && hint->is_object() && hint->contains("as_int"))
      found.push_back({text_of(field(json, "expr_str")), int_of(field(*hint, "as_int"))});
    return;
  }
  if (json.is_structured())
    for (const auto& [key, item] : json.items()) collect(item, found);
}

bool is_symbol(const std::string& text) { return text.starts_with("Symbol("); }

}  // namespace

Sizes example_sizes(const Json& graph) {
  std::vector<Hinted> hinted;
  collect(field(graph, "tensor_values"), hinted);
  if (const Json* numbers = find_field(graph, "sym_int_values")) collect(*numbers, hinted);
  Sizes sizes;
  for (const Hinted& one : hinted)
    for (const std::string& name : symbols_of(one.text))
      if (is_symbol(one.text)) sizes.set(name, one.number);
  // A size that is only there as a multiple: "Mul(Integer(2), Symbol('s0'))".
  constexpr int64_t kTried = 100'000;
  for (const Hinted& one : hinted) {
    const auto names = symbols_of(one.text);
    if (names.size() != 1 || sizes.values().contains(*names.begin())) continue;
    for (int64_t tried = 0; tried <= one.number && tried <= kTried; ++tried)
      if (evaluate(one.text, {{*names.begin(), tried}}) == one.number) {
        sizes.set(*names.begin(), tried);
        break;
      }
  }
  return sizes;
}

}  // namespace composit::pt2_read
