// Products of matrices and convolutions of odd shapes as tiles, and what is done with their sums.
#include <gtest/gtest.h>

#include "composit/ad/chain_rule.h"
#include "composit/ops/functions.h"
#include "tests/flashlight/mosaic/layers.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::Case;
using test::case_of;
using test::Conv;
using test::convolution;
using test::count;
using test::count_products;
using test::differences;
using test::given;
using test::weight;

std::vector<Case> convolutions_of_shapes() {
  std::vector<Case> cases;
  const auto add = [&](const std::string& text, const Dims& x, const Dims& w, const Conv& how) {
    const int64_t channels = how.transposed ? w[1] * how.groups : w[0];
    const LazyTensor y = convolution(given("x", x), weight("w", w), how, weight("b", {channels}));
    cases.push_back(case_of(text, {y}));
    cases.push_back(case_of(text + ", relu", {relu(y)}));
  };
  add("1x1", {1, 17, 5, 7}, {64, 17, 1, 1}, {});
  add("3x3", {1, 3, 9, 11}, {17, 3, 3, 3}, {.padding = {1, 1}});
  add("3x3, batch 3", {3, 17, 5, 6}, {64, 17, 3, 3}, {.padding = {1, 1}});
  add("one channel", {3, 1, 8, 8}, {1, 1, 3, 3}, {.padding = {1, 1}});
  add("without padding", {1, 64, 5, 5}, {3, 64, 3, 3}, {});
  add("stem", {1, 3, 23, 21}, {16, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}});
  add("strides", {1, 17, 12, 9}, {17, 17, 3, 2}, {.stride = {2, 3}, .padding = {1, 0}});
  add("strided 1x1", {1, 17, 7, 7}, {64, 17, 1, 1}, {.stride = {2, 2}});
  add("dilation", {1, 17, 13, 10}, {17, 17, 3, 3}, {.padding = {2, 3}, .dilation = {2, 3}});
  add("wide padding", {1, 3, 4, 4}, {17, 3, 3, 3}, {.padding = {4, 2}});
  add("groups", {3, 12, 6, 5}, {18, 4, 3, 3}, {.padding = {1, 1}, .groups = 3});
  add("depthwise", {1, 17, 9, 8}, {17, 1, 3, 3}, {.padding = {1, 1}, .groups = 17});
  add("depthwise, two each", {3, 5, 9, 8}, {10, 1, 3, 3},
      {.stride = {2, 2}, .padding = {1, 1}, .groups = 5});
  add("depthwise, dilation", {2, 40, 13, 10}, {40, 1, 3, 3},
      {.stride = {1, 2}, .padding = {2, 3}, .dilation = {2, 3}, .groups = 40});
  add("depthwise, 5x4", {3, 70, 8, 11}, {70, 1, 5, 4},
      {.stride = {2, 1}, .padding = {2, 1}, .groups = 70});
  add("transposed", {1, 17, 5, 4}, {17, 3, 3, 3}, {.padding = {1, 1}, .transposed = true});
  add("transposed, strides", {3, 3, 5, 4}, {3, 17, 3, 3},
      {.stride = {2, 2}, .padding = {1, 1}, .transposed = true, .output_padding = {1, 1}});
  add("transposed, two strides", {2, 17, 5, 4}, {17, 16, 3, 2},
      {.stride = {2, 3}, .padding = {1, 0}, .transposed = true, .output_padding = {1, 2}});
  add("transposed, strided 1x1", {2, 17, 5, 4}, {17, 64, 1, 1},
      {.stride = {2, 2}, .transposed = true, .output_padding = {1, 0}});
  add("transposed, strides and dilation", {1, 17, 5, 4}, {17, 16, 3, 3},
      {.stride = {3, 2}, .dilation = {2, 3}, .transposed = true});
  add("transposed, strides that dilation shares", {1, 17, 5, 4}, {17, 16, 3, 3},
      {.stride = {2, 2}, .dilation = {2, 2}, .transposed = true});
  add("transposed, groups", {1, 6, 5, 4}, {6, 5, 2, 3},
      {.stride = {2, 1}, .transposed = true, .groups = 3});
  return cases;
}

