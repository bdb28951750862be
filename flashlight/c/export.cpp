// Files of other tools of flashlight/c.h.
#include <filesystem>
#include <string>

#include "composit/ir/error.h"
#include "flashlight/c.h"
#include "flashlight/c/call.h"
#include "flashlight/c/objects.h"
#include "flashlight/interchange.h"

namespace flashlight::c {
namespace {

using composit::UserError;

void expect_unset(bool set, const char* option, const std::string& format) {
  if (set) throw UserError(format + " has no option `" + std::string(option) + "`: expected 0");
}

template <class Source>
void write(const Source& source, const char* file, const flashlight_export_options* given) {
  constexpr size_t kFirst = 24;
  const auto options = options_from(given, kFirst, "flashlight_export_options");
  const bool drop_guards = flag_from(options.drop_guards, "drop_guards");
  const bool as_buffers = flag_from(options.parameters_as_buffers, "parameters_as_buffers");
  const bool by_name = flag_from(options.weights_as_parameters, "weights_as_parameters");
  const bool matmul_nbits = flag_from(options.matmul_nbits, "matmul_nbits");
  if (options.reserved != 0)
    throw UserError("expected 0 for `reserved`, received " + std::to_string(options.reserved));
  const std::filesystem::path path = text_from(file, "file");
  const std::string format = path.extension().string();
  if (format != ".onnx") {
    expect_unset(options.weights_in != nullptr, "weights_in", format);
    expect_unset(matmul_nbits, "matmul_nbits", format);
  }
  if (format == ".onnx") {
    expect_unset(as_buffers, "parameters_as_buffers", format);
    expect_unset(by_name, "weights_as_parameters", format);
    composit::OnnxOptions how{.drop_guards = drop_guards, .matmul_nbits = matmul_nbits};
    if (options.opset != 0) how.opset = options.opset;
    if (options.weights_in != nullptr) how.weights_in = text_from(options.weights_in, "weights_in");
    save_onnx(source, path, how);
  } else if (format == ".pt2") {
    expect_unset(drop_guards, "drop_guards", format);
    expect_unset(options.opset != 0, "opset", format);
    expect_unset(by_name, "weights_as_parameters", format);
    save_pt2(source, path, {.parameters_as_buffers = as_buffers});
  } else if (format == ".mlir") {
    expect_unset(as_buffers, "parameters_as_buffers", format);
    expect_unset(options.opset != 0, "opset", format);
    save_stablehlo(source, path, {.weights_as_parameters = by_name, .drop_guards = drop_guards});
  } else {
    throw UserError("expected a file that ends in .onnx, .pt2 or .mlir, received '" +
                    path.filename().string() + "'");
  }
}

}  // namespace

void export_to(const CaptureBase& capture, const char* file,
               const flashlight_export_options* options) {
  write(capture, file, options);
}

void export_to(const Gradient& gradient, const char* file,
               const flashlight_export_options* options) {
  write(gradient, file, options);
}

}  // namespace flashlight::c
