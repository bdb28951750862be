#include "flashlight/loops/ports.h"

#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "flashlight/runtime/arena.hpp"

namespace flashlight::loops {

using composit::Array;
using composit::Type;
using composit::UserError;

void Ports::check(size_t input, const Array& given) const {
  const Type& expected = inputs[input];
  if (given.type().dtype == expected.dtype && given.type().sizes == expected.sizes) return;
  throw UserError("[" + program + "] input '" + input_names[input] + "': expected " +
                  composit::print(expected) + ", received " + composit::print(given.type()));
}

const void* Ports::given(size_t input, const std::vector<const void*>& pointers) const {
  if (pointers.at(input) == nullptr && inputs[input].numel() > 0)
    throw UserError("[" + program + "] input '" + input_names[input] + "' has no value");
  return pointers[input];
}

std::vector<Array> Ports::call(const std::vector<Array>& arrays, const Run& run) const {
  if (arrays.size() != inputs.size())
    throw UserError("[" + program + "] expected " + std::to_string(inputs.size()) +
                    " inputs, received " + std::to_string(arrays.size()));
  std::vector<Array> tight;
  std::vector<const void*> pointers;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const bool used = arrays[i].defined();
    if (used) check(i, arrays[i]);
    tight.push_back(used ? arrays[i].contiguous() : Array());
    pointers.push_back(used ? tight.back().data() : nullptr);
  }
  std::vector<Array> made;
  std::vector<void*> places;
  for (const Type& type : results) {
    if (!composit::is_defined(type)) {
      made.emplace_back();
      continue;
    }
    const Type contiguous = composit::tensor_type(type.dtype, type.sizes);
    const std::shared_ptr<std::byte[]> memory =
        fl::allocate(static_cast<size_t>(contiguous.nbytes()));
    made.emplace_back(contiguous, memory, memory.get());
    places.push_back(memory.get());
  }
  run(pointers, places);
  return made;
}

Ports ports_of(const composit::Graph& graph, const std::string& program) {
  Ports ports = {program, {}, {}, {}};
  for (const composit::LazyTensor& input : graph.inputs()) {
    ports.input_names.push_back(composit::input_name(*input.node));
    ports.inputs.push_back(input.type());
  }
  for (const composit::LazyTensor& output : graph.outputs())
    ports.results.push_back(output ? output.type() : composit::undefined_type());
  for (const composit::Mutation& mutation : graph.mutations())
    ports.results.push_back(mutation.value.type());
  return ports;
}

}  // namespace flashlight::loops
