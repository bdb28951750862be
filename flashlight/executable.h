// What a backend makes of a graph, as CompiledGraph calls it.
//
//   const std::unique_ptr<Executable> code = make_executable(graph, settings);
//   code->run({inputs, row_major}, results, generator);
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "composit/ir/graph.h"
#include "flashlight/compiled_graph.h"

namespace flashlight {

class Executable {
 public:
  // A tensor per input of the graph, as the caller has it, and with row-major elements.
  struct Inputs {
    const std::vector<at::Tensor>&given, &row_major;
  };

  virtual ~Executable() = default;
  virtual const std::string& source() const = 0;
  virtual bool draws() const = 0;
  // Whether the new value that the result of this number is may be written to its input's memory
  // in `run`, if no other input overlaps it; what throws does so before that.
  virtual bool may_update(size_t result) const = 0;
  // Results: row-major memory for outputs that are there, then for mutations.
  virtual void run(const Inputs& inputs, const std::vector<void*>& results,
                   fl::Generator& generator) const = 0;
  virtual mosaic::Profile profile(const Inputs& inputs, const std::vector<void*>& results,
                                  fl::Generator& generator) const = 0;
};

// UserError that lists the operations there is no code for, or says what the compiler does.
std::unique_ptr<Executable> make_executable(const composit::Graph& graph,
                                            const CompileSettings& settings);

}  // namespace flashlight
