// An operation and a backend of one's own, on top of the installed package: one row, and the
// operation is inferred, evaluated, differentiated twice and printed.
#include <composit/ad/chain_rule.h>
#include <composit/eval/evaluate.h>
#include <composit/ir/graph.h>
#include <composit/ir/print.h>
#include <composit/ops/functions.h>
#include <composit/ops/native.h>

#include <cmath>
#include <iostream>

using namespace composit;

// Counts what it is given to compile, and leaves the work to the reference.
class Counting : public Backend {
 public:
  std::string name() const override { return "counting"; }
  mutable size_t nodes = 0;

 protected:
  Compiled make(const Graph& graph, const CompileOptions& options) const override {
    nodes += graph.size();
    return reference().compile(graph, options);
  }
};

int main() {
  add_operation({.schema = "mine::sinh_of_square(Tensor x, *, float scale=1.0) -> Tensor",
                 .promote = Promote::to_float,
                 .scalar = [](Expr x, double scale) { return scale * sinh(x * x); }});
  const LazyTensor x = input("x", tensor_type(DType::float64, {2}));
  const LazyTensor y = apply_one("mine::sinh_of_square", {x, 2.0});
  const LazyTensor first = grad(sum(y), {x})[0];
  const LazyTensor second = grad(sum(first), {x})[0];
  std::cout << print(second.graph());

  const Array values = array_of(x.type(), std::vector<double>{0.5, -1.25});
  const Counting backend;
  const auto results = evaluate({y, first, second}, {{x, values}}, backend);
  bool equal = backend.nodes > 3;
  for (size_t i = 0; i < 2; ++i) {
    const double v = elements<double>(values)[i], s = std::sinh(v * v), c = std::cosh(v * v);
    const double expected[] = {2 * s, 4 * v * c, 4 * c + 8 * v * v * s};
    for (size_t k = 0; k < 3; ++k)
      equal = equal && std::abs(elements<double>(results[k])[i] - expected[k]) < 1e-12;
  }
  std::cout << (equal ? "as by hand\n" : "differs from what is worked out by hand\n");
  return equal ? 0 : 1;
}
