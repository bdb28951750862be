// Writes types, numbers and identifiers as C++.
//
//   type_name(DType::float32) == "float";   literal(Scalar::Value(0.5), DType::float32) == "0.5f";
//   identifier("encoder.layer.0.query") == "encoder_layer_0_query";
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/array.h"
#include "composit/ir/attribute.h"

namespace flashlight::text {

// While one lives, text that this thread writes is for a device, with flashlight_cuda.cuh. Complex
// numbers are "fl::complex<float>": device code has no std::complex. Integers are added by
// functions that wrap: nvcc has no -fwrapv, and makes use of it.
class DeviceText {
 public:
  DeviceText();
  ~DeviceText();
  DeviceText(const DeviceText&) = delete;
  DeviceText& operator=(const DeviceText&) = delete;

 private:
  bool before_;
};
bool is_device_text();
// The namespace of complex numbers and of their functions: "std::".
const char* complex_namespace();

// The type of an element in memory: "float", "int64_t", "fl::float16", "std::complex<float>".
std::string type_name(composit::DType dtype);
// The type that arithmetic is done in: "float" for the 16-bit floats.
std::string compute_type_name(composit::DType dtype);
// "[2][3]": the dimensions that are `kept`, or all if it is null.
std::string brackets(const composit::Type& type, const std::vector<bool>* kept = nullptr);
std::string array_type(const composit::Type& type);  // "float[2][3]"

// The shortest text that C++ reads as `value` in `dtype`; negative numbers have a sign in front.
std::string literal(const composit::Scalar::Value& value, composit::DType dtype);

// Makes an identifier of `text`: replaces characters that it may not have by '_', and CamelCase by
// snake_case. Never empty, and no keyword.
std::string identifier(std::string_view text);
// True for words that the headers of C declare which shipped headers include.
bool is_of_c(std::string_view name);
// The same for a global namespace, whose name must not be that of a function of C: "exp" becomes
// "exp_program".
std::string namespace_name(std::string_view text);

// `text` on one line that a comment may hold: without control characters, and without backslashes,
// which would draw in the next line.
std::string one_line(std::string text);
// `text` as a string literal of C and C++.
std::string quoted(const std::string& text);

}  // namespace flashlight::text
