// Files of other tools as they come in: which tool wrote one, and an example for a program that has
// none.
//
//   switch (tool_of("model.bin")) {
//     case Tool::pt2: return load_pt2("model.bin");
//     case Tool::onnx: …
//   }
//
//   SavedCapture model = load_onnx("model.onnx");
//   const std::vector<Array> inputs = add_example_inputs(model);
//   model.example_outputs = evaluate(model.graph, inputs);
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "composit/io/saved_capture.h"

namespace composit {

enum class Tool { pt2, onnx, other };
// By what is in the file, whatever its name. One that is not there, or is damaged, is of the tool
// that its ending says: what is wrong with it is for the reader to say. A folder is of no tool.
Tool tool_of(const std::filesystem::path& file);

// An array of this type: random numbers between 0 and 1, always the same; 0 for integers, as
// indices may be.
Array example_of(const Type& type, uint64_t seed = 0);

// Gives a capture examples of its user inputs. Returns an array per input of the graph: those, and
// what the others hold.
std::vector<Array> add_example_inputs(SavedCapture& capture);

}  // namespace composit
