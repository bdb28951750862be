// The format of a saved capture, for saving and loading: names, and the head of graph.txt.
//
// ```text
//   flashlight capture 1
//   producer "torch 2.13.0"
//   schema "aten::relu(Tensor self) -> Tensor"
//   property "note" "value"
//   tied "decoder.weight" "encoder.weight"        the first is stored under the name of the second
//   example_input float32[2, 3]
//   example_output float32[2, 4]
//   cases 1                                       further graphs: graph_2.txt
//   graph(...) {
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/graph.h"

namespace composit::io {

inline constexpr const char* kGraphFile = "graph.txt";
inline constexpr const char* kWeightsFile = "weights.safetensors";
inline constexpr const char* kExampleFile = "example.safetensors";
inline constexpr std::string_view kMagic = "flashlight capture ";
inline constexpr int64_t kVersion = 1;
// Of a graph with formulas in place of integers.
inline constexpr int64_t kFamilyVersion = 2;
// Of a family with cases.
inline constexpr int64_t kCasesVersion = 3;

// "input.0"; of a further case "case_2.input.0".
std::string example_name(std::string_view role, size_t index, size_t number = 0);
// "graph.txt", and of further cases "graph_2.txt", …
std::string graph_file(size_t number);

// Inputs whose values are saved.
bool is_weight(const Node& node);

// The part of an array that is written to a file: an axis that repeats one element is written once,
// and lazy conjugation and negation are not applied. The type in graph.txt holds the rest.
Array stored_form(const Array& array);
// An array of `type` from its stored form, row-major; UserError that starts with `place` if it is
// not that.
Array restored(const Array& stored, const Type& type, const std::string& place);

}  // namespace composit::io
