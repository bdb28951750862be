// A million chained nodes, on ordinary and small stacks.
#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>

#include "composit/ir/compare.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ir/transform.h"
#include "composit/ir/verify.h"

namespace composit {
namespace {

constexpr size_t kSmallStack = 512 << 10;
// Sanitizers multiply time, memory, and the size of a function's frame.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kLength = 100'000;
constexpr size_t kNestingStack = 8 * kSmallStack;
#else
constexpr int kLength = 1'000'000;
constexpr size_t kNestingStack = kSmallStack;
#endif

// tanh(... tanh(x)), with `op` in the middle.
Graph chain(int length, std::string_view op = "aten::tanh") {
  const LazyTensor x = input("x", tensor_type(DType::float32, {2, 3}));
  LazyTensor last = x;
  for (int i = 0; i < length; ++i) {
    NodeSpec spec(i == length / 2 ? op : "aten::tanh");
    spec.tensor(last).output(x.type());
    last = std::move(spec).make();
  }
  return Graph({.inputs = {x}, .outputs = {last}});
}

void live_a_full_life() {
  Graph graph = chain(kLength);
  ASSERT_EQ(graph.size(), static_cast<size_t>(kLength) + 1);
  EXPECT_NO_THROW(verify(graph));
  const std::string text = print(graph);
  Graph again = parse(text);
  EXPECT_EQ(again.hash(), graph.hash());
  EXPECT_TRUE(compare(graph, again).empty());
  Graph other = chain(kLength, "aten::relu");
  // The relu is another node, and two wires lead to the old and from the new one.
  EXPECT_EQ(compare(graph, other).size(), 3U);
  const Node* first = graph.nodes()[1].get();
  Graph annotated = annotate(graph, {{first, {Symbol("note"), "first"}}});
  EXPECT_EQ(annotated, graph);
  graph = again = other = annotated = Graph();
}

// Runs `body` in a thread with a stack of so many bytes.
void run_with_stack(size_t bytes, std::function<void()> body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &body), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(LargeGraph, OnTheMainStack) { live_a_full_life(); }

TEST(LargeGraph, OnASmallStack) { run_with_stack(kSmallStack, live_a_full_life); }

// The last owner of the whole chain is an operand, an attribute, a thread that ends.
TEST(LargeGraph, DiesFromWhereverItIsHeld) {
  run_with_stack(kSmallStack, [] {
    const Type type = tensor_type(DType::float32, {2, 3});
    NodeSpec holder("user::holder");
    holder.tensor(chain(kLength / 4).outputs()[0]).output(type);
    LazyTensor held = std::move(holder).make();
    held = {};
    NodeSpec caller("composit::call");
    caller.attribute("callee", std::make_shared<const Graph>(chain(kLength / 4))).output(type);
    LazyTensor called = std::move(caller).make();
    called.hash();
    called = {};
  });
}

// A graph that calls a graph that calls ..., with lists in lists at the end.
Graph nested_calls(Attribute innermost) {
  const Type type = tensor_type(DType::float32, {2, 3});
  for (size_t depth = 0; depth < kMaxNesting; ++depth)
    innermost = List{AttributeKind::list, {std::move(innermost)}};
  Graph graph;
  for (size_t depth = 0; depth <= kMaxNesting; ++depth) {
    NodeSpec spec("composit::call");
    spec.attribute("callee", depth == 0 ? innermost : std::make_shared<const Graph>(graph));
    graph = Graph({.outputs = {std::move(spec.output(type)).make()}});
  }
  return graph;
}

// Regions and lists are all that is followed by recursion, to a depth that verify limits.
TEST(LargeGraph, DeepestNestingOnASmallStack) {
  run_with_stack(kNestingStack, [] {
    const Graph graph = nested_calls(1), other = nested_calls(2);
    EXPECT_NO_THROW(verify(graph));
    EXPECT_EQ(parse(print(graph)), graph);
    EXPECT_EQ(compare(graph, other).size(), 1U);
    const Node* outermost = graph.outputs()[0].node.get();
    EXPECT_EQ(annotate(graph, {{outermost, {Symbol("note"), "x"}}}), graph);
  });
}

}  // namespace
}  // namespace composit
