// A function of Knossos' language, called as an operation of composit::numpy and within a function
// of numbers; its derivative goes through both.
//
//   example_13_knossos examples/ks/relu3.ks
//
// Prints values and slopes; fails if the two differ. examples/python/knossos.py calls it from
// Python, and inside of a captured model.
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>

#include "composit/ad/chain_rule.h"
#include "composit/eval/evaluate.h"
#include "composit/numpy/numpy.h"
#include "composit/ops/native.h"
#include "flashlight/scalar/scalar.h"
#include "frontends/ks/function.h"
#include "frontends/ks/parse.h"

namespace cnp = composit::numpy;
namespace ks = flashlight::ks;

double number(const composit::LazyTensor& x) {
  return composit::elements<double>(composit::evaluate({x})[0])[0];
}

int main(int count, char** arguments) {
  if (count != 2) return std::cerr << "expected the file relu3.ks\n", 2;
  std::ifstream stream(arguments[1]);
  const ks::Program program =
      ks::parse(std::string(std::istreambuf_iterator<char>(stream), {}), arguments[1]);
  const ks::ProgramFunction relu3(program, "relu3");

  const auto twice = flashlight::scalar([&](auto x) { return 2 * relu3.number(x * x); });
  bool same = true;
  for (const double at : {-.5, .5, 1.5}) {
    const cnp::NdArray x = cnp::asarray(at);
    const cnp::NdArray y = cnp::NdArray(relu3({x * x})[0]) * 2.0;  // one node of the graph
    const double value = number(y), slope = number(composit::grad(y, {x})[0]);
    std::cout << "x " << at << ": " << value << ", slope " << slope << "\n";
    same = same && std::abs(twice(at) - value) < 1e-12 &&
           std::abs(twice.vjp({at}, {1})[0] - slope) < 1e-12;
  }
  return same ? 0 : 1;
}
