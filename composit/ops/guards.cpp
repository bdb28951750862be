#include "composit/ops/guards.h"

#include <algorithm>
#include <vector>

#include "composit/ops/functions.h"

namespace composit {
namespace {

using Expected = Guard::Expected;

std::vector<Guard> all_guards() {
  return {
      {.schema = parse_schema("aten::_local_scalar_dense(Tensor self) -> Scalar"),
       .expected = Expected::captured},
      {.schema = parse_schema("aten::equal(Tensor self, Tensor other) -> bool"),
       .expected = Expected::captured,
       .answer =
           [](LazyTensor x, LazyTensor y) {
             return x.sizes() == y.sizes() ? apply_one("aten::all", {eq(x, y)}) : LazyTensor();
           }},
      {.schema = parse_schema("aten::allclose(Tensor self, Tensor other, float rtol=1e-05, float "
                              "atol=1e-08, bool equal_nan=False) -> bool"),
       .expected = Expected::captured,
       .answer =
           [](LazyTensor x, LazyTensor y, double rtol, double atol, bool equal_nan) {
             return apply_one("aten::all",
                              {apply_one("aten::isclose", {x, y, rtol, atol, equal_nan})});
           }},
      {.schema = parse_schema(
           "aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()"),
       .expected = Expected::zero,
       .answer = [](LazyTensor info) { return sum(ne(info, 0)); },
       .failure = "found a matrix that has no such factors"},
      {.schema = parse_schema(
           "aten::_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, "
           "ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()"),
       .expected = Expected::types},
      {.schema = parse_schema("aten::_assert_async(Tensor self) -> ()"),
       .expected = Expected::nonzero,
       .failure = "does not hold"},
      {.schema = parse_schema("aten::_assert_async.msg(Tensor self, str assert_msg) -> ()"),
       .expected = Expected::nonzero,
       .failure = "does not hold"},
  };
}

}  // namespace

const Guard* guard_of(const Node& node) {
  static const auto* guards = new auto(all_guards());  // outlives static destructors
  const auto found = std::find_if(guards->begin(), guards->end(), [&](const Guard& guard) {
    return guard.schema.name == node.op();
  });
  if (found == guards->end()) return nullptr;
  const bool asks = found->expected != Expected::captured || node.find_run("expected") != nullptr;
  return asks ? &*found : nullptr;
}

Scalar expected_of(const Guard& guard, const Node& node) {
  if (guard.expected != Expected::captured) return {};
  return node.find_run("expected")->as<List>().items.at(0).as<Scalar>();
}

}  // namespace composit
