#include "flashlight/package/backend.h"

#include "composit/ir/error.h"
#include "flashlight/loops/runtime_call.h"
#include "flashlight/package/shipped.h"

namespace flashlight::package {

std::vector<std::string> default_flags() {
  return {"-std=c++17",         "-O3",    "-march=native", "-ffp-contract=fast", "-fno-math-errno",
          "-fno-trapping-math", "-fwrapv"};
}

std::string includes(const Source& source) {
  std::string text;
  for (const std::string& header : source.links) text += "#include <" + header + ">\n";
  if (!text.empty()) text += "\n";
  text += "#include \"" + std::string(kRuntimeName) + "\"\n";
  for (const std::string& header : source.headers) text += "#include \"" + header + "\"\n";
  return text;
}

const void* GeneratedCode::weight(size_t place, composit::InputBuffers inputs) const {
  const composit::Array& constant = source_->constants[place];
  return constant.defined() ? constant.data() : ports().given(source_->weights[place], inputs);
}

Pointers GeneratedCode::pointers(composit::InputBuffers inputs, composit::Buffers results,
                                 fl::Generator* generator) const {
  Pointers at = {.generator = generator};
  at.arguments.reserve(source_->arguments.size());
  at.weights.reserve(source_->weights.size());
  for (const size_t input : source_->arguments)
    at.arguments.push_back(ports().given(input, inputs));
  for (size_t i = 0; i < source_->weights.size(); ++i) at.weights.push_back(weight(i, inputs));
  at.results = ports().places(results);
  return at;
}

void GeneratedCode::check(const char* error) const {
  if (error != nullptr) throw composit::UserError("[" + source_->name + "] " + error);
}

bool GeneratingBackend::has_code(const composit::Operation& operation) const {
  return loops::has_code(operation);
}

}  // namespace flashlight::package
