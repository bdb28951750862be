// Programs that run on values and read some of them on the host, as a tracer sees them.
//
//   HostProgram program = [](HostRun& run) {
//     return run.returns({run.is_positive(run.x) ? run.x * 2 : run.x});
//   };
//   Graph graph = run(program, {1, 2, 3});    // with a guard for the answer
#pragma once

#include <cstring>
#include <functional>
#include <vector>

#include "composit/eval/evaluate.h"
#include "composit/ir/graph.h"
#include "composit/ops/functions.h"

namespace composit::test {

using Floats = std::vector<float>;

inline Attribute list_of_number(Scalar::Value number) {
  List list;
  list.items.emplace_back(Scalar(number));
  return list;
}

inline Array array_of(const Floats& values) {
  return Array::copy_of(tensor_type(DType::float32, {static_cast<int64_t>(values.size())}),
                        values.data());
}

inline Floats floats_of(const Array& array) {
  Floats values(static_cast<size_t>(array.type().numel()));
  std::memcpy(values.data(), array.contiguous().data(), values.size() * sizeof(float));
  return values;
}

// One run of a program over %x, and what it reads on the host.
class HostRun {
 public:
  explicit HostRun(const Floats& x)
      : x(input("x", array_of(x).type())), values_({{this->x, array_of(x)}}) {}

  // The value of `question`, one bool or number, as the program reads it.
  // `line`: of the source.
  template <class T>
  T read(const LazyTensor& question, std::string line = "") {
    const Array value = evaluate({question}, values_).at(0);
    T number;
    std::memcpy(&number, value.data(), sizeof(T));
    Scalar::Value expected = false;
    if constexpr (std::is_same_v<T, bool>)
      expected = number;
    else
      expected = static_cast<double>(number);
    NodeSpec spec = NodeSpec("aten::_local_scalar_dense")
                        .tensor(question)
                        .run("expected", list_of_number(expected))
                        .run("effect", static_cast<int64_t>(effects_.size()));
    if (!line.empty()) spec.annotate("source", std::move(line));
    effects_.push_back(std::move(spec).make_node());
    return number;
  }
  bool is_positive(const LazyTensor& tensor, std::string line = "") {
    return read<bool>(sum(tensor) > 0, std::move(line));
  }
  void write(const LazyTensor& value) { written_ = value; }

  Graph returns(const LazyTensors& results) const {
    Graph::Parts parts{.inputs = {x}, .outputs = results, .mutations = {}, .effects = effects_};
    if (written_) parts.mutations = {{x, written_}};
    return Graph(std::move(parts));
  }

  const LazyTensor x;

 private:
  Values values_;
  LazyTensor written_;
  std::vector<NodePtr> effects_;
};

using HostProgram = std::function<Graph(HostRun&)>;

inline Graph run(const HostProgram& program, const Floats& x) {
  HostRun one(x);
  return program(one);
}

}  // namespace composit::test
