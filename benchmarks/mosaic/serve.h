// What programs that are measured do for benchmarks/mosaic.py: a line of JSON on standard output at
// the start, and for each line of standard input.
//
//   serve({.about = {{"compile_seconds", 4.2}}, .run = [&] { … }, .results = [&] { … }});
//
//   time WARM CALLS    the seconds of each of CALLS calls, after WARM others
//   save FILE          writes the results of one call
//
// In Python: serve() in benchmarks/mosaic/peers.py.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "composit/ir/array.h"

namespace benchmarks {

struct Served {
  nlohmann::json about;  // the first line
  std::function<void()> run;
  std::function<std::vector<composit::Array>()> results;
};

void serve(const Served& served);

// As "output.0", "output.1", …
void save_results(const std::vector<composit::Array>& results, const std::filesystem::path& file);

}  // namespace benchmarks
