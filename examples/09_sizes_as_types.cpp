// Sizes as types: a small attention layer in a loop of your own, whose wrong sizes do not compile.
//
// The same function is evaluated at once, by inlined loops, and traced into a graph, which any
// backend compiles and which has a derivative. Fails if the two differ.
#include <cmath>
#include <iostream>

#include "composit/eval/evaluate.h"
#include "composit/ir/print.h"
#include "flashlight/fixed/traced.h"

using namespace flashlight::fixed;

namespace {

using Tokens = Tensor<float, 6, 8>;   // 6 tokens of 8 numbers
using Weight = Tensor<float, 16, 8>;  // 2 heads of 8

// Attention of each head over the tokens: softmax(q k / sqrt(8)) v.
const auto attention = [](auto tokens, auto query, auto key, auto value) {
  const auto heads = [&](auto weight) { return reshape<6, 2, 8>(linear(tokens, weight)); };
  const auto scores = einsum<"qhd,khd->hqk">(heads(query), heads(key)) / std::sqrt(8.f);
  return einsum<"hqk,khd->qhd">(softmax<-1>(scores), heads(value));
  // matmul(tokens, query) would be: error: matmul: the left tensor has other columns than the right
  // one has rows; note: the comparison reduces to '(8 == 16)'
};

template <class X>
composit::Array array_of(const X& x) {
  return composit::Array::copy_of(
      composit::tensor_type(composit::DType::float32,
                            {X::Shape::kSizes.begin(), X::Shape::kSizes.end()}),
      x.data());
}

}  // namespace

int main() {
  const Tokens tokens = sin(Tokens::arange());
  const Weight query = cos(Weight::arange()), key = sin(Weight::arange() * 2.f),
               value = cos(Weight::arange() * 3.f);
  const auto at_once = attention(tokens, query, key, value);

  const composit::Graph graph = graph_of<Tokens, Weight, Weight, Weight>(attention);
  std::cout << composit::print(graph);
  const composit::Array traced = composit::evaluate(
      graph, {array_of(tokens), array_of(query), array_of(key), array_of(value)})[0];
  float difference = 0;
  for (int64_t i = 0; i < at_once.kElements; ++i)
    difference = std::max(
        difference, std::abs(at_once.data()[i] - reinterpret_cast<const float*>(traced.data())[i]));
  std::cout << "largest difference: " << difference << "\n";
  return difference < 1e-5f ? 0 : 1;
}
