// Captures as files of other tools.
//
//   auto captured = flashlight::trace(model, x);
//   flashlight::save_pt2(captured, "model.pt2");       // torch.export.load("model.pt2") in Python
//
// The same of a saved capture, without LibTorch: composit/interchange.
#pragma once

#include <filesystem>

#include "composit/interchange/pt2.h"
#include "flashlight/capture.h"
#include "flashlight/family.h"

namespace flashlight {

// A file of torch.export: see composit/interchange/pt2.h. UserError as there, and as
// CaptureBase::save.
void save_pt2(const CaptureBase& capture, const std::filesystem::path& file,
              const composit::Pt2Options& options = {});
// The same of a derivative, which gives the loss and a dict of gradients.
void save_pt2(const Gradient& gradient, const std::filesystem::path& file,
              const composit::Pt2Options& options = {});
// The same of a family, whose sizes become dynamic shapes.
void save_pt2(const FamilyBase& family, const std::filesystem::path& file,
              const composit::Pt2Options& options = {});

}  // namespace flashlight
