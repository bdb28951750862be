#include "flashlight/mosaic/prepare.h"

#include <algorithm>
#include <set>
#include <thread>

#include "composit/ir/error.h"
#include "flashlight/package/backend.h"
#include "flashlight/package/shipped.h"

namespace flashlight::mosaic {

using composit::Array;
using composit::UserError;
using Prepare = const char*(const void* const*, void*, int);
using SizedPrepare = const char*(const void* const*, void*, int, const int64_t*);

std::vector<std::string> default_flags() {
  std::vector<std::string> flags = package::default_flags();
  flags.insert(flags.end(), {"-mprefer-vector-width=512", "-pthread"});
  return flags;
}

toolchain::Library build(const std::vector<Source>& programs,
                         const std::vector<std::string>& flags) {
  toolchain::Sources sources;
  sources.headers = {package::shipped_file(package::kRuntimeName),
                     package::shipped_file(kRuntimeName)};
  // Tiles first: they take the longest.
  std::string all;
  std::set<std::string> headers, tiles;
  for (const Source& source : programs) {
    all += source.text;
    headers.insert(source.headers.begin(), source.headers.end());
    for (const toolchain::SourceFile& unit : source.tiles)
      if (tiles.insert(unit.name).second) sources.units.push_back(unit);
  }
  for (const std::string& header : headers)
    sources.headers.push_back(package::shipped_file(header));
  const std::vector<std::string> units =
      programs.size() == 1 ? programs[0].units : std::vector<std::string>{all};
  for (size_t i = 0; i < units.size(); ++i)
    sources.units.push_back({i == 0 ? "program.cpp" : "kernels_" + std::to_string(i) + ".cpp",
                             (tiles.empty() ? "" : kTilesElsewhere) + units[i]});
  toolchain::CompileOptions build = {.flags = default_flags()};
  build.flags.insert(build.flags.end(), flags.begin(), flags.end());
  return toolchain::Library::load(sources, build);
}

int thread_count(int threads) {
  if (threads > 0) return threads;
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

Prepared prepare(const Preparing& of, const std::vector<Array>& weights) {
  const Source& source = of.source;
  Prepared prepared = {fl::allocate(static_cast<std::size_t>(of.plan.prepared_bytes)), {}};
  std::vector<Array> kept;  // until the end of preparation
  std::vector<const void*> pointers;
  for (size_t i = 0; i < source.weights.size(); ++i) {
    Array array = of.constants[i];
    const size_t input = source.weights[i];
    const bool frozen = !array.defined() && of.plan.frozen[of.plan.routine.inputs[input]];
    if (frozen && input < weights.size() && weights[input].defined()) {
      of.plan.ports.check(input, weights[input]);
      array = weights[input].contiguous();
    }
    if (frozen && !array.defined())
      throw UserError("[" + source.name + "] '" + of.plan.ports.input_names[input] +
                      "' has no value to be compiled with");
    pointers.push_back(array.defined() ? array.data() : nullptr);
    kept.push_back(array);
    prepared.weights.push_back(source.is_read_by_run[i] ? array : Array());
  }
  const std::string& name = source.prepare_name;
  std::byte* const memory = prepared.memory.get();
  const char* error =
      of.numbers == nullptr
          ? of.library.symbol<Prepare>(name)(pointers.data(), memory, of.threads)
          : of.library.symbol<SizedPrepare>(name)(pointers.data(), memory, of.threads, of.numbers);
  if (error != nullptr) throw UserError("[" + source.name + "] " + error);
  return prepared;
}

}  // namespace flashlight::mosaic
