// Runs a program step by step (open_steps.h): the order of its kernels, and where their values lie,
// are data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flashlight/mosaic/open_steps.h"
#include "flashlight/mosaic/runner.h"
#include "flashlight/mosaic/step_texts.h"

namespace flashlight::mosaic {

// `steps` as StepTexts has them for `program`.
std::shared_ptr<const Runner> step_runner(const OpenProgram& program, const ReadySteps& steps,
                                          int threads);

// What the text of a program shows of its steps.
class StepListing {
 public:
  StepListing(const OpenProgram& program, const ReadySteps& steps);
  // The texts of the steps, each once, and the order in which they run.
  std::string text() const;

 private:
  struct Line {
    std::string name;
    std::shared_ptr<const StepText> text;
  };
  static std::vector<Line> lines(const std::vector<OpenStep>& open,
                                 const std::vector<ReadyStep>& ready);
  std::vector<Line> prepare_, run_;
};

}  // namespace flashlight::mosaic
