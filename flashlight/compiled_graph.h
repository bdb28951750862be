// A graph as compiled C++ that is called with LibTorch's tensors, and is one function to autograd.
//
//   const CompiledGraph f(graph, {.name = "relu3"});
//   std::vector<at::Tensor> y = f({x});              // y[0].backward() works
//   std::cout << f.source() << f.vjp({true}).source();
//
// The backward of a call is the graph's derivative, compiled when it is first needed. It computes
// intermediate values again instead of keeping them. Being a graph as well, it has derivatives of
// its own, so gradients of gradients work.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/op/options.h"
#include "composit/op/ports.h"
#include "flashlight/backends/cpp.h"
#include "flashlight/backends/mosaic.h"
#include "flashlight/backends/profile.h"

namespace fl {
class Generator;
}

namespace flashlight {

// Options of compiling.
struct CompileSettings {
  std::string name = "program";         // name of the function in the source
  std::vector<std::string> flags = {};  // flags for the compiler, after the backend's own
  // A name of flashlight/backends/registry.h, with options by name: {"mosaic", {{"threads", 2}}};
  // or options that have a type: Mosaic{.threads = 2}.
  composit::BackendChoice backend = "cpp";
  std::vector<std::string> arguments = {};  // names of a function's arguments
  std::vector<std::string> results = {};    // names of results; default: names of operations
};

class SharedCode;   // shared_code.h
class BoundInputs;  // bound_inputs.h

// How a graph is compiled together with the same program at other sizes.
struct SharedUse {
  std::shared_ptr<SharedCode> code = nullptr;  // with the same settings; by default there is none
  bool may_compile = true;  // false: CompilerWanted where a compiler would have to run
  std::shared_ptr<BoundInputs> inputs = nullptr;  // of a capture: the tensors of the model
  // Makes the graph again. Where it is given, the graph is not kept: calls do without it, and there
  // is one for each size.
  std::function<composit::Graph()> graph_again = nullptr;
};

class CompiledGraph {
 public:
  // UserError that lists the operations without code, or the backends or options that exist if it
  // asks for another; names the choice that cannot be made; or tells what the compiler reports.
  CompiledGraph(composit::Graph graph, CompileSettings settings, SharedUse shared = {});

  // The graph that it computes.
  const composit::Graph& graph() const;
  // Its inputs and results, without the graph.
  const composit::Ports& ports() const;
  // The C++ it was made of.
  const std::string& source() const;
  // By input: true for weights that the first call packs, and later ones only where they were
  // written since. Those may be undefined tensors in later calls, when they are gone.
  const std::vector<bool>& frozen() const;

  // A tensor per input of the graph (in the CPU's memory, of any strides); gives one per output, an
  // undefined one where the graph has none. Writes what the graph writes to its inputs, nothing of
  // it in a call that throws; a backend may do so without a copy if the old value is not read any
  // more, no other input has the same memory and it is row-major. A graph that writes to what
  // requires a gradient is no function to autograd. Draws are those of LibTorch's default
  // generator; the backward draws the same numbers. Within a program that is captured, the call is
  // one operator, `composit::evaluate`; a UserError there for graphs with weights, draws and
  // writes. UserError for tensors of other types than the inputs', what generated code refuses, and
  // frozen inputs that are gone: in the first call, in one after another of them was written, and
  // in the backward.
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs) const;

  // Packs weights, as the first call does: of `inputs` those that are frozen are looked at.
  void pack(const std::vector<at::Tensor>& inputs) const;

  // The derivative: it takes the inputs, then a cotangent per output of floating point or complex
  // dtype; it gives the gradients of the `wanted` inputs. Leaves out options that name values of
  // this graph, like mosaic's choices. UserError for an operation without a derivative.
  CompiledGraph vjp(const std::vector<bool>& wanted) const;

  // The time of each kernel in one call (flashlight/backends/profile.h), which writes nothing to
  // inputs. UserError for backends without kernels to time.
  Profile profile(const std::vector<at::Tensor>& inputs) const;

 private:
  struct State;
  struct Call;  // to autograd
  // The generator state that draws start from; nullptr: LibTorch's default generator.
  using Start = std::shared_ptr<const fl::Generator>;
  std::vector<at::Tensor> call(const std::vector<at::Tensor>& inputs, const Start& start) const;
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, const Start& start,
                              bool updates, Profile* profile = nullptr) const;
  void check_count(const std::vector<at::Tensor>& inputs) const;
  void expect_weights(const std::vector<at::Tensor>& inputs) const;
  std::vector<at::Tensor> call_as_operator(const std::vector<at::Tensor>& inputs) const;
  bool needs_autograd(const std::vector<at::Tensor>& inputs) const;
  std::shared_ptr<State> state_;
};

}  // namespace flashlight
