// Tests that NumPy's cases cannot make: graphs, names, values that travel with inputs, operations
// of one's own, gradients, and messages to users.
#include "composit/numpy/numpy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "composit/ad/chain_rule.h"
#include "composit/ir/graph.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/transform.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "tests/counting_backend.h"
#include "tests/ops/differences.h"
#include "tests/user_error.h"

namespace composit {
namespace {

namespace cnp = composit::numpy;
using cnp::NdArray;
using cnp::slice;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> values(const NdArray& x) { return elements<double>(cnp::evaluate(x)); }

TEST(numpy_arrays, an_array_knows_what_leads_to_it) {
  const NdArray a = cnp::ones({5, 10}, DType::float32);
  const NdArray b = cnp::random::random({10});
  const NdArray y = cnp::exp(a + b);
  EXPECT_EQ(a.graph().size(), 1u);
  EXPECT_EQ(b.graph().size(), 1u);
  EXPECT_EQ(y.graph().size(), 4u);
  EXPECT_EQ(y.dtype(), DType::float32);
  EXPECT_EQ(y.shape(), (Ints{5, 10}));
}

// The product of seed-features' E2: the graph depends on names, not on what inputs hold.
NdArray product_of(const NdArray& x) {
  return cnp::matmul(x, cnp::asarray({{1.0, 2.0}, {3.0, 4.0}}, "w")) + cnp::ones({2});
}

TEST(numpy_arrays, a_named_array_is_an_input_by_name_and_type) {
  const NdArray one = cnp::asarray({{1.0, 2.0}}, "x"), other = cnp::asarray({{5.0, 6.0}}, "x");
  const LazyTensor expected = product_of(one);
  EXPECT_EQ(product_of(other).hash(), expected.hash());
  EXPECT_EQ(product_of(cnp::ndarray({1, 2}, DType::float64, "x")).hash(), expected.hash());
  EXPECT_EQ(product_of(cnp::zeros({1, 2}, DType::float64, "x")).hash(), expected.hash());
  EXPECT_NE(product_of(cnp::asarray({{1.0, 2.0}}, "y")).hash(), expected.hash());
  EXPECT_NE(product_of(cnp::zeros({1, 2}, DType::float32, "x")).hash(), expected.hash());
  EXPECT_EQ(one.name(), "x");
  EXPECT_THAT(values(product_of(one)), ElementsAre(8, 11));
  EXPECT_THAT(values(product_of(other)), ElementsAre(24, 35));
}

TEST(numpy_arrays, attributes_are_part_of_identity) {
  const NdArray x = cnp::asarray({{1.0, 2.0}, {3.0, 4.0}}, "x");
  EXPECT_NE(cnp::sum(x, 0).hash(), cnp::sum(x, 1).hash());
  const auto [rows, columns] = cnp::evaluate(cnp::sum(x, 1), cnp::sum(x, 0));
  EXPECT_THAT(elements<double>(rows), ElementsAre(3, 7));
  EXPECT_THAT(elements<double>(columns), ElementsAre(4, 6));
}

TEST(numpy_arrays, equal_inputs_that_hold_different_values_are_refused_together) {
  const NdArray sum = cnp::asarray({1.0}, "x") + cnp::asarray({2.0}, "x");
  EXPECT_THAT(user_error([&] { cnp::evaluate(sum); }).value_or(""),
              HasSubstr("two inputs named 'x' hold different values"));
}

TEST(numpy_arrays, an_input_without_a_value_is_given_one) {
  const NdArray x = cnp::ndarray({2}, DType::float64, "x");
  const NdArray y = 3 * x;
  EXPECT_THAT(user_error([&] { cnp::evaluate(y); }).value_or(""), HasSubstr("'x' has no value"));
  const Array given = cnp::evaluate(cnp::asarray({1.0, 2.0}));
  EXPECT_THAT(elements<double>(evaluate({y}, {{x, given}})[0]), ElementsAre(3, 6));
}

TEST(numpy_arrays, a_given_value_goes_before_the_one_held) {
  const NdArray x = cnp::asarray({1.0}, "x");
  const Array given = cnp::evaluate(cnp::asarray({7.0}));
  EXPECT_THAT(elements<double>(evaluate({x + 1}, {{x, given}})[0]), ElementsAre(8));
}

TEST(numpy_arrays, graphs_print_and_read_back) {
  const NdArray x = cnp::asarray({{1.0, 2.0}, {3.0, 4.0}}, "x");
  cnp::random::Generator rng = cnp::random::default_rng(3);
  const NdArray y = cnp::set_item(x, {slice(1), -1}, rng.random({1})) % 2;
  const Graph graph({.inputs = {x}, .outputs = {y}});
  EXPECT_TRUE(parse(print(graph)) == graph);
}

TEST(numpy_arrays, intermediate_values_are_there_to_look_at) {
  const NdArray x = cnp::asarray({1.0, 2.0}, "x");
  const NdArray hidden = x * x;
  const Values all = cnp::evaluate_all({cnp::sum(hidden)});
  EXPECT_THAT(elements<double>(all[hidden]), ElementsAre(1, 4));
}

TEST(numpy_arrays, evaluation_shares_and_takes_any_backend) {
  const NdArray sum = cnp::asarray({1.0, 2.0}, "a") + cnp::asarray({0.5, 0.5}, "b");
  const test::CountingBackend backend;
  const auto results = cnp::evaluate({cnp::exp(sum), cnp::tanh(sum)}, backend);
  EXPECT_EQ(results.size(), 2u);
  EXPECT_EQ(backend.nodes, 5u);  // a, b, their sum once, exp, tanh
}

TEST(numpy_arrays, numbers_are_weak_on_either_side) {
  const NdArray x = cnp::ones({2}, DType::float32), n = cnp::ones({2}, DType::uint8);
  EXPECT_EQ((2.5 * x).dtype(), DType::float32);
  EXPECT_EQ((x + 1).dtype(), DType::float32);
  EXPECT_EQ((x * std::complex<double>(0, 1)).dtype(), DType::complex64);
  EXPECT_EQ((1 - n).dtype(), DType::uint8);
  EXPECT_EQ((n / 2).dtype(), DType::float64);
  EXPECT_EQ((n * 0.5F).dtype(), DType::float64);
  EXPECT_EQ((x > 0).dtype(), DType::bool_);
  EXPECT_EQ((LazyTensor(n) + x).dtype(), DType::float32);
  EXPECT_EQ((cnp::ones({2}, DType::int64) + LazyTensor(x)).dtype(), DType::float64);
}

// composit has functions of tensors by the same names, which follow torch.
TEST(numpy_arrays, names_without_a_namespace_are_numpys_for_its_arrays) {
  const NdArray x = cnp::ones({2}, DType::int64);
  EXPECT_EQ(exp(x).dtype(), DType::float64);  // torch's is float32
  EXPECT_EQ(mean(x).dtype(), DType::float64);
  EXPECT_EQ(pow(x, 2.0).dtype(), DType::float64);
  EXPECT_EQ(where(x > 0, x, 0.5).dtype(), DType::float64);
  EXPECT_EQ(maximum(LazyTensor(cnp::ones({2}, DType::float32)), x).dtype(), DType::float64);
  EXPECT_EQ((LazyTensor(cnp::ones({2}, DType::float32)) * x).dtype(), DType::float64);
  EXPECT_EQ(cumsum(cnp::ones({2}, DType::uint8), 0).dtype(), DType::uint64);
}

TEST(numpy_arrays, compound_assignment_keeps_the_dtype) {
  NdArray x = cnp::asarray({1.5F, 2.0F}, "x");
  const NdArray before = x;
  x += cnp::asarray({1.0, 2.0});
  x *= 2;
  EXPECT_EQ(x.dtype(), DType::float32);
  EXPECT_THAT(values(x), ElementsAre(5, 8));
  EXPECT_THAT(values(before), ElementsAre(1.5, 2));
  NdArray n = cnp::asarray({1, 2});
  EXPECT_THAT(user_error([&] { n /= 2; }).value_or(""),
              HasSubstr("[numpy.divide] expected a result of int64[2], in place of an operand, "
                        "received float64[2]"));
}

TEST(numpy_arrays, a_copied_input_holds_its_value) {
  const NdArray x = cnp::asarray({1.0}, "x"), y = x + 1;
  const Graph graph = annotate(y.graph(), {{x.node.get(), {Symbol("note"), "here", -1}}});
  EXPECT_THAT(values(graph.outputs()[0]), ElementsAre(2));
}

TEST(numpy_arrays, lists_become_arrays) {
  EXPECT_EQ(cnp::asarray({{1, 2, 3}, {4, 5, 6}}).shape(), (Ints{2, 3}));
  EXPECT_EQ(cnp::asarray({1, 2}).dtype(), DType::int64);
  EXPECT_EQ(cnp::asarray({1.5F}).dtype(), DType::float32);
  EXPECT_EQ(cnp::asarray({true, false}).dtype(), DType::bool_);
  EXPECT_EQ(cnp::asarray(std::vector<std::vector<bool>>{{true}, {false}}).shape(), (Ints{2, 1}));
  EXPECT_EQ(cnp::asarray({{{1.0}, {2.0}}}).shape(), (Ints{1, 2, 1}));
  EXPECT_EQ(cnp::asarray(2.5).shape(), Ints{});
  EXPECT_THAT(values(cnp::asarray({{1, 2}, {3, 4}})), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(user_error([] {
                cnp::asarray({{1, 2}, {3}});
              }).value_or(""),
              HasSubstr("[numpy.asarray] expected lists of one length, received 2 and 1"));
}

TEST(numpy_indexing, reads_as_numpys) {
  const NdArray x = cnp::reshape(cnp::arange(24), {2, 3, 4});
  EXPECT_THAT(values(x[{0, slice(1, 3), -1}]), ElementsAre(7, 11));
  EXPECT_THAT(values(x[1][0]), ElementsAre(12, 13, 14, 15));
  EXPECT_EQ((x[{cnp::ellipsis, cnp::newaxis, slice({}, {}, 2)}].shape()), (Ints{2, 3, 1, 2}));
  EXPECT_THAT(values(x[{0, 0, cnp::asarray({3, 0})}]), ElementsAre(3, 0));
  EXPECT_EQ(x[cnp::asarray({{0, 1}, {1, 1}})].shape(), (Ints{2, 2, 3, 4}));
  EXPECT_EQ(cnp::split(x, Ints{2}, 2)[1].shape(), (Ints{2, 3, 2}));
  EXPECT_EQ(cnp::split(x, {2}, 2).size(), 2u);  // before place 2, not in two parts
}

TEST(numpy_indexing, set_item_leaves_its_argument_as_it_was) {
  const NdArray x = cnp::asarray({1.0, 2.0, 3.0}, "x");
  const NdArray y = cnp::set_item(x, {slice(1, {})}, 9);
  EXPECT_THAT(values(x), ElementsAre(1, 2, 3));
  EXPECT_THAT(values(y), ElementsAre(1, 9, 9));
}

TEST(numpy_indexing, set_item_of_slices_is_a_chain_of_scatters) {
  const NdArray x = cnp::ndarray({5, 4}, DType::float32, "x");
  std::vector<std::string> names;
  const Graph graph = cnp::set_item(x, {0, slice(2, {})}, 1).graph();
  for (const NodePtr& node : graph.nodes()) names.push_back(node->op().str());
  EXPECT_THAT(names, testing::IsSupersetOf({"aten::slice_scatter", "aten::select_scatter"}));
  EXPECT_THAT(names, testing::Not(testing::Contains("aten::index_put")));
}

TEST(numpy_indexing, a_mask_that_depends_on_values_serves_set_item_and_where) {
  const NdArray x = cnp::asarray({-1.0, 2.0, -3.0}, "x");
  EXPECT_THAT(values(cnp::set_item(x, x < 0, 0)), ElementsAre(0, 2, 0));
  EXPECT_THAT(values(cnp::where(x < 0, 0, x)), ElementsAre(0, 2, 0));
  EXPECT_THAT(user_error([&] { x[x < 0]; }).value_or(""),
              HasSubstr("[numpy.get_item] expected sizes that do not depend on values"));
}

using Function = std::function<NdArray(const NdArray&)>;
struct Differentiable {
  const char* name;
  Function function;
};

// The gradient of a weighted sum of all results, against finite differences.
std::string gradient_problem(const Function& function) {
  cnp::random::Generator rng = cnp::random::default_rng(11);
  const NdArray x = cnp::asarray(cnp::evaluate(rng.uniform(0.3, 0.9, {2, 3, 4})), "x");
  const NdArray y = function(x);
  const NdArray loss = cnp::sum(y * rng.uniform(0.5, 1.5, y.shape()));
  return compare_with_differences(loss, {x}, {x}, {cnp::evaluate(x)}, grad(loss, {x}));
}

TEST(numpy_gradients, agree_with_finite_differences) {
  const NdArray few = cnp::asarray({{0, 2}, {-1, 0}});
  const NdArray weights = cnp::asarray({0.5, 2.0, 1.0, 0.25});
  const std::vector<Differentiable> functions = {
      {"cbrt", [](auto& x) { return cnp::cbrt(x); }},
      {"sinc", [](auto& x) { return cnp::sinc(x); }},
      {"sign, heaviside", [](auto& x) { return x * cnp::sign(x) + x * cnp::heaviside(x, 1); }},
      {"arctan2", [](auto& x) { return cnp::arctan2(x, 2); }},
      {"hypot", [](auto& x) { return cnp::hypot(x, x[0]); }},
      {"logaddexp", [](auto& x) { return cnp::logaddexp(x, 1 - x); }},
      {"power", [](auto& x) { return cnp::power(x, x) + cnp::power(2, x) + cnp::power(x, 3); }},
      {"floor_divide", [](auto& x) { return x * cnp::floor_divide(x, 0.25); }},
      {"remainder", [](auto& x) { return cnp::remainder(x, 0.35); }},
      {"clip", [](auto& x) { return cnp::clip(x, 0.4, 0.7); }},
      {"where", [](auto& x) { return cnp::where(x > 0.6, x * x, 3 * x); }},
      {"nan_to_num", [](auto& x) { return cnp::nan_to_num(x); }},
      {"prod",
       [](auto& x) {
         return cnp::prod(x, {0, 2});
       }},
      {"mean", [](auto& x) { return cnp::mean(x, 1, {.keepdims = true}); }},
      {"var",
       [](auto& x) {
         return cnp::var(x, {0, 1}, {.ddof = 1});
       }},
      {"std", [](auto& x) { return cnp::std(x); }},
      {"nanvar", [](auto& x) { return cnp::nanvar(x, -1); }},
      {"nanmean", [](auto& x) { return cnp::nanmean(x, 0); }},
      {"max", [](auto& x) { return cnp::max(x, -1); }},
      {"ptp", [](auto& x) { return cnp::ptp(x, 1); }},
      {"median",
       [](auto& x) {
         return cnp::median(x, {0, 2});
       }},
      {"quantile", [](auto& x) { return cnp::quantile(x, 0.3, 2); }},
      {"cov", [](auto& x) { return cnp::cov(x[0]); }},
      {"convolve",
       [](auto& x) {
         return cnp::convolve(x[{0, 0}], x[{1, 0}], "same");
       }},
      {"interp",
       [](auto& x) {
         return cnp::interp(x, cnp::arange(3), x[{0, 0, slice(3)}]);
       }},
      {"average", [&](auto& x) { return cnp::average(x, 2, {.weights = weights}); }},
      {"cumsum", [](auto& x) { return cnp::cumsum(x); }},
      {"cumprod", [](auto& x) { return cnp::cumprod(x, 2); }},
      {"diff", [](auto& x) { return cnp::diff(x, 2); }},
      {"sort", [](auto& x) { return cnp::sort(x, 1); }},
      {"get_item",
       [](auto& x) {
         return x[{slice({}, {}, -1), cnp::newaxis, 1, slice(0, 3, 2)}];
       }},
      {"get_item by arrays",
       [&](auto& x) {
         return x[{0, cnp::ellipsis, few}];
       }},
      {"set_item",
       [](auto& x) {
         return cnp::set_item(x, {0, slice(1, {})}, x[{1, 0}] * 2);
       }},
      {"set_item by slices",
       [](auto& x) {
         return cnp::set_item(x, {slice({}, {}, 2), 1, slice(1, 3)}, 2 * x[{0, 0, slice(2)}]);
       }},
      {"set_item by a mask",
       [](auto& x) {
         return cnp::set_item(x, x > 0.6, x[{0, 0, 0}]);
       }},
      {"take", [&](auto& x) { return cnp::take(x, few, 1); }},
      {"take_along_axis",
       [&](auto& x) {
         return cnp::take_along_axis(x[{0, slice(), slice(2)}], few, 0);
       }},
      {"concatenate",
       [](auto& x) {
         return cnp::concatenate({x, x * x}, 1);
       }},
      {"split", [](auto& x) { return cnp::split(x, 2, 2)[1]; }},
      {"tile, repeat",
       [](auto& x) {
         return cnp::tile(x, {2, 1, 1}) * cnp::repeat(x, 2, 0);
       }},
      {"roll, rot90", [](auto& x) { return cnp::rot90(cnp::roll(x, 1)); }},
      {"pad", [](auto& x) { return cnp::pad(x, 1, "reflect") + cnp::pad(x, 1); }},
      {"einsum",
       [](auto& x) {
         return cnp::einsum("ijk,ilk->jl", {x, x});
       }},
      {"tensordot",
       [](auto& x) {
         return cnp::tensordot(x, x, {{0, 2}, {0, 2}});
       }},
      {"matmul", [](auto& x) { return cnp::matmul(x, cnp::swapaxes(x, 1, 2)); }},
      {"trace, triu", [](auto& x) { return cnp::trace(cnp::triu(x), 1, 1, 2); }},
      {"norm", [](auto& x) { return cnp::linalg::norm(x, 1, {.ord = 3}); }},
      {"vdot, outer", [](auto& x) { return cnp::vdot(x, x) * cnp::outer(x[0], x[1]); }},
      {"kron, cross",
       [](auto& x) {
         return cnp::kron(x[0],
                          cnp::cross(x[{0, slice(), slice(3)}], x[{1, slice(), slice(1, {})}]));
       }},
  };
  for (const auto& [name, function] : functions) EXPECT_EQ(gradient_problem(function), "") << name;
}

TEST(numpy_gradients, casts_pass_them_on_in_the_dtype_of_the_input) {
  const NdArray x = cnp::asarray({1.5F, 2.0F}, "x");
  const NdArray loss = cnp::sum(x * cnp::asarray({2, 3}));  // float32 * int64 is float64
  EXPECT_EQ(loss.dtype(), DType::float64);
  const NdArray gradient = grad(loss, {x})[0];
  EXPECT_EQ(gradient.dtype(), DType::float32);
  EXPECT_THAT(values(gradient), ElementsAre(2, 3));
}

const auto& relu() {
  static const auto operation = cnp::wrap_as_operation(
      "numpy_test::relu(Tensor x) -> Tensor", [](NdArray x) { return cnp::maximum(x, 0); });
  return operation;
}

TEST(numpy_operations, a_function_becomes_one_node_that_does_all_that_others_do) {
  const NdArray x = cnp::asarray({-1.0, 2.0}, "x");
  const NdArray y = relu()(x);
  EXPECT_EQ(y.graph().size(), 2u);
  EXPECT_EQ(y.node->op().str(), "numpy_test::relu");
  EXPECT_THAT(values(y), ElementsAre(0, 2));
  EXPECT_THAT(values(grad(cnp::sum(y * y), {x})[0]), ElementsAre(0, 4));
  const Graph graph({.inputs = {x}, .outputs = {y}});
  EXPECT_TRUE(parse(print(graph)) == graph);
}

TEST(numpy_operations, take_data_and_lists_and_give_several_results) {
  static const auto operation = cnp::wrap_as_operation(
      "numpy_test::extremes(Tensor[] xs, int axis, float scale=2.0) -> (Tensor, Tensor)",
      [](cnp::NdArrays xs, int64_t axis, double scale) {
        const NdArray all = scale * cnp::concatenate(xs);
        return cnp::NdArrays{cnp::min(all, axis), cnp::max(all, axis)};
      });
  const NdArray x = cnp::asarray({1.0, 5.0}), y = cnp::asarray({-3.0});
  const cnp::NdArrays results = operation(cnp::NdArrays{x, y}, 0);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_THAT(values(results[0]), ElementsAre(-6));
  EXPECT_THAT(values(results[1]), ElementsAre(10));
}

TEST(numpy_operations, may_be_native_with_a_derivative_of_their_own) {
  static const auto twice = cnp::wrap_as_operation(
      {.schema = "numpy_test::twice(Tensor x) -> Tensor",
       .infer = [](LazyTensor x) { return std::vector<Type>{x.type()}; },
       .native =
           [](Array x) {
             std::vector<double> numbers = elements<double>(x);
             for (double& number : numbers) number *= 2;
             return std::vector<Array>{array_of(x.type(), numbers)};
           },
       .vjp = [](Vjp v, LazyTensor) { return Gradients{2 * v.cotangents[0]}; }});
  const NdArray x = cnp::asarray({1.0, 2.5}, "x");
  EXPECT_THAT(values(twice(x)), ElementsAre(2, 5));
  EXPECT_THAT(values(grad(cnp::sum(twice(x) * x), {x})[0]), ElementsAre(4, 10));
}

TEST(numpy_operations, have_names_of_their_own) {
  relu();
  const auto again = [] {
    cnp::wrap_as_operation("numpy_test::relu(Tensor x) -> Tensor", [](NdArray x) { return x; });
  };
  EXPECT_THAT(user_error(again).value_or(""), HasSubstr("there is a row for numpy_test::relu"));
}

TEST(numpy_operations, that_are_refused_leave_no_trace) {
  const auto read_as_a_float = [] {
    cnp::wrap_as_operation("numpy_test::scaled(Tensor x, int by) -> Tensor",
                           [](NdArray x, double by) { return x * by; });
  };
  const auto without_form = [] {
    add_operation({.schema = "numpy_test::none(Tensor x) -> Tensor"});
  };
  const auto under_a_taken_name = [] {
    add_operation({.schema = "numpy_test::other(Tensor x) -> Tensor",
                   .decompose = [](LazyTensor x) { return LazyTensors{x}; },
                   .also = {"aten::relu"}});
  };
  EXPECT_THAT(user_error(read_as_a_float).value_or(""),
              HasSubstr("numpy_test::scaled: argument 'by' (int) is read as a float"));
  EXPECT_THAT(user_error(without_form).value_or(""), HasSubstr("expected one form"));
  EXPECT_THAT(user_error(under_a_taken_name).value_or(""),
              HasSubstr("a row for aten::relu already"));
  EXPECT_EQ(find_operation(Symbol("numpy_test::other")), nullptr);
}

TEST(numpy_random, draws_are_pure_and_the_generator_moves_on) {
  cnp::random::Generator rng = cnp::random::default_rng(5), same = cnp::random::default_rng(5);
  const NdArray first = rng.random({3}), second = rng.random({3});
  EXPECT_EQ(values(first), values(first));
  EXPECT_NE(values(first), values(second));
  EXPECT_EQ(first.hash(), same.random({3}).hash());
  EXPECT_NE(first.hash(), second.hash());
  EXPECT_EQ(first.dtype(), DType::float32);
}

TEST(numpy_errors, name_the_function_and_what_was_received) {
  const NdArray x = cnp::ones({2, 3}), y = cnp::ones({2});
  const std::vector<std::pair<std::function<void()>, const char*>> errors = {
      {[&] { x + y; }, "[numpy.add] in aten::add.Tensor: sizes [2] do not broadcast with [2, 3]"},
      {[&] { cnp::sum(x, 2); }, "[numpy.sum] expected an axis in [-2, 2), received 2"},
      {[&] {
         cnp::sum(x, {0, 0});
       },
       "[numpy.sum] expected different axes, received axis 0 twice"},
      {[&] {
         cnp::reshape(x, {4, -1});
       },
       "[numpy.reshape] expected a shape for 6 elements, received [4, -1]"},
      {[&] { cnp::transpose(x, {0}); }, "[numpy.transpose] expected 2 axes, received [0]"},
      {[&] { cnp::matmul(x, x); },
       "[numpy.matmul] expected as many columns as rows, received shapes [2, 3] and [2, 3]"},
      {[&] {
         cnp::concatenate({x, y});
       },
       "[numpy.concatenate] expected arrays of the same shape"},
      {[&] {
         cnp::broadcast_to(x, {3, 2});
       },
       "[numpy.broadcast_to] expected a shape that [2, 3] broadcasts to, received [3, 2]"},
      {[&] { cnp::max(cnp::zeros({0}), 0); }, "[numpy.max] expected an element at least"},
      {[&] {
         x[{0, 0, 0}];
       },
       "[numpy.get_item] expected at most 2 indices for shape [2, 3], received 3"},
      {[&] { x[2]; }, "[numpy.get_item] expected an index in [-2, 2), received 2"},
      {[&] { cnp::ones({2}, DType::uint8) + 300; },
       "[numpy.add] expected a number that uint8 has room for, received 300"},
      {[&] { -cnp::zeros({2}, DType::bool_); }, "[numpy.negative] expected numbers, received bool"},
      {[&] { cnp::power(cnp::ones({2}, DType::int64), -1); },
       "[numpy.power] integers have no negative powers"},
      {[&] { cnp::nonzero(x); }, "[numpy.nonzero] expected a constant"},
      {[&] {
         cnp::einsum("ij,jk->ik", {x, x});
       },
       "[numpy.einsum] in aten::einsum: "},
      {[&] { cnp::split(x, 2, 1); },
       "[numpy.split] expected a number of parts that divides 3, received 2"},
      {[&] { cnp::sort(cnp::ones({2}, DType::complex64)); },
       "[numpy.sort] expected real numbers, received complex64"},
      {[&] { cnp::ndarray({2}, DType::float32, ""); }, "[numpy.ndarray] expected a name"},
  };
  for (const auto& [action, message] : errors)
    EXPECT_THAT(user_error(action).value_or(""), HasSubstr(message));
}

}  // namespace
}  // namespace composit
