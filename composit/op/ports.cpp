#include "composit/op/ports.h"

#include "composit/ir/error.h"
#include "composit/ir/print.h"

namespace composit {
namespace {

void expect_cpu(Device device, const std::string& program, const char* what) {
  if (device.type == Device().type) return;
  throw UserError("[" + program + "] " + what +
                  ": expected memory of the CPU, received memory of " + name(device));
}

}  // namespace

void Ports::check(size_t input, const Array& given) const {
  const Type& expected = inputs[input];
  if (given.type().dtype == expected.dtype && given.type().sizes == expected.sizes) return;
  throw UserError("[" + program + "] input '" + input_names[input] + "': expected " +
                  print(expected) + ", received " + print(given.type()));
}

const void* Ports::given(size_t input, InputBuffers buffers) const {
  COMPOSIT_ASSERT(input < buffers.size(), "a buffer per input");
  const InputBuffer& buffer = buffers[input];
  expect_cpu(buffer.device, program, input_names[input].c_str());
  if (buffer.data == nullptr && inputs[input].numel() > 0)
    throw UserError("[" + program + "] input '" + input_names[input] + "' has no value");
  return buffer.data;
}

std::vector<void*> Ports::places(Buffers buffers) const {
  std::vector<void*> places;
  places.reserve(buffers.size());
  for (const Buffer& buffer : buffers) {
    expect_cpu(buffer.device, program, "a result");
    places.push_back(buffer.data);
  }
  return places;
}

Ports ports_of(const Graph& graph, const std::string& program) {
  Ports ports = {program, {}, {}, {}};
  for (const LazyTensor& input : graph.inputs()) {
    ports.input_names.push_back(input_name(*input.node));
    ports.inputs.push_back(input.type());
  }
  for (const LazyTensor& output : graph.outputs())
    ports.results.push_back(output ? output.type() : undefined_type());
  for (const Mutation& mutation : graph.mutations()) ports.results.push_back(mutation.value.type());
  return ports;
}

}  // namespace composit
