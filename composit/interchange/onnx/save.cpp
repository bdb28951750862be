#include <nlohmann/json.hpp>

#include "composit/family/saved_family.h"
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
  if (is_family(capture))
    throw UserError("expected a capture of one size, received a family: `bind` gives one");
  if (capture.properties.contains("next call"))
    throw UserError("its numbers follow its calls, which no file of ONNX can count");
}

}  // namespace

void save_onnx(const SavedCapture& capture, const fs::path& file, const OnnxOptions& options) {
  try {
    check(capture, options);
    const fs::path data_file = file.string() + ".data";
    const onnx::Lowered lowered = onnx::lower(capture.graph, options.opset);
    write(onnx::model_of(lowered, capture, file.stem().string(), data_file.filename().string(),
                         options),
          file, data_file);
  } catch (const UserError& error) {
    throw UserError("[onnx] " + file.string() + ": " + error.what());
  } catch (const nlohmann::json::type_error& error) {  // text that is not UTF-8
    throw UserError("[onnx] " + file.string() + ": " + error.what());
  }
}

}  // namespace composit
