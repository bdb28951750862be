#include "tests/flashlight/offline/small_encoder.h"

#include <cmath>

#include "composit/eval/evaluate.h"
#include "composit/ir/annotation_scope.h"
#include "composit/nn/transforms.h"
#include "composit/ops/native.h"

namespace flashlight::test {
namespace {

using namespace composit;  // NOLINT

class Encoder {
 public:
  SavedCapture make() {
    const LazyTensor tokens = argument("tokens", DType::int64, {3, 1, 19, 0, 7, 7});
    const LazyTensor mask = unsqueeze(argument("mask", DType::bool_, {1, 1, 1, 1, 0, 1}), 1);
    const LazyTensor words = weight("embeddings.weight", {20, 8});
    LazyTensor x = nn::embedding(tokens, words);
    for (int layer = 0; layer < 3; ++layer)
      x = encoded(x, mask, "encoder.layer." + std::to_string(layer));
    const LazyTensor decoder = tied("decoder.weight", "embeddings.weight", {20, 8});
    const LazyTensor logits = nn::linear(x, decoder);
    return finished({x, mean(logits * logits)});
  }

 private:
  LazyTensor encoded(const LazyTensor& x, const LazyTensor& mask, const std::string& module) {
    const NodePtr of_module =
        NodeSpec("test::module").annotate("scope", module).output(x.type()).make_node();
    const AnnotationScope scope(*of_module);
    const LazyTensor query = linear(x, module + ".query"), key = linear(x, module + ".key"),
                     value = linear(x, module + ".value");
    const LazyTensor scores = matmul(query, transpose(key, 1, 2)) * 0.35;
    const LazyTensor seen = where(mask, scores, -1e9);
    const LazyTensor y = x + linear(matmul(softmax(seen, -1), value), module + ".output");
    return y + linear(relu(linear(y, module + ".inner", 96)), module + ".outer", 8, 96);
  }

  LazyTensor linear(const LazyTensor& x, const std::string& module, int64_t out = 8,
                    int64_t in = 8) {
    const LazyTensor matrix = weight(module + ".weight", {out, in});
    return nn::linear(x, matrix, weight(module + ".bias", {out}));
  }

  LazyTensor argument(const std::string& name, DType dtype, const std::vector<int64_t>& values) {
    const Type type = tensor_type(dtype, {1, static_cast<int64_t>(values.size())});
    capture_.example_inputs.push_back(array_of(type, values));
    return added(input(name, type), capture_.example_inputs.back());
  }

  LazyTensor weight(const std::string& name, const Dims& sizes) {
    const Type type = tensor_type(DType::float32, sizes);
    std::vector<double> values;
    for (int64_t i = 0; i < type.numel(); ++i)
      values.push_back(0.4 * std::sin(static_cast<double>(3 * i + ++drawn_)));
    capture_.weights[name] = array_of(type, values);
    return added(input(name, type, InputKind::parameter), capture_.weights[name]);
  }

  LazyTensor tied(const std::string& name, const std::string& to, const Dims& sizes) {
    capture_.weights[name] = capture_.weights[to];
    return added(input(name, tensor_type(DType::float32, sizes), InputKind::parameter),
                 capture_.weights[name]);
  }

  LazyTensor added(const LazyTensor& one, const Array& value) {
    inputs_.push_back(one);
    values_.push_back(value);
    return one;
  }

  SavedCapture finished(const LazyTensors& results) {
    LazyTensors outputs;
    for (const LazyTensor& result : results) outputs.push_back(result);
    capture_.graph = Graph({.inputs = inputs_, .outputs = outputs});
    capture_.example_outputs = evaluate(capture_.graph, values_);
    return std::move(capture_);
  }

  SavedCapture capture_;
  LazyTensors inputs_;
  std::vector<Array> values_;
  int drawn_ = 0;
};

}  // namespace

SavedCapture small_encoder() { return Encoder().make(); }

}  // namespace flashlight::test
