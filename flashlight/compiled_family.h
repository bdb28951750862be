// Compiled code for all sizes of a family: a program for each, made at the first call there.
//
//   auto fast = flashlight::compile(family, {.backend = flashlight::Mosaic{}});
//   at::Tensor y = fast(x_4x21);      // compiles for 4x21
//   at::Tensor z = fast(x2_4x21);     // runs
//
// What the toolchain compiled before is found on disk. Each program packs its weights.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "composit/ir/error.h"
#include "flashlight/compile.h"
#include "flashlight/family.h"

namespace flashlight {

template <class Signature>
class CompiledFamily;

// Compiled code of a family whose types are known: called like the program.
template <class Result, class... Arguments>
class CompiledFamily<Result(Arguments...)> {
 public:
  // UserError for a family whose sizes depend on values: there would be a program for each value.
  CompiledFamily(Family<Result(Arguments...)> family, CompileSettings settings)
      : state_(std::make_shared<State>(std::move(family), std::move(settings))) {
    for (const composit::Family& one : state_->family.cases().cases)
      if (!one.value_sizes.empty())
        throw composit::UserError(
            "[compile] expected a family whose sizes do not depend on values, "
            "received one where '" +
            one.value_sizes[0].name + "' does");
  }

  // The program's result. UserError as of a call of the family, and as of `compile`. Several
  // threads may call; while one compiles, the others wait.
  template <class... Values>
  Result operator()(Values&&... values) const {
    const FlatValues flat = detail::flatten_as<std::tuple<std::decay_t<Arguments>...>>(
        state_->family.argument_structure(), values...);
    const auto program = at(state_->family.sizes_of(flat.tensors));
    return (*program)(std::forward<Values>(values)...);
  }
  // The number of programs made so far.
  size_t programs() const {
    const std::lock_guard lock(state_->mutex);
    return state_->programs.size();
  }

 private:
  using Program = Compiled<Result(Arguments...)>;
  struct State {
    State(Family<Result(Arguments...)> family, CompileSettings settings)
        : family(std::move(family)), settings(std::move(settings)) {}
    Family<Result(Arguments...)> family;
    CompileSettings settings;
    std::mutex mutex;
    std::map<composit::SizeValues, std::shared_ptr<const Program>> programs;
  };

  std::shared_ptr<const Program> at(const composit::SizeValues& sizes) const {
    const std::lock_guard lock(state_->mutex);
    auto& program = state_->programs[sizes];
    if (!program)
      program = std::make_shared<const Program>(state_->family.at(sizes), state_->settings);
    return program;
  }

  std::shared_ptr<State> state_;
};

// Compiles a family, at first for no sizes.
template <class Signature>
CompiledFamily<Signature> compile(const Family<Signature>& family, CompileSettings settings = {}) {
  return CompiledFamily<Signature>(family, std::move(settings));
}

}  // namespace flashlight
