// A program that becomes faster while it is called.
//
//   auto fast = flashlight::adaptive(model, {.compile = {.backend = flashlight::Mosaic{}}});
//   at::Tensor y = fast(x);                      // called like the model, and as right
//   std::cout << str(fast.report());             // what ran, how often, and why
//
// Until something faster is known to be the program, the program itself runs, so a call never gives
// what the model does not give:
//
// * Sizes that are new: the program runs and is recorded; recordings of several sizes become a
//   family (family.h).
// * Sizes that come again: the program runs once more, and is compared with the recording
//   (capture.h), or with the family; then they are compiled, in the background, while the program
//   goes on to run.
// * Compiled sizes: compiled code runs. Some calls are samples: the program runs and is compared
//   with what was compiled.
// * Another path: a guard refuses the call before anything is written, and the program runs.
// * A difference: the program runs from then on; `report` says why.
//
// Arguments of other types, another mode (gradients, inference, autocast), a module that is trained
// or not, and parameters that are other tensors are combinations of their own. Several threads may
// call, as far as the program allows it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "flashlight/backends/mosaic.h"
#include "flashlight/compile.h"
#include "flashlight/trace.h"

namespace flashlight {

// Options of `adaptive`.
struct AdaptiveSettings {
  CompileSettings compile = {.backend = Mosaic{}};  // of what is called often
  TraceSettings trace = {};                         // of recordings
  size_t checked_sizes = 8;    // of those that a family gives, the first so many are checked
  size_t sample_every = 256;   // one call of compiled code in so many is a sample; 0: none
  size_t most_examples = 12;   // recordings that a family is made of
  size_t most_programs = 256;  // compiled at a time; the one that was called longest ago goes
  bool ahead = true;           // sizes of a family are planned before they are asked for
  // Recordings take longer than the program. Of the time of all calls they may cost this share, the
  // first `free_seconds`, and what compiled code has saved; until they may, the program runs.
  double overhead = 0.02;
  double free_seconds = 0.03;  // see `overhead`
  // For `overhead`: recordings may cost whatever they do.
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  bool in_background = true;  // false: a call waits until its sizes are compiled
};

// One combination of arguments.
struct AdaptiveCombination {
  std::string arguments;   // "int64[1, 128]"
  std::string state;       // "compiled", "compiling", "recorded", "new", or why the program runs
  size_t calls = 0;        // all of them
  size_t compiled = 0;     // those that compiled code has done
  bool of_family = false;  // a family gives its graph
  bool checked = true;     // false: of a family, and not compared with the program there
};

// What happened so far.
struct AdaptiveReport {
  size_t calls = 0;     // all of them
  size_t compiled = 0;  // those that compiled code has done
  size_t recorded = 0;  // those of the program, recorded
  size_t refused = 0;   // calls that a guard of compiled code left to the program
  size_t samples = 0;   // calls of compiled combinations that were compared with the program
  size_t fitted = 0;    // calls of compiled code at sizes that were not compared with the program
  std::vector<std::string> families;              // of each what it holds for, or why there is none
  std::vector<AdaptiveCombination> combinations;  // in the order of their first calls
};
// A text for people, a line for each combination.
std::string str(const AdaptiveReport& report);

// A program that becomes faster.
struct AdaptiveProgram : TracedProgram {
  // What its last run did beyond its operators, as "it changed the attribute 'step'", which a graph
  // does not do; empty: nothing. None: nothing is known.
  std::function<std::string()> beyond = nullptr;
};

// An adaptive program on flat arguments.
class AdaptiveBase {
 public:
  // The program for arguments of this structure.
  using ProgramFor = std::function<AdaptiveProgram(const Structure& arguments)>;

  explicit AdaptiveBase(AdaptiveSettings settings);

  // The program's results. `signature` tells apart programs that take other types. Throws what the
  // program throws; UserError where the tracer refused an operator of a program that had written
  // something by then.
  FlatValues call(const ProgramFor& program, const FlatValues& arguments,
                  const std::string& signature = "") const;
  AdaptiveReport report() const;
  // Waits until nothing is left to compile.
  void wait() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// An adaptive program: called like it.
template <class Program>
class Adaptive {
 public:
  // See `adaptive`. `borrowed`: the program refers to a module that it does not own.
  Adaptive(std::shared_ptr<Program> program, bool borrowed, AdaptiveSettings settings)
      : program_(std::move(program)),
        borrowed_(borrowed),
        further_(settings.trace.named),
        base_(std::move(settings)) {}

  // The program's result.
  template <class... Values>
  auto operator()(Values&&... values) const {
    using Result = detail::ResultOf<Program, std::decay_t<Values>&...>;
    using Flat = detail::Flat<Result(std::decay_t<Values>...)>;
    FlatValues arguments;
    const typename Flat::Tuple tuple(std::forward<Values>(values)...);
    arguments.structure = flatten(tuple, arguments.tensors);
    const auto program_for = [this](const Structure& structure) {
      AdaptiveProgram traced;
      traced.run = Flat::program(program_, structure);
      traced.named = [program = program_, further = further_] {
        std::vector<NamedTensor> named = further;
        detail::add_module(*program, "", named);
        return named;
      };
      traced.modules = detail::modules_of(*program_, program_);
      traced.borrowed = borrowed_;
      return traced;
    };
    const FlatValues results = base_.call(program_for, arguments, typeid(Flat).name());
    if constexpr (!std::is_void_v<Result>)
      return unflatten<Result>(results.structure, results.tensors);
  }

  // What ran, how often, and why.
  AdaptiveReport report() const { return base_.report(); }
  // Waits until nothing is left to compile.
  void wait() const { base_.wait(); }

 private:
  std::shared_ptr<Program> program_;
  bool borrowed_;
  std::vector<NamedTensor> further_;
  AdaptiveBase base_;
};

// Makes a module, or any callable, adaptive. It runs nothing yet. Objects that it refers to must
// live as long as it is called: see trace.h.
template <class T>
auto adaptive(T&& program, AdaptiveSettings settings = {}) {
  auto kept = detail::keep(std::forward<T>(program));
  const bool borrowed = detail::is_borrowed<T>(kept);
  return Adaptive<typename decltype(kept)::element_type>(std::move(kept), borrowed,
                                                         std::move(settings));
}

}  // namespace flashlight
