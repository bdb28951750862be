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

namespace {

// Elements in memory are all that code is given and gives: no indices of a sparse tensor, no scales
// of a quantized one.
const Type& expect_elements(const Type& type, const std::string& program, const std::string& who) {
  const bool is_quantized = type.dtype == DType::qint8 || type.dtype == DType::quint8 ||
                            type.dtype == DType::qint32 || type.dtype == DType::quint4x2 ||
                            type.dtype == DType::quint2x4;
  if (!is_defined(type) || (type.layout == Layout::strided && !is_quantized)) return type;
  throw UserError("[" + program + "] " + who +
                  ": expected a tensor that is its elements in memory, received one that is " +
                  (is_quantized ? "quantized" : std::string(name(type.layout))) + ": " +
                  print(type));
}

}  // namespace

Ports ports_of(const Graph& graph, const std::string& program) {
  Ports ports = {program, {}, {}, {}};
  for (const LazyTensor& input : graph.inputs()) {
    ports.input_names.push_back(input_name(*input.node));
    ports.inputs.push_back(
        expect_elements(input.type(), program, "input '" + ports.input_names.back() + "'"));
  }
  const auto add_result = [&](const LazyTensor& value) {
    const std::string who = "result " + std::to_string(ports.results.size());
    ports.results.push_back(expect_elements(value.type(), program, who));
  };
  for (const LazyTensor& output : graph.outputs())
    if (output)
      add_result(output);
    else
      ports.results.push_back(undefined_type());
  for (const Mutation& mutation : graph.mutations()) add_result(mutation.value);
  return ports;
}

}  // namespace composit
