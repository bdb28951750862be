// Compiled code of a family, by sizes.
//
//   flashlight::FamilyPrograms programs(family, {.backend = flashlight::Mosaic{}});
//   std::vector<at::Tensor> y = programs.at({{"tokens", 21}})->run({ids});
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "flashlight/compile.h"
#include "flashlight/family.h"

namespace flashlight {

class SharedCode;  // shared_code.h

// The programs of a family, each made when it is first asked for. They share their text where the
// backend can have sizes as data, as mosaic can, and the packed weights.
class FamilyPrograms {
 public:
  // UserError for a family whose sizes depend on values: there would be a program for each value.
  // `most`: programs that are kept; of others the one that was not asked for longest goes.
  FamilyPrograms(FamilyBase family, CompileSettings settings, size_t most = 256);
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
  // The same where no compiler has to run for it; nullptr elsewhere, and while one runs.
  std::shared_ptr<const CompiledCapture> at_once(const composit::SizeValues& sizes);
  // Compiles what several sizes share, for each case.
  void prepare();
  // The text that serves all sizes, one for each case; empty where each size has its own.
  std::string source();
  // The number of programs that are kept.
  size_t size() const;
  // How often a compiler ran.
  size_t compilations() const;

 private:
  struct Program {
    std::shared_ptr<const CompiledCapture> code;
    size_t last_use = 0;
  };
  std::shared_ptr<SharedCode> shared_for(const std::vector<size_t>& cases);
  std::shared_ptr<const CompiledCapture> made(const composit::SizeValues& sizes, SharedUse shared);
  void make_room();

  const FamilyBase family_;
  const CompileSettings settings_;
  const size_t most_;
  mutable std::mutex mutex_;
  std::map<composit::SizeValues, Program> programs_;
  std::map<std::vector<size_t>, std::shared_ptr<SharedCode>> shared_;  // by cases
  size_t uses_ = 0;
};

}  // namespace flashlight
