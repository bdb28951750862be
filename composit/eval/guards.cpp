#include "composit/eval/guards.h"

#include <cmath>
#include <complex>

#include "composit/eval/evaluate.h"
#include "composit/ir/print.h"
#include "composit/op/compute_type.h"
#include "composit/ops/functions.h"

namespace composit {
namespace {

using Arrays = std::vector<Array>;
using Answer = std::complex<double>;

const Symbol kNumber("aten::_local_scalar_dense"), kEqual("aten::equal"),
    kAllClose("aten::allclose"), kErrors("aten::_linalg_check_errors"),
    kTypes("aten::_assert_tensor_metadata"), kAssert("aten::_assert_async"),
    kAssertMessage("aten::_assert_async.msg");

// The answer for a tensor of one element.
Answer number_of(const Array& array) {
  const Array plain = array.contiguous();
  return with_storage(plain.type().dtype, [&]<class S>(std::type_identity<S>) {
    return convert<Answer>(to_compute(*reinterpret_cast<const S*>(plain.data())));
  });
}

// `truth` of blocks that have the values of `operands`.
template <class Truth>
bool holds(const Arrays& operands, Truth truth) {
  LazyTensors blocks;
  Values values;
  for (const Array& operand : operands) {
    const Type type = tensor_type(operand.type().dtype, operand.type().sizes);
    blocks.emplace_back(input(std::to_string(blocks.size()), type, InputKind::block));
    values.set(blocks.back(), operand);
  }
  const LazyTensor all = apply_one("aten::all", {truth(blocks)});
  return number_of(evaluate({all}, values)[0]) != Answer(0);
}

bool is_equal(const Arrays& operands) {
  return operands[0].type().sizes == operands[1].type().sizes &&
         holds(operands, [](const LazyTensors& x) { return eq(x[0], x[1]); });
}

bool is_close(const Node& node, const Arrays& operands) {
  return holds(operands, [&](const LazyTensors& x) {
    return apply_one("aten::isclose",
                     {x[0], x[1], node.attribute("rtol").as<double>(),
                      node.attribute("atol").as<double>(), node.attribute("equal_nan").as<bool>()});
  });
}

Answer answer_of(const Node& node, const Arrays& operands) {
  if (node.op() == kEqual) return is_equal(operands) ? 1 : 0;
  if (node.op() == kAllClose) return is_close(node, operands) ? 1 : 0;
  return number_of(operands[0]);
}

[[noreturn]] void fail(const Node& node, const std::string& what) {
  throw UserError("[evaluate] guard '" + node.op().str() + "' " + what);
}

void expect_answer(const Node& node, const Arrays& operands) {
  const Attribute& expected = node.find_run("expected")->as<List>().items.at(0);
  const Answer captured = std::visit([](auto x) { return convert<Answer>(x); },
                                     expected.as<Scalar>().value),
               given = answer_of(node, operands);
  const auto is_nan = [](const Answer& x) { return x != x; };
  if (given == captured || (is_nan(given) && is_nan(captured))) return;
  const bool is_number = node.op() == kNumber;
  const auto tolerance_of = []<class S>(std::type_identity<S>) { return fl::kTolerance<S>; };
  // The number was computed in another order.
  const double allowed = is_number ? with_storage(operands[0].type().dtype, tolerance_of) : 0;
  if (!(std::abs(given - captured) <= allowed * std::abs(captured)))
    fail(node, "gave another number than " + print(expected) + ", which was captured");
}

}  // namespace

bool is_guard(const Node& node) {
  if (node.op() == kNumber || node.op() == kEqual || node.op() == kAllClose)
    return node.find_run("expected") != nullptr;
  return node.op() == kErrors || node.op() == kTypes || node.op() == kAssert ||
         node.op() == kAssertMessage;
}

void check_guard(const Node& node, const Arrays& operands) {
  if (node.op() == kTypes) return;  // types are fixed
  if (node.op() == kErrors) {
    if (!holds(operands, [](const LazyTensors& info) { return eq(info[0], 0); }))
      fail(node, "found a matrix that has no such factors");
  } else if (node.op() == kAssert || node.op() == kAssertMessage) {
    if (number_of(operands[0]) == Answer(0)) fail(node, "does not hold");
  } else {
    expect_answer(node, operands);
  }
}

}  // namespace composit
