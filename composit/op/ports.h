// What compiled code of a graph takes and gives: the types of its inputs and results.
//
//   const Ports ports = ports_of(graph, "relu3");
//   arguments.push_back(ports.given(0, inputs));      // its address, which has been checked
#pragma once

#include <span>
#include <string>
#include <vector>

#include "composit/ir/array.h"
#include "composit/ir/graph.h"

namespace composit {

// Where the first of row-major elements is, or nullptr, and whose memory that is.
struct InputBuffer {
  InputBuffer(const void* first = nullptr, Device where = {}) : data(first), device(where) {}
  const void* data;
  Device device;
};
struct Buffer {
  Buffer(void* first = nullptr, Device where = {}) : data(first), device(where) {}
  void* data;
  Device device;
};
using InputBuffers = std::span<const InputBuffer>;  // one per input of the graph
using Buffers = std::span<const Buffer>;            // outputs that are there, then mutations

struct Ports {
  std::string program;  // for messages
  std::vector<std::string> input_names;
  std::vector<Type> inputs;
  std::vector<Type> results;  // an undefined one: an output that is absent

  // UserError for an array of another dtype or other sizes than input `input`.
  void check(size_t input, const Array& given) const;
  // Of code that runs on the CPU: the address of an input. UserError where there is none, and it
  // has elements, and for memory of another device.
  const void* given(size_t input, InputBuffers buffers) const;
  // The same for results, all of them.
  std::vector<void*> places(Buffers buffers) const;
};

// Outputs, then what mutated inputs become.
Ports ports_of(const Graph& graph, const std::string& program);

}  // namespace composit
