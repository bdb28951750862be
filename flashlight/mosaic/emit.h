// A plan as the text of one C++17 file.
//
//   const Source source = emit(plan_of(graph));
//   source.text;       // kernels, each once, and the functions that call them in order
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "flashlight/backends/profile.h"
#include "flashlight/mosaic/kernels/form.h"
#include "flashlight/mosaic/plan.h"
#include "flashlight/package/source.h"
#include "flashlight/toolchain/sources.h"

namespace flashlight::mosaic {

// The header that code of this backend includes. It includes that of all generated code.
inline constexpr const char* kRuntimeName = "flashlight_mosaic.hpp";

// A kernel as text.
struct EmittedKernel {
  std::string definition, declaration;
};

struct Source : package::Source {
  // const char* NAME_prepare(const void* const* weights, void* prepared, int threads);
  // const char* NAME_run(const void* const* arguments, const void* const* weights,
  //                      void* const* results, const void* prepared, void* arena,
  //                      void* generator, int64_t* times, int threads);
  // `generator`: a fl::Generator, of a program that draws.
  // `times`: nullptr, or room for a number per kernel of plan.run that is timed, and one more.
  // nullptr, or what is wrong.
  std::string prepare_name, run_name;
  // The same text as translation units that compile side by side, in so many that none takes long,
  // and those of the tiles that they use. Those are the same for all programs of the same forms,
  // and compiled once as long as the toolchain's cache has them: the others say `kTilesElsewhere`
  // first.
  std::vector<std::string> units;
  std::vector<toolchain::SourceFile> tiles;
  // Parts of the text: kernels, one function each; the functions they call; `run`.
  std::vector<EmittedKernel> kernels;
  std::string called, run;
  std::vector<std::string> names;  // by value of the routine, of those outside of kernels
  std::vector<bool>
      is_read_by_run;  // by place among `weights`, which are those that are read at all
  Profile timed;       // kernels of plan.run in the order of their times, which are open
};

Source emit(const Plan& plan, const std::string& name);

// What it has beside text, kernels and tiles: `read_before` and `read` are the weights, by input of
// the routine, that plan.prepare and plan.run read.
Source source_without_text(const Plan& plan, const std::string& name,
                           const std::set<size_t>& read_before, const std::set<size_t>& read);
// Without times.
TimedKernel timed_kernel(const Plan& plan, const Kernel& kernel, const KernelText& text);
// True if the kernel after the border at `number` reads the value that the border clears.
bool reads_before_end(const Plan& plan, const std::vector<Kernel>& kernels, size_t number);
// The packed weights that are read first behind the kernel at `number`.
std::optional<Panels> next_panels(const Plan& plan, const std::vector<KernelText>& texts,
                                  size_t number);

// Kernels in groups of about the same size, each worth a translation unit; none where one unit for
// all of the program does.
std::vector<std::vector<EmittedKernel>> groups_of_kernels(const Source& source);
// For the unit that calls them.
std::string declarations_of(const std::vector<EmittedKernel>& kernels);
// By dtype, a unit with tiles, and one with what is built on them: attention, other algorithms for
// products.
std::vector<toolchain::SourceFile> tile_files(const Units& units);
// Definitions that stand alone as translation units, each with its headers, in a namespace.
std::vector<std::string> units_of(const std::vector<std::string>& definitions,
                                  const std::vector<std::string>& headers,
                                  const std::string& space = "");
inline constexpr const char* kTilesElsewhere = "#define FLASHLIGHT_TILES_ELSEWHERE\n";

}  // namespace flashlight::mosaic
