// Expected values are numpy.einsum's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flashlight/fixed/fixed.h"

namespace flashlight::fixed {
namespace {

using testing::ElementsAre;

const auto a = Tensor<float, 2, 3>::arange();
const auto b = Tensor<float, 2, 3>::arange() + 1;
const auto m = Tensor<float, 3, 3>::arange();

TEST(FixedEinsum, OfOneTensor) {
  EXPECT_EQ(float(einsum<"ii->">(m)), 12);
  EXPECT_THAT(einsum<"ii->i">(m), ElementsAre(0, 4, 8));
  EXPECT_THAT(einsum<"ij -> ji">(a), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(einsum<"ij->j">(a), ElementsAre(3, 5, 7));
}

TEST(FixedEinsum, OfProductsOfMatrices) {
  EXPECT_THAT((einsum<"ij,kj->ik">(a, b)), ElementsAre(8, 17, 26, 62));
  EXPECT_THAT((einsum<"ij,kj->ki">(a, b)), ElementsAre(8, 26, 17, 62));
  const auto q = Tensor<float, 2, 2, 2>::arange();
  EXPECT_THAT((einsum<"bqd,bkd->kbq">(q, q)), ElementsAre(1, 3, 41, 59, 3, 13, 59, 85));
}

TEST(FixedEinsum, OfOtherSums) {
  EXPECT_EQ(float(einsum<"ij,ij->">(a, b)), 70);
  EXPECT_THAT((einsum<"ij,ij->ij">(a, b)), ElementsAre(0, 2, 6, 12, 20, 30));
  EXPECT_THAT((einsum<"ij,kl->i">(a, b)), ElementsAre(63, 252));
  EXPECT_THAT((einsum<"i,j->ji">(Tensor<float, 2>::of(1, 2), Tensor<float, 2>::of(3, 4))),
              ElementsAre(3, 6, 4, 8));
  EXPECT_THAT((einsum<"ij,jk,kl->il">(a, m, m)), ElementsAre(180, 234, 288, 558, 720, 882));
}

}  // namespace
}  // namespace flashlight::fixed
