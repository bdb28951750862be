// The objects behind the handles of flashlight/c.h. For the files of this folder only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "flashlight/c.h"
#include "flashlight/capture.h"
#include "flashlight/compile.h"
#include "flashlight/gradient.h"

namespace flashlight::c {

struct Captured {
  static constexpr const char* kName = "a capture";
  CaptureBase capture;
};

struct Derivative {
  static constexpr const char* kName = "a gradient";
  Gradient gradient;
  size_t inputs;  // number of the capture's arguments
};

struct CompiledCode {
  static constexpr const char* kName = "compiled code";
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)> run;
  size_t inputs, outputs;
  std::string source;
};

// The number of arguments, and of results, of a graph.
size_t count_inputs(const composit::Graph& graph);
size_t count_outputs(const composit::Graph& graph);

// The loss, then the gradients.
std::vector<at::Tensor> in_order(Gradient::Result result);

// Code by the backend of this name (flashlight_capture_compile).
flashlight_compiled compile_as_code(const CaptureBase& capture, const char* backend,
                                    const flashlight_compile_options* options);
flashlight_compiled compile_as_code(const Derivative& derivative, const char* backend,
                                    const flashlight_compile_options* options);

// A folder to build and ship (flashlight_capture_write_program).
void write_program(const CaptureBase& capture, const char* backend,
                   const flashlight_compile_options* options, const std::string& folder);

// A file of the format that its ending names (flashlight_capture_export).
void export_to(const CaptureBase& capture, const char* file,
               const flashlight_export_options* options);
void export_to(const Gradient& gradient, const char* file,
               const flashlight_export_options* options);

}  // namespace flashlight::c
