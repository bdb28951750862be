// Runs a program step by step (open_steps.h): the order of its kernels, and where their values lie,
// are data.
#pragma once

#include <memory>

#include "flashlight/mosaic/open_steps.h"
#include "flashlight/mosaic/runner.h"
#include "flashlight/mosaic/step_texts.h"

namespace flashlight::mosaic {

// `steps` as StepTexts has them for `program`.
std::shared_ptr<const Runner> step_runner(OpenProgram program, ReadySteps steps, int threads);

// The texts of the steps, each once, and the order in which they run.
std::string text_of(const OpenProgram& program, const ReadySteps& steps);

}  // namespace flashlight::mosaic
