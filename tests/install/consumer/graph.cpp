// Builds a graph by hand, without LibTorch.
#include <composit/ir/graph.h>
#include <composit/ir/node.h>
#include <flashlight/version.h>

#include <iostream>

int main() {
  using namespace composit;
  const LazyTensor x = input("x", tensor_type(DType::float32, {2, 3}));
  NodeSpec relu("aten::relu");
  relu.tensor(x).output(x.type());
  const LazyTensor y = std::move(relu).make();
  const Graph graph({.inputs = {x}, .outputs = {y}});
  std::cout << "flashlight " << flashlight::kVersion << ": " << graph.size() << " nodes\n";
  return graph.size() == 2 ? 0 : 1;
}