TEST(MosaicProducts, convolutions) { EXPECT_EQ(differences(convolutions_of_shapes()), ""); }

// Operands that are not known beforehand are packed in each call, and windows go backwards.
TEST(MosaicProducts, derivatives_of_depthwise_convolutions) {
  std::vector<Case> cases;
  for (const int64_t stride : {1, 2}) {
    const Conv how = {.stride = {stride, stride}, .padding = {1, 2}, .groups = 40};
    const LazyTensor x = given("x", {2, 40, 9, 8}), w = given("w", {40, 1, 3, 4});
    const LazyTensor y = relu(convolution(relu(x), w, how));
    cases.push_back(case_of("stride " + std::to_string(stride), grad(sum(y * y), {x, w})));
  }
  EXPECT_EQ(differences(cases, {.times = 16}), "");
}

// By images and by weights, neither of which is known.
TEST(MosaicProducts, gradients_of_convolutions) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& text, const Dims& images, const Dims& weights,
                       const Conv& how) {
    const LazyTensor x = given("x", images), w = given("w", weights, 0.1),
                     y = convolution(x, w, how);
    const LazyTensor cotangent = given("cotangent", y.type().sizes);
    cases.push_back(case_of(text, chain_rule({{y, cotangent}}, {x, w})));
  };
  add("1x1", {2, 17, 5, 7}, {24, 17, 1, 1}, {});
  add("3x3", {2, 17, 6, 5}, {24, 17, 3, 3}, {.padding = {1, 1}});
  add("3x3 of few pixels", {2, 17, 2, 2}, {64, 17, 3, 3}, {.padding = {1, 1}});
  add("without padding", {3, 17, 3, 4}, {40, 17, 3, 3}, {});
  add("strides", {2, 17, 8, 7}, {24, 17, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}});
  add("strides of few pixels", {2, 17, 4, 4}, {64, 17, 3, 3},
      {.stride = {2, 2}, .padding = {1, 1}});
  add("strided 1x1", {3, 17, 8, 7}, {24, 17, 1, 1}, {.stride = {2, 2}});
  add("stem", {2, 3, 15, 14}, {16, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}});
  add("two strides, dilation", {1, 17, 13, 11}, {16, 17, 3, 2},
      {.stride = {3, 2}, .padding = {2, 1}, .dilation = {2, 1}});
  EXPECT_EQ(differences(cases), "");
}

TEST(MosaicProducts, convolutions_in_one_and_three_dimensions) {
  std::vector<Case> cases;
  const Conv one = {.stride = {1}, .padding = {1}, .dilation = {1}, .output_padding = {0}};
  const Conv sparse = {.stride = {3}, .padding = {2}, .dilation = {2}, .output_padding = {0}};
  const Conv three = {.stride = {1, 2, 1},
                      .padding = {1, 0, 1},
                      .dilation = {1, 1, 1},
                      .output_padding = {0, 0, 0}};
  for (const int64_t batch : {1, 3}) {
    const LazyTensor line = given("x", {batch, 17, 19}), cube = given("x", {batch, 3, 4, 7, 5});
    const LazyTensor w = weight("w", {64, 17, 3}), v = weight("v", {17, 3, 3, 2, 3});
    cases.push_back(case_of("line", {convolution(line, w, one)}));
    cases.push_back(case_of("sparse line", {convolution(line, w, sparse)}));
    cases.push_back(case_of("cube", {convolution(cube, v, three, weight("b", {17}))}));
  }
  EXPECT_EQ(differences(cases), "");
}

