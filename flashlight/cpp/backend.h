// The backend that writes C++, has it compiled, and calls it in this process.
//
//   const Compiled relu3 = compile(graph, {.name = "relu3"});
//   std::vector<Array> y = relu3(inputs);
//   std::cout << relu3.source();
//
//   evaluate(graph, inputs, flashlight::cpp::backend());
//
// A call allocates its results; temporaries have one arena per thread. Calls may run at the same
// time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/op/backend.h"
#include "flashlight/cpp/emit.h"
#include "flashlight/cpp/split.h"
#include "flashlight/loops/lower.h"
#include "flashlight/toolchain/build.h"

namespace fl {
class Generator;
}

namespace flashlight::cpp {

using namespace loops;

struct CompileOptions {
  std::string name = "program";
  std::vector<std::string> results = {};  // as in LowerOptions
  AtenSchemas aten = {};                  // as in LowerOptions
  // After default_flags(): for this CPU, errno left alone, integers wrap.
  std::vector<std::string> flags = {};
  std::function<void(const toolchain::Progress&)> progress = {};
};

std::vector<std::string> default_flags();

// LibTorch's, where a program sets none.
constexpr uint64_t kDefaultSeed = 67280421310721;

// A compiled graph.
class Compiled {
 public:
  // An array per input of the graph; one per output, then one per mutation. Draws are those of
  // LibTorch after torch::manual_seed(seed). UserError for arrays of another type, and for what
  // generated code refuses: an index out of range, a guard.
  std::vector<Array> operator()(const std::vector<Array>& inputs,
                                uint64_t seed = kDefaultSeed) const;
  // The same in memory of the caller: row-major elements of the graph's inputs (nullptr for one
  // that is not used) and results (outputs that are there, mutations).
  void run(const std::vector<const void*>& inputs, const std::vector<void*>& results,
           uint64_t seed = kDefaultSeed) const;
  // Draws go on from where `generator` is (flashlight/runtime/random.hpp).
  void run(const std::vector<const void*>& inputs, const std::vector<void*>& results,
           fl::Generator& generator) const;
  bool draws() const;
  // The C++ it was made of; includes the header `runtime_text()`.
  const std::string& source() const;

  struct State;

 private:
  friend std::vector<Compiled> compile(const std::vector<composit::Graph>& graphs,
                                       const std::vector<std::string>& names,
                                       const CompileOptions& options);
  std::shared_ptr<const State> state_;
};

// UserError that lists the operations there is no code for; or with what the compiler says.
Compiled compile(const composit::Graph& graph, const CompileOptions& options = {});
// Several graphs in one translation unit: starting a compiler costs more than a kernel. Their names
// have to be distinct, and take the place of `options.name`.
std::vector<Compiled> compile(const std::vector<composit::Graph>& graphs,
                              const std::vector<std::string>& names,
                              const CompileOptions& options = {});

// The C++ for a graph, by the whole way: lower, fuse, emit.
Source source_of(const composit::Graph& graph, const LowerOptions& options = {},
                 const SplitOptions& split = {});

const composit::Backend& backend();

}  // namespace flashlight::cpp
