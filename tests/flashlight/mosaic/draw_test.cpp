// Pictures of plans: every value of the arena is there, where it lies.
#include "flashlight/mosaic/draw.h"

#include <gtest/gtest.h>

#include <array>
#include <regex>
#include <set>

#include "composit/ops/functions.h"
#include "flashlight/mosaic/buffers.h"
#include "tests/flashlight/mosaic/compare.h"

namespace flashlight::mosaic {
namespace {

using namespace composit;  // NOLINT
using test::given;
using test::weight;

Plan planned() {
  LazyTensor x = matmul(given("x", {64, 96}), weight("w", {96, 96}));
  for (const char* name : {"a", "b", "c"}) x = softmax(matmul(x, weight(name, {96, 96})) + x, 1);
  return plan_of(test::case_of("", {matmul(x, weight("last", {96, 8}))}).graph, {.name = "a < b"});
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(MosaicDraw, the_arena_has_a_box_per_value_where_it_lies) {
  const Plan plan = planned();
  const std::string svg = arena_svg(plan);
  size_t values = 0;
  for (const Buffer& one : buffers_of(plan)) values += one.values.size();
  EXPECT_GT(values, 4);
  EXPECT_EQ(count_of(svg, "<title>"), values);
  EXPECT_EQ(count_of(svg, ", in place</title>"), plan.in_place.size());
  // Boxes do not overlap, for values do not.
  const std::regex box(
      "</title><rect x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\" height=\"([0-9.]+)\"");
  std::vector<std::array<double, 4>> boxes;
  for (std::sregex_iterator i(svg.begin(), svg.end(), box), end; i != end; ++i)
    boxes.push_back(
        {std::stod((*i)[1]), std::stod((*i)[2]), std::stod((*i)[3]), std::stod((*i)[4])});
  ASSERT_EQ(boxes.size(), values);
  const double slack = 0.02;  // as it is printed
  for (size_t a = 0; a < boxes.size(); ++a)
    for (size_t b = a + 1; b < boxes.size(); ++b) {
      const auto apart = [&](size_t at) {
        return boxes[a][at] + boxes[a][at + 2] <= boxes[b][at] + slack ||
               boxes[b][at] + boxes[b][at + 2] <= boxes[a][at] + slack;
      };
      EXPECT_TRUE(apart(0) || apart(1)) << a << " and " << b;
    }
}

TEST(MosaicDraw, names_are_safe_in_pictures) {
  const std::string svg = arena_svg(planned());
  EXPECT_NE(svg.find("a &lt; b: arena of"), std::string::npos);
  EXPECT_EQ(svg.find("a < b"), std::string::npos);
  EXPECT_NE(svg.find("at least"), std::string::npos);
}

TEST(MosaicDraw, kernels_are_nodes_in_the_colour_of_their_place) {
  const Plan plan = planned();
  const std::string dot = kernels_dot(plan);
  EXPECT_EQ(count_of(dot, "fillcolor="), plan.run.size());
  EXPECT_EQ(count_of(dot, "\\nover "), plan.in_place.size());
  // A value that is written over another one has its colour.
  const std::regex node(
      "k([0-9]+) \\[label=\"[^\"]*\\\\nover [^\"]*\", fillcolor=\"(#[0-9a-f]+)\"");
  std::set<std::string> colours;
  for (std::sregex_iterator i(dot.begin(), dot.end(), node), end; i != end; ++i)
    colours.insert((*i)[2]);
  std::set<int64_t> places;
  for (const auto& [value, over] : plan.in_place) places.insert(plan.offsets[value]);
  EXPECT_EQ(colours.size(), places.size());
  EXPECT_GE(count_of(dot, " -> "), plan.run.size() - 1);
}

}  // namespace
}  // namespace flashlight::mosaic
