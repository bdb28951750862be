// The inputs and results of a graph's compiled code, with their types.
//
//   const Ports ports = ports_of(graph, "relu3");
//   const void* x = ports.given(0, buffers);          // its address, which has been checked
#pragma once

#include <span>
#include <string>
#include <vector>

#include "composit/ir/array.h"
#include "composit/ir/graph.h"

namespace composit {

// The address of the first of row-major elements, or nullptr, and the device that has the memory.
struct InputBuffer {
  // The memory of a device, the CPU's unless one is given.
  InputBuffer(const void* first = nullptr, Device where = {}) : data(first), device(where) {}
  const void* data;  // address of the first element
  Device device;     // whose memory it is
};
// The same for a result, which is written.
struct Buffer {
  // The memory of a device, the CPU's unless one is given.
  Buffer(void* first = nullptr, Device where = {}) : data(first), device(where) {}
  void* data;     // address of the first element
  Device device;  // whose memory it is
};
using InputBuffers = std::span<const InputBuffer>;  // one per input of the graph
using Buffers = std::span<const Buffer>;            // outputs that are there, then mutations

// The inputs of code, and its results.
struct Ports {
  std::string program;                   // for messages
  std::vector<std::string> input_names;  // for messages
  std::vector<Type> inputs;              // in the order of the graph
  std::vector<Type> results;             // an undefined one: an output that is absent

  // UserError for an array of another dtype or other sizes than input `input`.
  void check(size_t input, const Array& given) const;
  // The address of an input, for code that runs on the CPU. UserError if an input that has elements
  // has no address, or if its memory is on another device.
  const void* given(size_t input, InputBuffers buffers) const;
  // The same for results, all of them.
  std::vector<void*> places(Buffers buffers) const;
};

// Outputs, then what mutated inputs become.
Ports ports_of(const Graph& graph, const std::string& program);

}  // namespace composit
