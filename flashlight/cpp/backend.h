// The backend that writes C++, has it compiled, and calls it in this process.
//
//   const Compiled relu3 = compile(graph, {.name = "relu3"});
//   std::vector<Array> y = relu3(inputs);
//   std::cout << relu3->source();
//
//   evaluate(graph, inputs, flashlight::cpp::backend());
//
// A call allocates its results; temporaries have one arena per thread. Calls may run at the same
// time. Its options are flashlight::Cpp (flashlight/backends/cpp.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "composit/io/saved_capture.h"
#include "composit/ir/graph.h"
#include "composit/op/backend.h"
#include "flashlight/cpp/emit.h"
#include "flashlight/cpp/split.h"
#include "flashlight/loops/lower.h"

namespace flashlight::cpp {

using namespace loops;
using composit::Compiled;
using composit::CompileOptions;

const composit::Backend& backend();

// UserError that lists the operations there is no code for; or with what the compiler says.
Compiled compile(const composit::Graph& graph, const CompileOptions& options = {});
// Several graphs in one translation unit: starting a compiler costs more than a kernel. Their names
// have to be distinct, and take the place of `options.name`.
std::vector<Compiled> compile(const std::vector<composit::Graph>& graphs,
                              const std::vector<std::string>& names,
                              const CompileOptions& options = {});

// The C++ for a graph, by the whole way: lower, fuse, emit.
Source source_of(const composit::Graph& graph, const LowerOptions& options = {},
                 const SplitOptions& split = {});

// The graph of a capture as a folder to build and ship (flashlight/package/program_folder.h), in
// one thread. UserError as package::write_program, and for operations there is no code for.
void write_program(const composit::SavedCapture& capture, const std::filesystem::path& folder,
                   const LowerOptions& options);

// The same for all sizes in ranges: `capture` is the program at an example's sizes. UserError also
// where the graphs that are shown have no text in common.
void write_program(const composit::SavedCapture& capture, const composit::SizedGraphs& graphs,
                   const std::filesystem::path& folder, const LowerOptions& options);

}  // namespace flashlight::cpp
