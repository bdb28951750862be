// Names that are identifiers of Python, each once.
#include "composit/interchange/names.h"

#include <gtest/gtest.h>

namespace composit::interchange::test {
namespace {

TEST(names, are_identifiers) {
  UsedNames names;
  EXPECT_EQ(names.identifier("p_", "layer1.0.weight"), "p_layer1_0_weight");
  EXPECT_EQ(names.identifier("", "0x"), "_0x");
  EXPECT_EQ(names.identifier("", "ü"), "__");
  EXPECT_EQ(names.identifier("", ""), "_");
}

TEST(names, are_no_words_of_python) {
  UsedNames names;
  EXPECT_EQ(names.identifier("", "lambda"), "lambda_");
  EXPECT_EQ(names.identifier("", "self"), "self_");
  EXPECT_EQ(names.identifier("", "None"), "None_");
  EXPECT_EQ(names.identifier("", "lambdas"), "lambdas");
}

TEST(names, are_used_once) {
  UsedNames names;
  EXPECT_EQ(names.identifier("", "a.b"), "a_b");
  EXPECT_EQ(names.identifier("", "a_b"), "a_b_2");
  EXPECT_EQ(names.identifier("", "a-b"), "a_b_3");
}

}  // namespace
}  // namespace composit::interchange::test
