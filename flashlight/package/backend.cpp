#include "flashlight/package/backend.h"

#include "composit/ir/error.h"
#include "flashlight/loops/runtime_call.h"
#include "flashlight/package/shipped.h"

namespace flashlight::package {

// Vectors of neighbouring statements (SLP): g++ 12 makes them of two float64 that are rounded to
// float32 and widened again, and leaves the rounding out. Vectors of loops are right.
std::vector<std::string> default_flags() {
  return {"-std=c++17",
          "-O3",
          "-march=native",
          "-ffp-contract=fast",
          "-fwrapv",
          "-fno-math-errno",
          "-fno-trapping-math",
          "-fno-tree-slp-vectorize"};
}

text::Code includes(const Source& source) {
  text::Code code;
  for (const std::string& header : source.links)
    code += text::directive("#include <" + header + ">");
  if (!code.empty()) code += text::blank();
  code += text::directive("#include \"" + std::string(kRuntimeName) + "\"");
  for (const std::string& header : source.headers)
    code += text::directive("#include \"" + header + "\"");
  return code;
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
