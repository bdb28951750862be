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

namespace {

// True if weight number `place` keeps the value that it has at preparation.
bool is_frozen(const Preparing& of, size_t place) {
  return !of.source.constants[place].defined() && of.frozen[of.source.weights[place]];
}

// The value of a weight: a constant, or by input of the graph.
Array weight_value(const Preparing& of, size_t place, const std::vector<Array>& weights) {
  const size_t input = of.source.weights[place];
  if (!is_frozen(of, place)) return of.source.constants[place];
  if (input >= weights.size() || !weights[input].defined())
    throw UserError("[" + of.source.name + "] '" + of.ports.input_names[input] +
                    "' has no value to be compiled with");
  of.ports.check(input, weights[input]);
  return weights[input].contiguous();
}

// Keeps a value that calls read.
void keep(const Preparing& of, size_t place, const Array& value, Prepared& prepared) {
  const bool is_read = of.source.is_read_by_run[place];
  prepared.weights.push_back(is_read ? value : Array());
  if (is_read && is_frozen(of, place)) prepared.frozen.emplace(of.source.weights[place], value);
}

}  // namespace

Prepared prepare(const Preparing& of, const std::vector<Array>& weights,
                 const PreparedList& others) {
  Prepared prepared;
  std::vector<Array> kept;  // until the end of preparation
  std::vector<const void*> pointers;
  for (size_t i = 0; i < of.source.weights.size(); ++i) {
    kept.push_back(weight_value(of, i, weights));
    pointers.push_back(kept.back().defined() ? kept.back().data() : nullptr);
    keep(of, i, kept.back(), prepared);
  }
  if (of.runner.take(others, prepared.memory)) return prepared;
  const char* error = of.runner.prepare(pointers, prepared.memory);
  if (error != nullptr) throw UserError("[" + of.source.name + "] " + error);
  return prepared;
}

std::optional<Prepared> prepare_like(const Preparing& of, const PreparedList& others) {
  Prepared prepared;
  if (!of.runner.take(others, prepared.memory)) return std::nullopt;
  for (size_t i = 0; i < of.source.weights.size(); ++i) {
    Array value = of.source.constants[i];
    if (is_frozen(of, i) && of.source.is_read_by_run[i]) {
      for (const auto& other : others) {
        const auto found = other->frozen.find(of.source.weights[i]);
        if (found == other->frozen.end()) continue;
        value = found->second;
        break;
      }
      if (!value.defined()) return std::nullopt;
    }
    keep(of, i, value, prepared);
  }
  return prepared;
}

}  // namespace flashlight::mosaic
