// The protocol of programs that benchmarks/mosaic.py measures: a line of JSON on standard output at
// the start, and for each line of standard input.
//
//   serve({.about = {{"compile_seconds", 4.2}}, .run = [&] { … }, .results = [&] { … }});
//
//   time WARM CALLS    the seconds of each of CALLS calls, after WARM others
//   save FILE          writes the results of one call; a training step begins it in its first state
//
// In Python: serve() in benchmarks/mosaic/peers.py.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "composit/ir/array.h"

namespace benchmarks {

// By name: "output.0", "output.1", …, and parameters and buffers that were written by theirs.
using Results = std::map<std::string, composit::Array>;
Results named_outputs(const std::vector<composit::Array>& outputs);

struct Served {
  nlohmann::json about;  // the first line
  std::function<void()> run;
  std::function<Results()> results;
};

void serve(const Served& served);

void save_results(const Results& results, const std::filesystem::path& file);

}  // namespace benchmarks