TEST(MosaicProducts, matrices) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& text, const LazyTensor& y) {
    cases.push_back(case_of(text, {y}));
  };
  for (const int64_t rows : {1, 3, 17, 65})
    for (const int64_t columns : {1, 17, 64, 131}) {
      const LazyTensor x = given("x", {rows, 193}), w = weight("w", {columns, 193}, 0.1);
      const std::string text = std::to_string(rows) + " x " + std::to_string(columns);
      add("linear " + text, apply_one("aten::linear", {x, w, weight("b", {columns})}));
      add("product " + text, matmul(x, given("y", {193, columns})));
    }
  const LazyTensor a = given("a", {3, 9, 17}), b = given("b", {3, 17, 33});
  add("bmm", bmm(a, b));
  add("bmm with weights", bmm(a, weight("w", {3, 17, 33})));
  add("bmm, transposed", bmm(transpose(b, 1, 2), transpose(a, 1, 2)));
  add("baddbmm", apply_one("aten::baddbmm", {given("c", {3, 1, 33}), a, b, 0.5, 2}));
  add("addmm", apply_one("aten::addmm",
                         {weight("c", {33}), given("x", {9, 17}), weight("w", {17, 33}), 1, 1}));
  for (const Ints& axes : {Ints{0}, Ints{1}, Ints{0, 1}})
    add("reversed along " + str(axes),
        matmul(apply_one("aten::flip", {given("x", {31, 17}), axes}), given("y", {17, 9})));
  add("reversed steps", apply_one("aten::linear", {apply_one("aten::flip", {a, Ints{1}}),
                                                   weight("w", {9, 17}), weight("b", {9})}));
  add("one row for all", matmul(expand(given("x", {1, 17}), {31, 17}), given("y", {17, 9})));
  add("broadcast", matmul(given("x", {2, 1, 5, 87}), given("y", {3, 87, 14})));
  add("vectors", matmul(given("x", {17}), given("y", {17})));
  add("matrix and vector", matmul(given("x", {5, 17}), weight("w", {17})));
  add("weights first", matmul(weight("w", {33, 57}), given("x", {57, 5})));
  add("transposed weights", matmul(given("x", {15, 33}), transpose(weight("w", {17, 33}), 0, 1)));
  add("heads", permute(bmm(given("x", {4, 15, 17}), given("y", {4, 17, 16})), {1, 0, 2}));
  const auto einsum = [&](const std::string& equation, const LazyTensor& x, const LazyTensor& y) {
    add(equation, apply_one("aten::einsum", {equation, LazyTensors{x, y}}));
  };
  einsum("bhid,bhjd->bhij", given("x", {2, 3, 15, 18}), given("y", {2, 3, 17, 18}));
  einsum("bihd,bjhd->bhij", given("x", {2, 15, 3, 18}), given("y", {2, 17, 3, 18}));
  einsum("abc,dcb->ad", given("x", {13, 14, 5}), given("y", {16, 5, 14}));
  einsum("ab,cd->adbc", given("x", {3, 4}), given("y", {6, 5}));
  einsum("bij,bjk->ik", given("x", {3, 14, 15}), given("y", {3, 15, 16}));
  EXPECT_EQ(differences(cases), "");
}

TEST(MosaicProducts, in_float64) {
  const auto f64 = DType::float64;
  const LazyTensor x = given("x", {3, 17, 6, 5}, 1, f64), w = weight("w", {17, 17, 3, 3}, 0.1, f64);
  const LazyTensor y = convolution(x, w, {.padding = {1, 1}});
  const LazyTensor m = given("m", {7, 19}, 1, f64), v = weight("v", {35, 19}, 0.3, f64);
  EXPECT_EQ(differences({case_of("convolution", {y, relu(y)}),
                         case_of("linear", {apply_one("aten::linear", {m, v})})}),
            "");
}

