// Captures that former versions wrote are loaded, and give what they gave: tests/flashlight/corpus
// has a folder for each version of the format, written once by that version (save_corpus.cpp).
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "composit/io/saved_capture.h"
#include "flashlight/trace.h"
#include "tests/io/temporary_folder.h"
#include "tests/test_name.h"

namespace flashlight {
namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = FLASHLIGHT_SOURCE_DIR "/tests/flashlight/corpus";

std::vector<std::string> folders() {
  std::vector<std::string> found;  // relative to the corpus
  for (const auto& version : fs::directory_iterator(kCorpus))
    if (version.is_directory())
      for (const auto& capture : fs::directory_iterator(version))
        found.push_back(fs::relative(capture.path(), kCorpus).string());
  std::sort(found.begin(), found.end());
  return found;
}

// Another processor adds in another order.
bool about_equal(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const bool exact = !a.is_floating_point() && !a.is_complex();
  return exact ? at::equal(a, b) : at::allclose(a, b, 1e-5, 1e-6);
}

void expect_example(const CaptureBase& captured) {
  at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
  if (captured.example_generator().defined()) generator.set_state(captured.example_generator());
  const auto results = captured.replay(captured.example_arguments());
  const auto& expected = captured.example_results();
  ASSERT_FALSE(expected.empty());
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_TRUE(about_equal(results[i], expected[i]))
        << "result " << i << results[i] << expected[i];
}

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, GivesItsExample) {
  expect_example(CaptureBase::load(kCorpus / GetParam()));
  // Saved by this version, it is the same.
  const composit::test::TemporaryFolder folder;
  CaptureBase::load(kCorpus / GetParam()).save(folder / "again");
  expect_example(CaptureBase::load(folder / "again"));
}

INSTANTIATE_TEST_SUITE_P(All, Corpus, testing::ValuesIn(folders()),
                         [](const auto& one) { return composit::test::test_name(one.param); });

TEST(CorpusOfCaptures, HasTheVersionThatIsWritten) {
  EXPECT_GE(folders().size(), 8U);
  const composit::test::TemporaryFolder folder;
  composit::save({}, folder / "now");
  std::ifstream text(folder / "now/graph.txt");
  std::string flashlight, capture, version;
  text >> flashlight >> capture >> version;
  EXPECT_TRUE(fs::is_directory(kCorpus / ("v" + version))) << version;
}

TEST(CorpusOfCaptures, IsCalledWithItsTypes) {
  using Tensors = std::vector<at::Tensor>;
  using Dictionary = std::map<std::string, at::Tensor>;
  const auto captured =
      load<std::pair<Dictionary, Tensors>(Dictionary, Tensors, std::optional<at::Tensor>, double)>(
          kCorpus / "v1/dictionaries");
  const at::Tensor a = at::arange(3.0), b = at::ones({3}), mask = a.gt(0);
  const auto [sums, masks] = captured(Dictionary{{"a", a}, {"b", b}}, Tensors{mask, mask.clone()},
                                      std::optional<at::Tensor>(), 0.5);
  EXPECT_TRUE(at::equal(sums.at("sum"), a + b));
  EXPECT_TRUE(at::equal(sums.at("scaled"), a * 0.5));
  EXPECT_TRUE(at::equal(masks.at(0), mask));
}

TEST(CorpusOfCaptures, HasViewsThatShareMemoryAgain) {
  const auto state = CaptureBase::load(kCorpus / "v1/views").state();
  ASSERT_EQ(state.size(), 3U);
  for (const NamedTensor& one : state)
    EXPECT_TRUE(one.tensor.is_alias_of(state[0].tensor)) << one.name;
}

}  // namespace
}  // namespace flashlight
