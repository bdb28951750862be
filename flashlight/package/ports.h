// The parts of a written program that name, check and pass its tensors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "composit/op/backend.h"
#include "flashlight/package/program_folder.h"

namespace flashlight::package {

// An input or an output of the function.
struct Port {
  std::string name;         // in the C interface
  composit::Type type;      // of the example
  SizedPort sized;          // where sizes are data
  std::string variable;     // in main.cpp
  std::string stored = {};  // in example.safetensors; empty: no value is saved
};
using Ports = std::vector<Port>;

std::string upper(std::string text);
// "float32[1, 768]", "float32[1, tokens]".
std::string type_text(const composit::Type& type);
std::string type_text(const Port& port);
// A line for each port, behind `start`.
std::string port_lines(const Ports& inputs, const Ports& outputs, const std::string& start);
// kInputs or kOutputs of model_c.cpp, by `role` "Input" or "Output".
std::string table(const std::string& role, const Ports& ports, const std::string& program);
// The attribute of a parameter from which no tensor is taken.
std::string unused(const Ports& ports);

// ---- sizes that are data ------------------------------------------------------------------------

// The pointer as what the function takes; for a port that is no reference to an array.
std::string passed(const SizedPort& port, const std::string& pointer);

// Statements that name all sizes, as inputs have them: `size` gives the text of an axis of an
// input. UserError where no input has a size alone on an axis.
std::string size_lines(const std::vector<composit::SizeRange>& sizes, const Ports& inputs,
                       const std::string& type, const std::string& indent,
                       const std::function<std::string(size_t input, size_t axis)>& size);

// The class Types of model_c.cpp: checks sizes, and has the types of a call's tensors.
std::string types_class(const std::vector<composit::SizeRange>& sizes, const Ports& inputs,
                        const Ports& outputs);
// The declaration in model.h, and the definition, of the function that gives sizes of outputs.
std::string declared_sizes(const std::string& name, const std::vector<composit::SizeRange>& sizes);
std::string defined_sizes(const std::string& name, const std::string& upper_name);

}  // namespace flashlight::package
