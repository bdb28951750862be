// Pieces of models as kernels: attention, norms, images, and what lies between products.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "tests/flashlight/mosaic/layers.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::Case;
using test::case_of;
using test::conv3x3;
using test::count;
using test::differences;
using test::given;
using test::linear;
using test::weight;

const double kInfinity = std::numeric_limits<double>::infinity();

// By hand.
LazyTensor attention(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                     const LazyTensor& mask = {}, double scale = 0.25) {
  LazyTensor scores = matmul(q, transpose(k, -2, -1)) * scale;
  if (mask.defined()) scores = scores + mask;
  return matmul(softmax(scores, -1), v);
}

LazyTensor attention_call(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                          const ArgumentValue& mask = {}, bool causal = false) {
  return apply_one("aten::scaled_dot_product_attention", {q, k, v, mask, 0.0, causal});
}

std::vector<Case> attentions() {
  std::vector<Case> cases;
  const auto add = [&](const std::string& text, const LazyTensor& y) {
    cases.push_back(case_of(text, {y}));
  };
  for (const int64_t width : {16, 40}) {
    const LazyTensor q = given("q", {2, 3, 35, width}), k = given("k", {2, 3, 77, width}),
                     v = given("v", {2, 3, 77, width}), own = given("o", {2, 3, 35, width});
    const LazyTensor mask = given("m", {2, 1, 1, 77});
    const std::string text = std::to_string(width) + " wide";
    add("cross " + text, attention(q, k, v));
    add("cross, called " + text, attention_call(q, k, v));
    add("mask " + text, attention(q, k, v, mask));
    add("mask, called " + text, attention_call(q, k, v, ArgumentValue(mask)));
    add("bools " + text, attention_call(q, k, v, ArgumentValue(given("n", {35, 77}) > -0.5)));
    add("some see nothing " + text,
        attention_call(q, k, v, ArgumentValue(given("s", {35, 1}) > 0)));
    add("causal, called " + text, attention_call(q, own, tanh(own), {}, true));
    const LazyTensor ones = ones_like(given("t", {35, 35}));
    const LazyTensor triangle = where(tril(ones) > 0, ones * 0.0, Number(-kInfinity));
    add("causal " + text, attention(q, own, own * 2.0, triangle));
  }
  const LazyTensor q = given("q", {3, 3, 19, 16}), k = given("k", {3, 3, 23, 16});
  const LazyTensor by_head = permute(attention(q, k, sin(k)), {1, 0, 2, 3});
  add("heads before batches", reshape(by_head, {3, 3 * 19, 16}));
  return cases;
}

TEST(MosaicModels, attention) { EXPECT_EQ(differences(attentions()), ""); }

TEST(MosaicModels, attention_is_one_kernel) {
  for (const Case& one : attentions())
    EXPECT_EQ(count(plan_of(one.graph), kAttention), 1) << one.text;
}

// A layer of a transformer: heads are columns of one product.
TEST(MosaicModels, transformer_layer) {
  const int64_t tokens = 35, width = 48, heads = 3;
  const LazyTensor x = given("x", {2, tokens, width});
  const auto norm = [&](const LazyTensor& y, const std::string& name) {
    return apply_one("aten::layer_norm",
                     {y, Ints{width}, weight(name, {width}, 1), weight(name + "b", {width})});
  };
  const auto split = [&](const LazyTensor& y) {
    return permute(reshape(y, {2, tokens, heads, width / heads}), {0, 2, 1, 3});
  };
  const LazyTensor h = norm(x, "n");
  const LazyTensor mixed = attention_call(
      split(linear(h, "q", width)), split(linear(h, "k", width)), split(linear(h, "v", width)));
  const LazyTensor joined = reshape(permute(mixed, {0, 2, 1, 3}), {2, tokens, width});
  const LazyTensor y = linear(joined, "o", width) + x;
  const LazyTensor inner = apply_one("aten::gelu", {linear(norm(y, "m"), "u", 4 * width)});
  const LazyTensor z = linear(inner, "d", width) + y;
  const Case one = case_of("layer", {z});
  EXPECT_EQ(count(plan_of(one.graph), kAttention), 1);
  EXPECT_EQ(differences({one, case_of("norm of it", {norm(z, "l")})}), "");
}