TEST(MosaicProducts, what_follows_the_sums) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& text, const LazyTensors& outputs) {
    cases.push_back(case_of(text, outputs));
  };
  const LazyTensor x = given("x", {5, 67}), w = weight("w", {33, 67}, 0.1), b = weight("b", {33});
  const LazyTensor y = apply_one("aten::linear", {x, w, b}), r = given("r", {5, 33});
  add("gelu", {apply_one("aten::gelu", {y})});
  add("silu", {apply_one("aten::silu", {y})});
  add("residual", {(y + r)});
  add("residual of itself", {(y + tanh(y))});
  add("two results", {y, relu(y), (y * 2.0)});
  add("a row's factor", {(y * given("f", {5, 1}))});
  add("in half precision", {to(y, DType::float16)});
  add("transposed", {transpose(y, 0, 1)});
  add("softmax", {softmax(y, -1)});
  add("sum", {sum(y, {0}), amax(y, {1})});
  const LazyTensor image = given("x", {1, 17, 6, 6}), k = weight("k", {17, 17, 3, 3}, 0.1);
  const LazyTensor first = convolution(image, k, {.padding = {1, 1}}, weight("c", {17}));
  const LazyTensor second =
      convolution(relu(first), weight("l", {17, 17, 3, 3}, 0.1), {.padding = {1, 1}});
  add("residual block", {relu(second + image)});
  add("inner residual", {relu(second + first), first});
  add("to rows", {apply_one("aten::linear",
                            {reshape(second, {1, 17 * 36}), weight("v", {5, 17 * 36}, 0.05)})});
  EXPECT_EQ(differences(cases), "");
}

TEST(MosaicProducts, values_with_several_readers) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& text, const LazyTensors& outputs) {
    cases.push_back(case_of(text, outputs));
  };
  const LazyTensor x = given("x", {1, 17, 9, 9}), w = weight("w", {17, 17, 3, 3}, 0.1);
  const LazyTensor h = relu(convolution(x, w, {.padding = {1, 1}}));
  const LazyTensor narrow = convolution(h, w, {.padding = {1, 1}}),
                   wide = convolution(h, w, {.padding = {2, 2}, .dilation = {2, 2}}),
                   none = convolution(h, w, {});
  add("paddings", {narrow, (wide + narrow), none});
  add("paddings and the value", {(narrow + h), wide, h});
  const LazyTensor v = given("v", {17, 17, 3, 3}, 0.1);
  add("weights of the caller", {convolution(convolution(x, v, {.padding = {1, 1}}), v, {})});
  add("paddings of an input",
      {convolution(x, w, {.padding = {1, 1}}), convolution(x, w, {.padding = {2, 2}}), exp(x)});
  const LazyTensor m = given("m", {9, 39}), tied = weight("t", {39, 39}, 0.1);
  const LazyTensor once = apply_one("aten::linear", {m, tied}), twice = matmul(tanh(once), tied);
  add("tied", {twice, apply_one("aten::linear", {twice, tied})});
  add("tied, scaled", {matmul(m, tied * 2.0), matmul(m, tied)});
  add("an embedding and its transposed", {matmul(select_at(tied, 0, 3), transpose(tied, 0, 1))});
  add("a square", {matmul(m, transpose(m, 0, 1))});
  add("a product of a product", {matmul(matmul(m, tied), transpose(matmul(m, tied), 0, 1))});
  EXPECT_EQ(differences(cases), "");
}

// Tiles do the work, as opposed to loops.
TEST(MosaicProducts, are_recognised) {
  const auto products = [](const LazyTensor& y) {
    return count_products(plan_of(case_of("", {y}).graph));
  };
  const LazyTensor x = given("x", {1, 17, 9, 9}), w = weight("w", {17, 17, 3, 3});
  EXPECT_EQ(products(convolution(x, w, {.padding = {1, 1}})), 1);
  EXPECT_EQ(products(relu(
                convolution(relu(convolution(x, w, {.padding = {1, 1}})), w, {.padding = {1, 1}}))),
            2);
  // Windows are read where they lie, and not packed, whatever is known.
  EXPECT_EQ(products(convolution(x, given("v", {17, 17, 3, 3}), {.padding = {1, 1}})), 1);
  EXPECT_EQ(products(convolution(x, w, {.stride = {2, 2}, .padding = {1, 1}})), 1);
  EXPECT_EQ(products(convolution(x, w, {.transposed = true})), 1);
  EXPECT_EQ(products(convolution(x, weight("k", {17, 1, 3, 3}), {.padding = {1, 1}, .groups = 17})),
            1);
  // One for the even and one for the odd places of each dimension; those without terms are loops.
  EXPECT_EQ(products(convolution(x, w, {.stride = {2, 2}, .padding = {1, 1}, .transposed = true})),
            4);
  EXPECT_EQ(
      products(convolution(x, weight("u", {17, 17, 1, 1}), {.stride = {2, 2}, .transposed = true})),
      1);
  EXPECT_EQ(products(matmul(given("a", {5, 70}), weight("b", {70, 90}))), 1);
  EXPECT_EQ(products(bmm(given("a", {3, 15, 17}), given("b", {3, 17, 19}))), 1);
  EXPECT_EQ(products(given("a", {5, 7}) * weight("b", {5, 7})), 0);
}

