// A graph as compiled C++ that is called with LibTorch's tensors, and is one function to autograd.
//
//   const CompiledGraph f(graph, {.name = "relu3"});
//   std::vector<at::Tensor> y = f({x});              // y[0].backward() works
//   std::cout << f.source() << f.vjp({true}).source();
//
// The backward of a call is the graph's derivative, compiled when it is first needed. It computes
// again what it needs of the results' parts instead of keeping them. Being a graph as well it has
// derivatives of its own, so gradients of gradients work.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "composit/ir/graph.h"
#include "flashlight/mosaic/choices.h"
#include "flashlight/mosaic/profile.h"

namespace fl {
class Generator;
}

namespace flashlight {

// The backend whose C++ is there to be read.
struct Cpp {
  // Operations without a definition become calls of LibTorch instead of errors.
  bool link_aten = false;
};

// The backend that is fast: tiled kernels in threads.
struct Mosaic {
  int threads = 0;  // of a call; 0: one per core
  // Whether convolutions may be computed by Winograd's algorithm, whose rounding errors are those
  // of other sums.
  bool winograd = true;
  // Whether products of matrices may be computed by Strassen's algorithm; the same holds for it.
  bool strassen = true;
  // Parameters and buffers are packed at the first call, and again where LibTorch counts a write to
  // one of them since. Nobody counts writes through `data_ptr()` and `.data`; without `freeze`, and
  // for tensors made in inference mode, all are read in each call. What the graph itself writes
  // always is.
  bool freeze = true;
  // What is decided by name instead of by the planner, as read by mosaic::parse_choices from the
  // text that `flashlight plan --choices` takes. Of this graph alone: derivatives, whose values are
  // others, are planned without.
  mosaic::Choices choices = {};
};

// How something is compiled.
struct CompileSettings {
  std::string name = "program";             // of the function in the source
  std::vector<std::string> flags = {};      // of the compiler, after the backend's own
  std::variant<Cpp, Mosaic> backend = {};   // and its options
  std::vector<std::string> arguments = {};  // what those of a function are called
  std::vector<std::string> results = {};    // what results are called; after operations otherwise
};

class CompiledGraph {
 public:
  // UserError that lists the operations there is no code for, names the choice that cannot be, or
  // says what the compiler does.
  CompiledGraph(composit::Graph graph, CompileSettings settings);

  // What it computes.
  const composit::Graph& graph() const;
  // The C++ it was made of.
  const std::string& source() const;

  // A tensor per input of the graph (in the CPU's memory, of any strides); gives one per output, an
  // undefined one where the graph has none. Writes what the graph writes to its inputs, nothing of
  // it in a call that throws; mosaic does so without a copy where nobody reads the old value any
  // more, no other input has the same memory and it is row-major. A graph that writes to what
  // requires a gradient is no function to autograd. Draws are those of LibTorch's default
  // generator; the backward draws the same numbers.
  // UserError for tensors of other types than the inputs', and what generated code refuses.
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs) const;

  // Takes the inputs, then a cotangent per output of floating point or complex dtype; gives the
  // gradients of those inputs that are `wanted`. Of the settings, choices are left out. UserError
  // for an operation without a derivative.
  CompiledGraph vjp(const std::vector<bool>& wanted) const;

  // The time of each kernel in one call, of mosaic (flashlight/mosaic/profile.h); nothing is
  // written to inputs. UserError for other backends.
  mosaic::Profile profile(const std::vector<at::Tensor>& inputs) const;

 private:
  struct State;
  struct Call;  // to autograd
  // Where a graph that draws starts: LibTorch's default generator, or what this holds.
  using Start = std::shared_ptr<const fl::Generator>;
  std::vector<at::Tensor> call(const std::vector<at::Tensor>& inputs, const Start& start) const;
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, const Start& start,
                              bool updates, mosaic::Profile* profile = nullptr) const;
  void check_count(const std::vector<at::Tensor>& inputs) const;
  bool needs_autograd(const std::vector<at::Tensor>& inputs) const;
  std::shared_ptr<State> state_;
};

}  // namespace flashlight
