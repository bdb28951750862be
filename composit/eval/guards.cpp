#include "composit/eval/guards.h"

#include <cmath>
#include <complex>

#include "composit/eval/evaluate.h"
#include "composit/ir/print.h"
#include "composit/op/compute_type.h"

namespace composit {
namespace {

using Arrays = std::vector<Array>;
using Answer = std::complex<double>;

// The answer for a tensor of one element.
Answer number_of(const Array& array) {
  const Array plain = array.contiguous();
  return with_storage(plain.type().dtype, [&]<class S>(std::type_identity<S>) {
    return convert<Answer>(to_compute(*reinterpret_cast<const S*>(plain.data())));
  });
}

// The number that `node` asks about.
Answer answer_to(const Guard& guard, const Node& node, const Arrays& operands) {
  if (!guard.answer) return number_of(operands.at(0));
  LazyTensors blocks;
  Values values;
  for (const Array& operand : operands) {
    const Type type = tensor_type(operand.type().dtype, operand.type().sizes);
    blocks.emplace_back(input(std::to_string(blocks.size()), type, InputKind::block));
    values.set(blocks.back(), operand);
  }
  const Call call = call_of(node, guard.schema, blocks);
  const LazyTensor answer = guard.answer({.call = &call});
  return answer.defined() ? number_of(evaluate({answer}, values)[0]) : Answer(0);
}

[[noreturn]] void fail(const Node& node, const std::string& what) {
  throw UserError("[evaluate] guard '" + node.op().str() + "' " + what);
}

void expect_captured(const Guard& guard, const Node& node, const Arrays& operands,
                     const Answer& given) {
  const Scalar expected = expected_of(guard, node);
  const Answer captured = std::visit([](auto x) { return convert<Answer>(x); }, expected.value);
  const auto is_nan = [](const Answer& x) { return x != x; };
  if (given == captured || (is_nan(given) && is_nan(captured))) return;
  const auto tolerance_of = []<class S>(std::type_identity<S>) { return fl::kTolerance<S>; };
  // The number was computed in another order; comparisons are exact.
  const double allowed = guard.answer ? 0 : with_storage(operands[0].type().dtype, tolerance_of);
  if (!(std::abs(given - captured) <= allowed * std::abs(captured)))
    fail(node, "gave another number than " + print(Attribute(expected)) + ", which was captured");
}

}  // namespace

void check_guard(const Guard& guard, const Node& node, const Arrays& operands) {
  if (guard.expected == Guard::Expected::types) return;
  const Answer given = answer_to(guard, node, operands);
  if (guard.expected == Guard::Expected::captured)
    return expect_captured(guard, node, operands, given);
  if ((given == Answer(0)) != (guard.expected == Guard::Expected::zero))
    fail(node, std::string(guard.failure));
}

}  // namespace composit
