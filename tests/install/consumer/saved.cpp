// Writes a capture that was built by hand into a folder, for the command line: sin(x * y) + x.
#include <composit/io/saved_capture.h>
#include <composit/ir/node.h>
#include <composit/ops/functions.h>
#include <composit/ops/native.h>

int main(int, char** argv) {
  using namespace composit;
  const Type type = tensor_type(DType::float64, {3});
  const LazyTensor x = input("x", type), y = input("y", type);
  const Array values = array_of(type, std::vector<double>{0.5, -1, 2});
  const LazyTensor result = sin(x * y) + x;
  save({.graph = Graph({.inputs = {x, y}, .outputs = {result}}),
        .schemas = {"aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                    "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
                    "aten::sin(Tensor self) -> Tensor"},
        .example_inputs = {values, values},
        .example_outputs = {array_of(
            type,
            std::vector<double>{0.7474039592545229, -0.1585290151921035, 1.2431975046920718})}},
       argv[1]);
  return 0;
}
