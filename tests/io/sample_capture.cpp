#include "tests/io/sample_capture.h"

#include "tests/io/arrays.h"

namespace composit::test {

SavedCapture sample_capture(float value) {
  const Array weight = floats({4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Array bias = floats({4}, {value, value, value, value});
  const Array strided = stored_transposed(floats({4, 4}, std::vector<float>(16, value)));
  const auto parameter = [](const char* name, const Array& array) {
    return input(name, array.type(), InputKind::parameter);
  };
  const LazyTensor x = input("x", tensor_type(DType::float32, {2, 3}));
  const LazyTensor w = parameter("fc.weight", weight), b = parameter("fc.bias", bias),
                   t = parameter("tied.weight", weight),
                   s = input("strided", strided.type(), InputKind::buffer);
  const Type result = tensor_type(DType::float32, {2, 4});
  const LazyTensor y = std::move(NodeSpec("aten::linear")
                                     .tensor(x)
                                     .tensor(w)
                                     .tensor(b)
                                     .annotate("scope", "fc")
                                     .output(result))
                           .make();
  const LazyTensor z =
      std::move(NodeSpec("aten::linear").tensor(x).tensor(t).tensor({}).output(result)).make();
  const LazyTensor table = constant(floats({100}, std::vector<float>(100, 0.5F)), "table");
  NodeSpec cat("aten::cat");
  cat.list({y, z}).attribute("dim", 1).output(tensor_type(DType::float32, {2, 8}));
  const LazyTensor joined = std::move(cat).make();

  SavedCapture capture;
  capture.graph =
      Graph({.inputs = {x, w, b, t, s}, .outputs = {joined, table, s}, .mutations = {{x, x}}});
  capture.weights = {
      {"fc.weight", weight}, {"fc.bias", bias}, {"tied.weight", weight}, {"strided", strided}};
  capture.producer = "torch 2.13.0";
  capture.schemas = {"aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
                     "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"};
  capture.properties = {{"generator.default", "00ff"}, {"result", "(tensor, tensor, tensor)"}};
  capture.example_inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6})};
  capture.example_outputs = {counting_bytes(DType::int64, {2, 8}),
                             counting_bytes(DType::bool_, {100}), strided};
  return capture;
}

}  // namespace composit::test