// Tiles read a matrix in panels, in the order of its memory, which loops over a column do not.
TEST(MosaicProducts, of_one_row_where_the_matrix_is_known) {
  const auto plan = [](const LazyTensor& y) { return plan_of(case_of("", {y}).graph); };
  const LazyTensor x = given("x", {1, 70}), b = weight("b", {90});
  const LazyTensor known = weight("w", {70, 90});
  EXPECT_EQ(count_products(plan(apply_one("aten::addmm", {b, x, known, 1, 1}))), 1);
  EXPECT_EQ(count_products(plan(apply_one("aten::linear", {x, transpose(known, 0, 1), b}))), 1);
  EXPECT_EQ(count_products(plan(matmul(given("v", {70}), known))), 1);
  EXPECT_EQ(
      count_products(plan(convolution(given("i", {1, 70, 1, 1}), weight("k", {90, 70, 1, 1}), {}))),
      1);
  // The matrix is not known, or the vector is known instead: packing is work of each call.
  EXPECT_EQ(count_products(plan(matmul(x, given("m", {70, 90})))), 0);
  EXPECT_EQ(count_products(plan(matmul(given("m", {90, 70}), weight("v", {70})))), 0);
  // What computes an unknown matrix stays in the sum's loops; what computes the vector does not.
  const auto loops_of = [&](const LazyTensor& y) { return plan(y).run.size(); };
  EXPECT_EQ(loops_of(matmul(x, relu(given("m", {70, 90})))), 1);
  EXPECT_EQ(loops_of(matmul(relu(x), known)), 2);
}

TEST(MosaicProducts, of_one_row) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& text, const LazyTensor& y) {
    cases.push_back(case_of(text, {y}));
  };
  const LazyTensor v = given("v", {87}), w = weight("w", {87, 131}), n = given("n", {131});
  add("vector and matrix", matmul(v, w));
  add("matrix and vector", matmul(weight("t", {131, 87}), v));
  add("what follows", relu(matmul(v, w) + n) * n);
  add("what comes before", matmul(sqrt(v * v + 0.5), w));
  add("two of it", matmul(relu(matmul(v, w)), weight("u", {131, 64})));
  add("two axes of terms",
      apply_one("aten::einsum",
                {"ab,abc->c", LazyTensors{given("x", {7, 11}), weight("w3", {7, 11, 40})}}));
  add("two axes of columns",
      apply_one("aten::einsum",
                {"a,bac->bc", LazyTensors{given("x", {70}), weight("w4", {3, 70, 40})}}));
  add("a matrix that is not known", matmul(v, given("m", {87, 131})));
  add("a softmax of it", softmax(matmul(v, w), 0));
  EXPECT_EQ(differences(cases), "");
}

// A window that never meets the image: the sum has no terms.
TEST(MosaicProducts, of_padding_alone) {
  const LazyTensor x = given("x", {16, 8, 1, 1}), w = weight("w", {34, 8, 1, 1});
  const Case one = case_of("padding", {convolution(x, w, {.stride = {3, 3}, .padding = {1, 1}})});
  EXPECT_EQ(differences({one}), "");
}

}  // namespace
}  // namespace flashlight::mosaic