TEST(MosaicModels, norms_between_convolutions) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& text, const LazyTensor& y) {
    cases.push_back(case_of(text, {y}));
    cases.push_back(case_of(text + ", then a convolution", {conv3x3(y, "z", 5)}));
  };
  const LazyTensor x = given("x", {2, 6, 7, 8});
  const LazyTensor h = conv3x3(x, "a", 12);
  add("group norm",
      apply_one("aten::silu",
                {apply_one("aten::group_norm", {h, 3, weight("g", {12}), weight("h", {12})})}));
  const LazyTensor variance = weight("v", {12}) * weight("v", {12}) + 0.5;
  const auto batch_norm = [&](bool training) {
    return apply_one("aten::batch_norm", {h, weight("g", {12}), weight("h", {12}),
                                          weight("m", {12}), variance, training, 0.1, 1e-5, true});
  };
  add("batch norm", relu(batch_norm(false)));
  add("batch norm and residual", relu(batch_norm(false) + h));
  const LazyTensor pixels = apply_one("aten::layer_norm", {permute(h, {0, 2, 3, 1}), Ints{12},
                                                           weight("g", {12}), weight("h", {12})});
  add("norm of pixels", permute(pixels, {0, 3, 1, 2}));
  EXPECT_EQ(differences(cases), "");
}

TEST(MosaicModels, images_between_convolutions) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& text, const LazyTensor& y) {
    cases.push_back(case_of(text, {y}));
    cases.push_back(case_of(text + ", then a convolution", {conv3x3(y, "z", 5)}));
  };
  const LazyTensor x = given("x", {2, 6, 6, 8});
  const LazyTensor a = conv3x3(x, "a", 12), b = relu(conv3x3(x, "b", 7));
  add("concat", cat({a, b}, 1));
  add("concat with the input", cat({x, a}, 1));
  add("concat with weights", cat({a, weight("w", {2, 3, 6, 8}) * 2.0}, 1));
  add("rows on rows", cat({a, tanh(a)}, 2));
  const auto none = ArgumentValue();
  add("upsampling", apply_one("aten::upsample_nearest2d", {a, Ints{12, 16}, none, none}));
  add("bilinear", apply_one("aten::upsample_bilinear2d", {a, Ints{9, 11}, false, none, none}));
  add("max pool", apply_one("aten::max_pool2d", {b, Ints{3, 3}, Ints{2, 2}, Ints{1, 1}}));
  add("average pool", apply_one("aten::avg_pool2d", {b, Ints{2, 2}}));
  add("padding", apply_one("aten::constant_pad_nd", {b, Ints{0, 1, 0, 1}, 0}));
  add("slice", slice(a, 1, 2, 9));
  add("chunks", slice(a, 1, 0, 6) * apply_one("aten::gelu", {slice(a, 1, 6, 12)}));
  add("shuffled", apply_one("aten::pixel_shuffle", {a, 2}));
  add("rows of pixels",
      permute(reshape(apply_one("aten::linear", {permute(reshape(a, {2, 12, 48}), {0, 2, 1}),
                                                 weight("l", {12, 12})}),
                      {2, 6, 8, 12}),
              {0, 3, 1, 2}));
  EXPECT_EQ(differences(cases), "");
}

// Memory of one thread, of each, and values that stand in the text.
TEST(MosaicModels, memory_and_constants) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& text, const LazyTensor& y) {
    cases.push_back(case_of(text, {y}));
  };
  const LazyTensor x = given("x", {7, 9001});
  add("rows that are too long for the stack", softmax(x * 2.0, 1));
  add("and for each head", softmax(given("y", {3, 5, 9001}), -1) * given("z", {3, 1, 9001}));
  std::vector<double> numbers;
  for (int i = 0; i < 65 * 65; ++i) numbers.push_back(std::sin(i));
  const LazyTensor table = constant(array_of(tensor_type(DType::float32, {65, 65}), numbers));
  add("a constant as weights", matmul(given("m", {9, 65}), table));
  add("a constant beside weights", matmul(weight("w", {9, 65}), table) + given("n", {9, 65}));
  add("weights alone", softmax(matmul(weight("w", {9, 65}), weight("v", {65, 65})), 1));
  const LazyTensor k = weight("k", {9, 3, 3, 3}), image = weight("i", {1, 3, 8, 8});
  const LazyTensor known = test::convolution(image, k, {.padding = {1, 1}});
  add("a convolution of weights", relu(known) + given("r", {1, 9, 8, 8}));
  add("and one of that", conv3x3(relu(known), "z", 5) + given("s", {1, 5, 8, 8}));
  add("extents of 1", matmul(given("o", {1, 65}), weight("p", {65, 1})) * weight("q", {1, 1}));
  add("nothing", cat({given("e", {0, 4}), given("f", {3, 4})}, 0));
  EXPECT_EQ(differences(cases), "");
}

}  // namespace
}  // namespace flashlight::mosaic
