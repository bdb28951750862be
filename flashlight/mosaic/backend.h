// The backend that is fast: a graph as tiled kernels for this CPU, compiled and called here.
//
//   const Compiled bert = compile(graph, weights, {.plan = {.name = "bert"}, .threads = 2});
//   std::vector<Array> y = bert(inputs);
//   std::cout << bert.source();
//
// Parameters and buffers are packed once, when it is compiled; those that the graph writes, and all
// with `freeze = false`, are read anew in each call. Code is compiled without them, and may be
// prepared for several sets of weights:
//
//   const Kernels code = compile_kernels(graph, {.plan = {.name = "bert"}});
//   const Compiled first = code.prepare(weights), second = code.prepare(fine_tuned);
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/op/backend.h"
#include "flashlight/cpp/backend.h"
#include "flashlight/mosaic/plan.h"
#include "flashlight/mosaic/prepare.h"
#include "flashlight/mosaic/profile.h"
#include "flashlight/toolchain/build.h"

namespace flashlight::mosaic {

struct CompileOptions {
  PlanOptions plan = {};
  int threads = 0;                      // of a call; 0: one per core
  std::vector<std::string> flags = {};  // of the compiler, after the backend's own
  std::function<void(const toolchain::Progress&)> progress = {};
};

// A compiled graph. Calls may run at the same time; the memory of each is allocated by the first
// ones, not anew.
class Compiled {
 public:
  // An array per input of the graph, an undefined one for those that were frozen; one per output,
  // then one per mutation. Draws are those of LibTorch after torch::manual_seed(seed). UserError
  // for arrays of another type, and for what generated code refuses.
  std::vector<composit::Array> operator()(const std::vector<composit::Array>& inputs,
                                          uint64_t seed = cpp::kDefaultSeed) const;
  // The same in memory of the caller: row-major elements of inputs (nullptr for frozen ones, and
  // those that are not used) and results. A result that `may_update` its input may have its memory,
  // if no other input overlaps that; whatever throws does so before it is written.
  void run(const std::vector<const void*>& inputs, const std::vector<void*>& results,
           uint64_t seed = cpp::kDefaultSeed) const;
  // Draws go on from where `generator` is (flashlight/runtime/random.hpp).
  void run(const std::vector<const void*>& inputs, const std::vector<void*>& results,
           fl::Generator& generator) const;
  // The same, with the time of each kernel.
  Profile profile(const std::vector<const void*>& inputs, const std::vector<void*>& results,
                  fl::Generator& generator) const;
  Profile profile(const std::vector<const void*>& inputs, const std::vector<void*>& results) const;
  const std::string& source() const;
  const Plan& plan() const;
  // As Kernels::may_update.
  bool may_update(size_t result) const;

  struct Code;

 private:
  friend class Kernels;
  Compiled(std::shared_ptr<const Code> code, Prepared prepared);
  void call(const std::vector<const void*>& inputs, const std::vector<void*>& results,
            fl::Generator& generator, int64_t* times) const;
  std::shared_ptr<const Code> code_;
  std::shared_ptr<const Prepared> prepared_;
};

// The code of a graph, for whatever values its weights have.
class Kernels {
 public:
  // `weights`: by input, the values of those that are parameters and buffers; the others are not
  // looked at. What calls read of them as it is stays shared with the caller; what is packed is
  // needed no more. UserError where one that is frozen has no value, or one of another type.
  Compiled prepare(const std::vector<composit::Array>& weights) const;
  // Whether `prepare` takes the value of this input, so that calls need not be given it.
  bool is_frozen(size_t input) const;
  // Whether this result, by its place in what `run` is given, is the new value of an input, and may
  // be written in its memory. Only with PlanOptions::update_inputs.
  bool may_update(size_t result) const;
  bool draws() const;
  const std::string& source() const;

 private:
  friend std::vector<Kernels> compile_kernels(std::vector<Plan> plans,
                                              const CompileOptions& options);
  std::shared_ptr<const Compiled::Code> code_;
};

// UserError that lists the operations there is no code for.
Kernels compile_kernels(const composit::Graph& graph, const CompileOptions& options = {});
// Several graphs in one translation unit: starting a compiler costs more than a kernel. Their names
// have to be distinct, and take the place of `options.plan.name`.
std::vector<Kernels> compile_kernels(const std::vector<composit::Graph>& graphs,
                                     const std::vector<std::string>& names,
                                     const CompileOptions& options = {});
// Plans that somebody may have changed by hand, in one translation unit. Of the options, those
// beside `plan`. UserError where values overlap that live at the same time.
std::vector<Kernels> compile_kernels(std::vector<Plan> plans, const CompileOptions& options = {});

// A graph compiled and prepared.
Compiled compile(const composit::Graph& graph, const std::vector<composit::Array>& weights,
                 const CompileOptions& options = {});

}  // namespace flashlight::mosaic
