// Families that choose their examples.
#include <optional>

#include "composit/family/examples.h"
#include "flashlight/family.h"
#include "flashlight/family_maker.h"
#include "flashlight/family_numbers.h"

namespace flashlight {

using composit::SizeValues;

namespace {

// A program that runs at the sizes that it is told.
class SizedProgram : public composit::ExampleSource {
 public:
  SizedProgram(const FamilyBase::ArgumentsAt& arguments_at, const FamilyBase::CaptureOf& capture,
               const FamilySettings& settings)
      : arguments_at_(arguments_at), capture_(capture), settings_(settings) {}

  void show(const SizeValues& sizes) override {
    numbers_.push_back(with_present(settings_.numbers, {}));
    examples_.push_back(capture_(arguments_at_(sizes)));
  }
  std::vector<composit::Graph> graphs() const override { return FamilyMaker::graphs_of(examples_); }
  const composit::Cases& unify(const std::vector<std::string>& names) override {
    FamilySettings named = settings_;
    named.names = names;
    family_.emplace(examples_, named, numbers_);
    return family_->cases();
  }
  std::string wrong_at(const SizeValues& sizes) override {
    const CheckReport report = family_->check_flat(arguments_at_(sizes));
    return report ? "" : str(report);
  }
  const FamilyBase& family() const { return *family_; }

 private:
  const FamilyBase::ArgumentsAt& arguments_at_;
  const FamilyBase::CaptureOf& capture_;
  const FamilySettings& settings_;
  std::vector<CaptureBase> examples_;
  std::vector<composit::NumberValues> numbers_;  // by example
  std::optional<FamilyBase> family_;
};

}  // namespace

FamilyBase FamilyBase::over(const ArgumentsAt& arguments_at, const CaptureOf& capture,
                            const FamilySettings& settings) {
  SizedProgram program(arguments_at, capture, settings);
  composit::show_enough(program, settings.ranges);
  return program.family();
}

}  // namespace flashlight
