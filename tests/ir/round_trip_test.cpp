// Random graphs through print and parse, and their texts through mutilation.
#include <gtest/gtest.h>

#include "composit/ir/error.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "tests/ir/random_graph.h"

namespace composit {
namespace {

using test::first_mismatch;
using test::fuzz_runs;
using test::RandomGraph;

TEST(RoundTrip, RandomGraphs) {
  for (uint64_t seed = 0; seed < fuzz_runs(4000); ++seed) {
    const Graph graph = RandomGraph(seed).make();
    ASSERT_NO_THROW(verify(graph)) << "seed " << seed;
    const std::string text = print(graph);
    Graph again;
    ASSERT_NO_THROW(again = parse(text)) << "seed " << seed << "\n" << text;
    ASSERT_EQ(first_mismatch(graph, again), "") << "seed " << seed << "\n" << text;
    ASSERT_EQ(graph, again) << "seed " << seed << "\n" << text;
    ASSERT_EQ(print(again), text) << "seed " << seed;
  }
}

// Replaces, removes, repeats and moves pieces of a text.
std::string mutilate(std::string text, std::mt19937_64& random) {
  const auto below = [&](size_t bound) { return bound == 0 ? 0 : random() % bound; };
  static const std::vector<std::string> kPieces = {"%",
                                                   "(",
                                                   ")",
                                                   "[",
                                                   "]",
                                                   "{",
                                                   "}",
                                                   ",",
                                                   "=",
                                                   ":",
                                                   "\"",
                                                   "\\",
                                                   "#",
                                                   "\n",
                                                   " ",
                                                   "-",
                                                   "0x",
                                                   ".",
                                                   "e",
                                                   "none",
                                                   "99999999999999999999",
                                                   "-1",
                                                   "9223372036854775807",
                                                   "inf",
                                                   "region(",
                                                   "array(float32[2], [",
                                                   "strides=[",
                                                   "mutate ",
                                                   "return ",
                                                   "%x",
                                                   "effect=0",
                                                   "scalar(",
                                                   "[[[[[[[[",
                                                   std::string(1, '\0')};
  for (size_t edits = 1 + below(3); edits > 0; --edits) {
    const size_t at = below(text.size() + 1);
    const size_t length = below(std::min<size_t>(text.size() - at, 20) + 1);
    switch (below(6)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, kPieces[below(kPieces.size())]);
        break;
      case 3:
        text.replace(at, length, kPieces[below(kPieces.size())]);
        break;
      case 4:
        text.insert(below(text.size() + 1), text.substr(at, length));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(random());
    }
  }
  return text;
}

TEST(RoundTrip, MutilatedTextIsLegalOrAUserError) {
  std::mt19937_64 random(1);
  size_t parsed = 0, refused = 0;
  for (uint64_t seed = 0; seed < fuzz_runs(1500); ++seed) {
    const std::string text = print(RandomGraph(seed).make());
    for (int variant = 0; variant < 10; ++variant) {
      const std::string broken = mutilate(text, random);
      try {
        const Graph graph = parse(broken);
        ++parsed;
        ASSERT_NO_THROW(verify(graph)) << broken;
        ASSERT_EQ(parse(print(graph)), graph) << broken;
      } catch (const UserError& error) {
        ++refused;
        ASSERT_EQ(std::string(error.what()).find("[parse] graph:"), 0U) << error.what();
      } catch (const std::exception& error) {
        FAIL() << error.what() << "\n" << broken;
      }
    }
  }
  EXPECT_GT(parsed, 0U);
  EXPECT_GT(refused, parsed);
}

}  // namespace
}  // namespace composit
