// The text that loads weights.
#include "flashlight/package/weight_loader.h"

#include <gmock/gmock.h>

#include "flashlight/text/printer.h"

namespace flashlight::package {
namespace {

using composit::DType;
using composit::tensor_type;
using testing::HasSubstr;
using testing::Not;

StoredWeight stored(const std::string& member, const std::string& tensor) {
  return {member, tensor, tensor_type(DType::float32, {2})};
}

std::string text_of(const std::vector<StoredWeight>& weights) {
  return text::str(load_weights(weights));
}

TEST(WeightLoader, loops_over_names_without_a_pattern) {
  EXPECT_EQ(text_of({stored("block[0].bias", "down.bias"), stored("block[1].bias", "up.bias")}),
            R"(
Weights load_weights(const fl::Safetensors& file) {
  Weights weights;
  const char* const block_modules[] = {"down.", "up."};
  for (int i = 0; i < 2; ++i) {
    auto& part = weights.block[i];
    const std::string module = block_modules[i];
    part.bias = file.tensor<float>(module + "bias", {2});
  }
  return weights;
}
)");
}

TEST(WeightLoader, counts_the_number_that_changes) {
  EXPECT_THAT(text_of({stored("b[0].w", "net.3.4.w"), stored("b[1].w", "net.3.5.w")}),
              HasSubstr("module = \"net.3.\" + std::to_string(i + 4) + \".\";"));
}

TEST(WeightLoader, nests) {
  const std::string text =
      text_of({stored("a[0].b[0].w", "m.0.x.0.w"), stored("a[0].b[1].w", "m.0.x.1.w"),
               stored("a[1].b[0].w", "m.1.x.0.w"), stored("a[1].b[1].w", "m.1.x.1.w")});
  EXPECT_THAT(text, HasSubstr("auto& part_2 = part.b[j];"));
  EXPECT_THAT(text, HasSubstr("part_2.w = file.tensor<float>(module_2 + \"w\", {2});"));
}

TEST(WeightLoader, takes_what_is_not_alike_one_by_one) {
  const std::string text = text_of(
      {stored("a[0].w", "m.0.w"), stored("a[1].w", "m.1.weight"), stored("single.w", "other")});
  EXPECT_THAT(text, HasSubstr("weights.a[1].w = file.tensor<float>(\"m.1.weight\", {2});"));
  EXPECT_THAT(text, HasSubstr("weights.single.w = file.tensor<float>(\"other\", {2});"));
  EXPECT_THAT(text, Not(HasSubstr("for (")));
}

TEST(WeightLoader, divides_what_is_long_by_module) {
  std::vector<StoredWeight> weights;
  for (const std::string module : {"up", "down"})
    for (int i = 0; i < 40; ++i)
      weights.push_back(stored(module + std::to_string(i), module + ".w" + std::to_string(i)));
  const std::string text = text_of(weights);
  EXPECT_THAT(text, HasSubstr("void load_up(const fl::Safetensors& file, Weights& weights) {"));
  EXPECT_THAT(text, HasSubstr("  load_up(file, weights);\n  load_down(file, weights);\n"));
}

}  // namespace
}  // namespace flashlight::package
