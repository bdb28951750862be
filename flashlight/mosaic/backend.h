// The backend that is fast: a graph as tiled kernels for this CPU, compiled and called here.
//
//   const Compiled bert = compile(graph, weights, {.name = "bert", .threads = 2});
//   std::vector<Array> y = bert(inputs);
//   std::cout << bert.source();
//
// Parameters and buffers are packed once, when it is compiled; the graph's writes to them, and
// what is compiled with `freeze = false`, are read anew in each call.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/op/backend.h"
#include "flashlight/cpp/backend.h"
#include "flashlight/mosaic/plan.h"
#include "flashlight/mosaic/profile.h"
#include "flashlight/toolchain/build.h"

namespace flashlight::mosaic {

struct CompileOptions {
  std::string name = "program";
  std::vector<std::string> results = {};  // what results are called
  int threads = 0;                        // of a call; 0: one per core
  bool freeze = true;
  std::vector<std::string> flags = {};  // of the compiler, after the backend's own
  std::function<void(const toolchain::Progress&)> progress = {};
};

// A compiled graph. Calls may run at the same time.
class Compiled {
 public:
  // An array per input of the graph, an undefined one for those that were frozen; one per output,
  // then one per mutation. Draws are those of LibTorch after torch::manual_seed(seed). UserError
  // for arrays of another type, and for what generated code refuses.
  std::vector<composit::Array> operator()(const std::vector<composit::Array>& inputs,
                                          uint64_t seed = cpp::kDefaultSeed) const;
  // The same in memory of the caller: row-major elements of inputs (nullptr for frozen ones, and
  // those that are not used) and results.
  void run(const std::vector<const void*>& inputs, const std::vector<void*>& results,
           uint64_t seed = cpp::kDefaultSeed) const;
  // The same, with the time of each kernel.
  Profile profile(const std::vector<const void*>& inputs, const std::vector<void*>& results) const;
  const std::string& source() const;
  const Plan& plan() const;

  struct State;

 private:
  void call(const std::vector<const void*>& inputs, const std::vector<void*>& results,
            uint64_t seed, int64_t* times) const;
  friend std::vector<Compiled> compile(const std::vector<composit::Graph>& graphs,
                                       const std::vector<std::string>& names,
                                       const std::vector<std::vector<composit::Array>>& weights,
                                       const CompileOptions& options);
  std::shared_ptr<const State> state_;
};

// `weights`: by input, the values of those that are parameters and buffers; the others are not
// looked at. UserError that lists the operations there is no code for.
Compiled compile(const composit::Graph& graph, const std::vector<composit::Array>& weights,
                 const CompileOptions& options = {});
// Several graphs in one translation unit: starting a compiler costs more than a kernel. Their names
// have to be distinct, and take the place of `options.name`.
std::vector<Compiled> compile(const std::vector<composit::Graph>& graphs,
                              const std::vector<std::string>& names,
                              const std::vector<std::vector<composit::Array>>& weights,
                              const CompileOptions& options = {});

}  // namespace flashlight::mosaic
