// Where weights are copied to the device of a plugin of PJRT: once, beside a plugin that counts.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "composit/ir/parse.h"
#include "flashlight/backends/registry.h"
#include "tests/user_error.h"

namespace flashlight {
namespace {

using composit::Array;
using composit::Code;
using composit::tensor_type;
using composit::user_error;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

using CodePtr = std::shared_ptr<const Code>;

const char* const kSum = R"(
graph(%w: float32[2] parameter "w", %x: float32[2], %b: float32[2] buffer "b") {
  %y: float32[2] = aten::add.Tensor(%w, %x, alpha=1)
  %z: float32[2] = aten::add.Tensor(%y, %b, alpha=1)
  return %z
})";

size_t count(const char* name) {
  void* const library = ::dlopen(FLASHLIGHT_ADDING_PJRT_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<size_t (*)()>(::dlsym(library, name))();
}
size_t copies() { return count("adding_plugin_copies"); }
size_t buffers() { return count("adding_plugin_buffers"); }

composit::Compiled compiled(const std::string& text, composit::Options more = {},
                            bool may_prepare = true) {
  more["pjrt"] = FLASHLIGHT_ADDING_PJRT_PLUGIN;
  return backend_named("pjrt").compile(
      composit::parse(text), {.name = "sum", .options = more, .may_prepare = may_prepare});
}

Array floats_of(const std::vector<double>& values) {
  const auto size = static_cast<int64_t>(values.size());
  return composit::array_of(tensor_type(composit::DType::float32, {size}), values);
}
Array pair(double a, double b) { return floats_of({a, b}); }

std::vector<double> called(const Code& code, const std::vector<Array>& inputs) {
  return composit::elements<double>(code.call(inputs, nullptr).at(0));
}

TEST(PjrtWeights, GoToTheDeviceOnce) {
  const composit::Compiled sum = compiled(kSum);
  EXPECT_TRUE(sum->is_frozen(0) && !sum->is_frozen(1) && sum->is_frozen(2));
  CodePtr prepared = sum->prepare({pair(1, 2), Array(), pair(100, 200)});
  const size_t before = copies(), there = buffers();
  EXPECT_THAT(called(*prepared, {Array(), pair(10, 20), Array()}), ElementsAre(111, 222));
  EXPECT_THAT(called(*prepared, {Array(), pair(30, 40), Array()}), ElementsAre(131, 242));
  EXPECT_EQ(copies() - before, 2) << "of x alone";
  EXPECT_EQ(buffers(), there) << "what a call needs is freed, weights stay";
  const CodePtr other = sum->prepare({pair(5, 6), Array(), pair(0, 0)});
  EXPECT_THAT(called(*other, {Array(), pair(10, 20), Array()}), ElementsAre(15, 26));
  EXPECT_THAT(called(*prepared, {Array(), pair(10, 20), Array()}), ElementsAre(111, 222));
  prepared.reset();
  EXPECT_EQ(buffers(), there) << "two of each while both were there";
}

TEST(PjrtWeights, AreSharedByTheSizesOfAProgram) {
  const composit::Compiled one = compiled(kSum), two = compiled(kSum);
  const CodePtr first = one->prepare({pair(1, 2), Array(), pair(100, 200)});
  const size_t before = copies();
  const CodePtr second = two->prepare_like({first});
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(copies(), before);
  EXPECT_THAT(called(*second, {Array(), pair(10, 20), Array()}), ElementsAre(111, 222));
  const composit::Compiled each_call = compiled(kSum, {{"freeze", false}});
  EXPECT_EQ(each_call->prepare_like({first}), nullptr) << "it packs none";
  EXPECT_EQ(two->prepare_like({each_call->prepare({})}), nullptr) << "there are none";
}

TEST(PjrtWeights, AreReadAnewWhereTheyMayChange) {
  for (const bool may_prepare : {false, true}) {
    const composit::Compiled sum = compiled(kSum, {{"freeze", !may_prepare}}, may_prepare);
    EXPECT_FALSE(sum->is_frozen(0) || sum->is_frozen(2));
    EXPECT_THAT(called(*sum, {pair(1, 2), pair(3, 4), pair(5, 6)}), ElementsAre(9, 12));
    EXPECT_THAT(called(*sum, {pair(7, 2), pair(3, 4), pair(5, 6)}), ElementsAre(15, 12));
  }
  const composit::Compiled written = compiled(R"(
graph(%w: float32[2] parameter "w", %b: float32[2] buffer "b") {
  %y: float32[2] = aten::add.Tensor(%w, %b, alpha=1)
  mutate %b = %y
  return
})");
  EXPECT_TRUE(written->is_frozen(0) && !written->is_frozen(1));
  const CodePtr prepared = written->prepare({pair(1, 2), Array()});
  EXPECT_THAT(called(*prepared, {Array(), pair(3, 4)}), ElementsAre(4, 6));
  EXPECT_THAT(called(*prepared, {Array(), pair(4, 6)}), ElementsAre(5, 8));
}

TEST(PjrtWeights, AreAskedFor) {
  const composit::Compiled sum = compiled(kSum);
  EXPECT_THAT(user_error([&] {
                sum->prepare({pair(1, 2), Array(), Array()});
              }),
              Optional(HasSubstr("[sum] 'b' has no value to be compiled with")));
  EXPECT_THAT(user_error([&] {
                sum->prepare({floats_of({1, 2, 3}), Array(), pair(1, 2)});
              }),
              Optional(HasSubstr("expected float32[2], received float32[3]")));
}

}  // namespace
}  // namespace flashlight
