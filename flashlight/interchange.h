// Captures as files of other tools.
//
//   auto captured = flashlight::trace(model, x);
//   flashlight::save_pt2(captured, "model.pt2");       // torch.export.load("model.pt2") in Python
//   flashlight::save_onnx(captured, "model.onnx");     // onnxruntime, OpenVINO, …
//   flashlight::save_stablehlo(captured, "model.mlir");   // XLA, IREE
//   auto again = flashlight::load_pt2("model.pt2");    // or a file of torch.export.save
//   auto model = flashlight::load_onnx("bert.onnx", {.sizes = {{"batch", 2}, {"tokens", 128}}});
//   auto any = flashlight::load_onnx_family("bert.onnx",
//                                           {.ranges = {{"batch", 2, 8}, {"tokens", 8, 512}}});
//
// The same of a saved capture, without LibTorch: composit/interchange.
#pragma once

#include <filesystem>

#include "composit/interchange/onnx.h"
#include "composit/interchange/pt2.h"
#include "composit/interchange/stablehlo.h"
#include "flashlight/capture.h"
#include "flashlight/family.h"

namespace flashlight {

// A file of torch.export: see composit/interchange/pt2.h. A family's sizes become dynamic shapes; a
// derivative gives the loss and a dict of gradients. UserError as there, and as CaptureBase::save.
void save_pt2(const CaptureBase& capture, const std::filesystem::path& file,
              const composit::Pt2Options& options = {});
void save_pt2(const Gradient& gradient, const std::filesystem::path& file,
              const composit::Pt2Options& options = {});
void save_pt2(const FamilyBase& family, const std::filesystem::path& file,
              const composit::Pt2Options& options = {});

// The capture of a file of torch.export: see composit/interchange/pt2.h. Arguments are tensors in
// the order of the program's. UserError as there, and as CaptureBase::load.
CaptureBase load_pt2(const std::filesystem::path& file);

// An ONNX model: see composit/interchange/onnx.h. A family's sizes are worked out when the model
// runs; a derivative gives the loss, then gradients. UserError as there, and as CaptureBase::save.
void save_onnx(const CaptureBase& capture, const std::filesystem::path& file,
               const composit::OnnxOptions& options = {});
void save_onnx(const Gradient& gradient, const std::filesystem::path& file,
               const composit::OnnxOptions& options = {});
void save_onnx(const FamilyBase& family, const std::filesystem::path& file,
               const composit::OnnxOptions& options = {});

// The capture of an ONNX model: see composit/interchange/onnx.h. Example inputs are random, and
// results what LibTorch makes of them. Arguments are tensors in the order of the model's inputs.
// UserError as there.
CaptureBase load_onnx(const std::filesystem::path& file,
                      const composit::OnnxReadOptions& options = {});
// The same for sizes in ranges: see OnnxReadOptions::ranges, of which there has to be one.
Family<> load_onnx_family(const std::filesystem::path& file,
                          const composit::OnnxReadOptions& options);

// A module of StableHLO: see composit/interchange/stablehlo.h. A derivative gives the loss, then
// gradients. UserError as there, and as CaptureBase::save.
void save_stablehlo(const CaptureBase& capture, const std::filesystem::path& file,
                    const composit::StableHloOptions& options = {});
void save_stablehlo(const Gradient& gradient, const std::filesystem::path& file,
                    const composit::StableHloOptions& options = {});
// A family whose cases values choose between, at one size.
void save_stablehlo(const FamilyBase& family, const std::filesystem::path& file,
                    const composit::StableHloOptions& options = {});

}  // namespace flashlight
