#include <nlohmann/json.hpp>

#include "composit/family/saved_family.h"
#include "composit/family/size_tree.h"
#include "composit/interchange/onnx/cases.h"
#include "composit/interchange/onnx/family.h"
#include "composit/interchange/onnx/model.h"
#include "composit/io/chunks.h"
#include "composit/io/file.h"
#include "composit/io/log.h"
#include "composit/ir/error.h"

namespace composit {
namespace {

namespace fs = std::filesystem;

void write_data(const std::vector<onnx::External>& data, io::OutputFile& output,
                Progress& progress) {
  uint64_t position = 0;
  for (const onnx::External& one : data) {
    output.write(std::string(one.offset - position, '\0'));
    const Array plain = one.array.contiguous();
    const auto size = static_cast<uint64_t>(plain.type().nbytes());
    io::in_chunks(plain.data(), size, progress,
                  [&](const void* bytes, size_t count) { output.write(bytes, count); });
    position = one.offset + size;
  }
}

void write(const onnx::Model& model, const fs::path& file, const fs::path& data_file) {
  constexpr size_t kLargest = (size_t{1} << 31) - 1;  // what readers of Protocol Buffers take
  if (model.bytes.size() > kLargest) throw UserError("the model itself would have more than 2 GiB");
  uint64_t bytes = model.bytes.size();
  for (const onnx::External& one : model.data)
    bytes += static_cast<uint64_t>(one.array.type().nbytes());
  Progress progress("writing " + file.string(), bytes);
  io::OutputFile output(file);
  output.write(model.bytes);
  output.sync();
  if (!model.data.empty()) {
    io::OutputFile data(data_file);
    write_data(model.data, data, progress);
    data.sync();
    data.commit();
  }
  output.commit();
}

void check(const SavedCapture& capture, const OnnxOptions& options) {
  if (options.opset < 20 || options.opset > 24)
    throw UserError("expected an opset from 20 to 24, received " + std::to_string(options.opset));
  if (is_family(capture) && options.matmul_nbits)
    throw UserError("MatMulNBits is written of captures of one size: 'bind' gives one");
  if (!is_family(capture) && capture.properties.contains("next call"))  // one's are inputs
    throw UserError("its numbers follow its calls, which no file of ONNX can count");
}

// The family that a saved one has; nothing for a capture of one size.
std::optional<Family> one_family(const SavedCapture& capture) {
  if (!is_family(capture)) return std::nullopt;
  return family_of(capture).cases.at(0);
}

// Of one case.
onnx::Model model_of_case(const SavedCapture& capture, onnx::ModelParts parts,
                          const OnnxOptions& options) {
  if (const std::optional<Family> family = one_family(capture)) {
    const onnx::Unified unified = onnx::lower_family(*family, options.opset);
    parts.family = &unified;
    return onnx::model_of(unified.lowered, capture, parts, options);
  }
  return onnx::model_of(onnx::lower(capture.graph, options.opset, {}, options.matmul_nbits),
                        capture, parts, options);
}

onnx::Model model_of(const SavedCapture& capture, onnx::ModelParts parts,
                     const OnnxOptions& options) {
  if (capture.cases.empty()) return model_of_case(capture, parts, options);
  const SizeTree tree = size_tree(capture);
  if (tree.leaves.size() == 1) return model_of_case(tree.leaves[0], parts, options);
  std::vector<onnx::Unified> leaves;
  for (size_t i = 0; i < tree.leaves.size(); ++i) {
    const std::optional<Family> family = one_family(tree.leaves[i]);
    if (!family)
      throw UserError(
          "the ways that a value chooses between were shown at one size only: show more sizes");
    const Within within = [&](const SizeValues& sizes) { return leaf_at(tree, sizes) == i; };
    leaves.push_back(onnx::lower_family(*family, options.opset, within));
  }
  const onnx::Unified unified = onnx::with_cases(tree, leaves);
  SavedCapture whole = tree.leaves[0];
  for (const SavedCapture& leaf : tree.leaves)
    whole.weights.insert(leaf.weights.begin(), leaf.weights.end());
  parts.family = &unified;
  return onnx::model_of(unified.lowered, whole, parts, options);
}

}  // namespace

void save_onnx(const SavedCapture& capture, const fs::path& file, const OnnxOptions& options) {
  try {
    check(capture, options);
    const fs::path data_file = file.string() + ".data";
    std::optional<onnx::StoredWeights> stored;
    if (!options.weights_in.empty()) stored.emplace(options.weights_in, file, capture);
    const onnx::ModelParts parts{.name = file.stem().string(),
                                 .data_file = data_file.filename().string(),
                                 .stored = stored ? &*stored : nullptr};
    write(model_of(capture, parts, options), file, data_file);
  } catch (const UserError& error) {
    throw UserError("[onnx] " + file.string() + ": " + error.what());
  } catch (const nlohmann::json::type_error& error) {  // text that is not UTF-8
    throw UserError("[onnx] " + file.string() + ": " + error.what());
  }
}

}  // namespace composit
