// Compiled code for all sizes of a family: a program for each, made at the first call there.
//
//   auto fast = flashlight::compile(family, {.backend = flashlight::Mosaic{}});
//   at::Tensor y = fast(x_4x21);      // compiles, for this and other sizes
//   at::Tensor z = fast(x_5x30);      // plans for 5x30; no compiler runs
//   fast.prepare();                   // plans for all sizes: no call waits from here on
//
// With mosaic, sizes are data of the compiled text: a new size is planned in some hundredths of a
// second. Kernels are compiled once for all sizes, but where another algorithm pays or threads
// divide something else; and weights are packed once. Other backends compile each size.
#pragma once

#include <memory>
#include <utility>

#include "flashlight/family_programs.h"

namespace flashlight {

template <class Signature>
class CompiledFamily;

// Compiled code of a family whose types are known: called like the program.
template <class Result, class... Arguments>
class CompiledFamily<Result(Arguments...)> {
 public:
  // UserError for a family whose sizes depend on values: there would be a program for each value.
  CompiledFamily(Family<Result(Arguments...)> family, CompileSettings settings)
      : programs_(std::make_shared<FamilyPrograms>(std::move(family), std::move(settings))) {}

  // The program's result. UserError as of a call of the family, and as of `compile`. Several
  // threads may call; while one compiles, the others wait.
  template <class... Values>
  Result operator()(Values&&... values) const {
    const FlatValues results =
        programs_->call(detail::flatten_for<std::tuple<std::decay_t<Arguments>...>>(
            programs_->family(), std::forward<Values>(values)...));
    if constexpr (!std::is_void_v<Result>)
      return unflatten<Result>(results.structure, results.tensors);
  }
  // Makes the programs of all sizes, or of as many as are kept, so that no call waits for its own:
  // in some hundredths of a second each, in threads, where sizes are data. The number of sizes that
  // have one then. UserError as of `compile`.
  size_t prepare() const { return programs_->prepare_sizes(programs_->sizes_ahead()); }
  // The number of programs that are kept.
  size_t programs() const { return programs_->size(); }
  // The text that serves all sizes, as by the backend "cpp"; empty where each size has its own.
  std::string source() const { return programs_->source(); }
  // How often a compiler ran.
  size_t compilations() const { return programs_->compilations(); }

 private:
  std::shared_ptr<FamilyPrograms> programs_;
};

// Compiles a family, at first for no sizes.
template <class Signature>
CompiledFamily<Signature> compile(const Family<Signature>& family, CompileSettings settings = {}) {
  return CompiledFamily<Signature>(family, std::move(settings));
}

}  // namespace flashlight
