#include "flashlight/interchange.h"

#include "composit/family/saved_family.h"
#include "composit/interchange/imports.h"
#include "composit/ir/error.h"
#include "flashlight/family_maker.h"
#include "tracer/convert.h"

namespace flashlight {

void save_pt2(const CaptureBase& capture, const std::filesystem::path& file,
              const composit::Pt2Options& options) {
  composit::save_pt2(capture.saved(), file, options);
}

void save_pt2(const Gradient& gradient, const std::filesystem::path& file,
              const composit::Pt2Options& options) {
  composit::save_pt2(gradient.saved(), file, options);
}

void save_pt2(const FamilyBase& family, const std::filesystem::path& file,
              const composit::Pt2Options& options) {
  composit::save_pt2(family.saved(), file, options);
}

CaptureBase load_pt2(const std::filesystem::path& file) {
  const composit::SavedCapture saved = composit::load_pt2(file);
  if (composit::is_family(saved))
    throw composit::UserError("[pt2] " + file.string() +
                              ": expected a program of one size, received one with dynamic shapes, "
                              "which load_family reads");
  return FamilyMaker::of_saved(saved, file);
}

void save_onnx(const CaptureBase& capture, const std::filesystem::path& file,
               const composit::OnnxOptions& options) {
  composit::save_onnx(capture.saved(), file, options);
}

void save_onnx(const Gradient& gradient, const std::filesystem::path& file,
               const composit::OnnxOptions& options) {
  composit::save_onnx(gradient.saved(), file, options);
}

void save_onnx(const FamilyBase& family, const std::filesystem::path& file,
               const composit::OnnxOptions& options) {
  composit::save_onnx(family.saved(), file, options);
}

namespace {

// Random inputs, and what LibTorch makes of them.
void add_example(composit::SavedCapture& saved, const std::filesystem::path& file) {
  composit::add_example_inputs(saved);
  const CaptureBase draft = FamilyMaker::of_saved(saved, file);
  for (const at::Tensor& result : draft.replay(draft.example_arguments()))
    saved.example_outputs.push_back(tracer::to_array(result.detach()));
}

}  // namespace

CaptureBase load_onnx(const std::filesystem::path& file, const composit::OnnxReadOptions& options) {
  if (!options.ranges.empty())
    throw composit::UserError("[onnx] " + file.string() +
                              ": expected sizes, received ranges, for load_onnx_family");
  composit::SavedCapture saved = composit::load_onnx(file, options);
  add_example(saved, file);
  return FamilyMaker::of_saved(saved, file);
}

Family<> load_onnx_family(const std::filesystem::path& file,
                          const composit::OnnxReadOptions& options) {
  if (options.ranges.empty())
    throw composit::UserError("[onnx] " + file.string() +
                              ": expected the range of a size, received none");
  composit::SavedCapture saved = composit::load_onnx(file, options);
  add_example(saved, file);
  for (composit::SavedCapture& further : saved.cases) add_example(further, file);
  return Family<>(FamilyBase::of_saved(saved, file));
}

void save_stablehlo(const CaptureBase& capture, const std::filesystem::path& file,
                    const composit::StableHloOptions& options) {
  composit::save_stablehlo(capture.saved(), file, options);
}

void save_stablehlo(const FamilyBase& family, const std::filesystem::path& file,
                    const composit::StableHloOptions& options) {
  composit::save_stablehlo(family.saved(), file, options);
}

void save_stablehlo(const Gradient& gradient, const std::filesystem::path& file,
                    const composit::StableHloOptions& options) {
  composit::save_stablehlo(gradient.saved(), file, options);
}

}  // namespace flashlight
