// Compiled code of a family, by sizes.
//
//   flashlight::FamilyPrograms programs(family, {.backend = flashlight::Mosaic{}});
//   std::vector<at::Tensor> y = programs.at({{"tokens", 21}})->run({ids});
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "flashlight/compile.h"
#include "flashlight/family.h"

namespace flashlight {

class SharedCode;   // shared_code.h
class BoundInputs;  // bound_inputs.h

// The programs of a family, each made when it is first asked for. They share their text where the
// backend can have sizes as data, as mosaic can, and the packed weights.
class FamilyPrograms {
 public:
  // UserError for a family whose sizes depend on values: there would be a program for each value.
  // `most`: programs that are kept; of others the one that was not asked for longest goes.
  FamilyPrograms(FamilyBase family, CompileSettings settings, size_t most = 1024);
  ~FamilyPrograms();

  // The family that is compiled. Programs of a family with numbers take them as further arguments:
  // see FamilyBase::with_number_inputs_at.
  const FamilyBase& family() const { return family_; }
  // UserError as of FamilyBase::at and of `compile`. Several threads may ask; while one compiles,
  // others wait.
  std::shared_ptr<const CompiledCapture> at(const composit::SizeValues& sizes);
  // The results for these arguments, with the present numbers of the family, of which `numbers` are
  // these (FamilyBase::with).
  FlatValues call(const FlatValues& arguments, const composit::NumberValues& numbers = {});
  // The time of each kernel in a call with these tensors: see CompiledCapture::profile. UserError
  // for a family with numbers.
  Profile profile(const std::vector<at::Tensor>& arguments);
  // As `at` where no compiler has to run for it; nullptr elsewhere, and while one runs.
  std::shared_ptr<const CompiledCapture> at_once(const composit::SizeValues& sizes);
  // Compiles what several sizes share, for each case.
  void prepare();
  // All sizes of the family if they are no more than are kept, or else some of them: those that
  // `prepare_sizes` makes programs for.
  std::vector<composit::SizeValues> sizes_ahead() const;
  // Makes the programs of these sizes in threads, so that no call waits for one. The number of
  // those that there are programs for then: sizes of which `at` says what is wrong have none, and
  // unless it may run, those that take a compiler. UserError as of `compile` where it is not the
  // sizes, and where weights that are to be packed are gone.
  size_t prepare_sizes(const std::vector<composit::SizeValues>& sizes, bool may_compile = true);
  // The text that serves all sizes, one for each case; empty where each size has its own.
  std::string source();
  // The number of programs that are kept.
  size_t size() const;
  // How often a compiler ran.
  size_t compilations() const;

 private:
  using CaseNumbers = std::vector<size_t>;
  using Numbers = std::vector<int64_t>;
  // The sizes of these arguments; those of types that came before are known.
  composit::SizeValues sizes_of(const std::vector<at::Tensor>& arguments);
  struct Program {
    std::shared_ptr<const CompiledCapture> code;
    size_t last_use = 0;
  };
  // What the programs of some cases share.
  struct Shared {
    std::shared_ptr<SharedCode> code;
    std::shared_ptr<BoundInputs> inputs;  // of the first program
    std::vector<std::string> names;       // of these
  };
  CaseNumbers cases_at(const composit::SizeValues& sizes) const;
  std::shared_ptr<const CompiledCapture> found(const composit::SizeValues& sizes);
  std::shared_ptr<SharedCode> found_shared(const CaseNumbers& cases) const;
  std::shared_ptr<SharedCode> shared_for(const CaseNumbers& cases);  // needs `making_`
  std::shared_ptr<BoundInputs> inputs_for(const CaseNumbers& cases, const CaptureBase& capture);
  std::shared_ptr<const CompiledCapture> made(const composit::SizeValues& sizes,
                                              const CaseNumbers& cases, SharedUse shared);
  void make_room();

  const FamilyBase family_;
  const CompileSettings settings_;
  const size_t most_;
  std::mutex making_;         // while a program that somebody waits for is made
  mutable std::mutex mutex_;  // of all below
  std::map<composit::SizeValues, Program> programs_;
  std::map<CaseNumbers, Shared> shared_;
  std::map<Numbers, composit::SizeValues> sizes_;  // by what types consist of
  size_t uses_ = 0;
};

}  // namespace flashlight
