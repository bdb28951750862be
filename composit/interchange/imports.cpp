#include "composit/interchange/imports.h"

#include <algorithm>
#include <random>

#include "composit/interchange/onnx.h"
#include "composit/interchange/pt2.h"
#include "composit/io/file.h"
#include "composit/ops/native.h"

namespace composit {

Tool tool_of(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file)) return Tool::other;
  const bool is_there = std::filesystem::exists(file);
  if (file.extension() == ".pt2" || (is_there && is_pt2(file))) return Tool::pt2;
  if (file.extension() == ".onnx") return Tool::onnx;
  return is_there && is_onnx(io::MappedFile::open(file)->text()) ? Tool::onnx : Tool::other;
}

Array example_of(const Type& type, uint64_t seed) {
  std::vector<double> values(static_cast<size_t>(type.numel()));
  std::mt19937 generator(static_cast<uint32_t>(seed));
  std::uniform_real_distribution<double> number(0, 1);
  if (is_floating_point(type.dtype))
    std::generate(values.begin(), values.end(), [&] { return number(generator); });
  return array_of(type, values);
}

std::vector<Array> add_example_inputs(SavedCapture& capture) {
  std::vector<Array> inputs;
  for (const LazyTensor& input : capture.graph.inputs()) {
    const Array& held = input.node->held();
    inputs.push_back(held.defined() ? held : example_of(input.type(), inputs.size()));
    if (input_kind(*input.node) == InputKind::user_input)
      capture.example_inputs.push_back(inputs.back());
  }
  return inputs;
}

}  // namespace composit
