// Includes all that a LibTorch program uses of Flashlight.
//
//   #include <flashlight/flashlight.h>
//
//   auto captured = flashlight::trace(model, x);                     // capture
//   flashlight::CheckReport report = captured.check(x2);             // check
//   flashlight::Gradient gradient = captured.grad();                 // differentiate
//   auto fast = flashlight::compile(captured, {.name = "model"});    // compile
//   captured.save("folder");                                         // save, load
//   flashlight::save_pt2(captured, "model.pt2");                     // for torch.export
//   composit::visualize(captured.graph(), "model.svg");              // draw
//
// Each header that is included here can be included alone, which compiles faster. Headers that need
// no LibTorch or a library of their own are not among them: composit/numpy/numpy.h (arrays),
// composit/nn/nn.h (networks and training), frontends/torchscript/script.h (TorchScript).
#pragma once

// Capture a program, check the capture, differentiate it, compile it, save, load and export it.
#include "flashlight/adaptive.h"
#include "flashlight/capture.h"
#include "flashlight/check.h"
#include "flashlight/compile.h"
#include "flashlight/compiled_family.h"
#include "flashlight/family.h"
#include "flashlight/generate.h"
#include "flashlight/gradient.h"
#include "flashlight/interchange.h"
#include "flashlight/quantize.h"
#include "flashlight/trace.h"
#include "flashlight/version.h"

// Functions of numbers.
#include "flashlight/scalar/scalar.h"

// The options of backends, and profiles.
#include "flashlight/backends/cpp.h"
#include "flashlight/backends/cuda.h"
#include "flashlight/backends/devices.h"
#include "flashlight/backends/mosaic.h"
#include "flashlight/backends/pjrt.h"
#include "flashlight/backends/profile.h"
#include "flashlight/backends/registry.h"
#include "flashlight/mosaic/choices.h"

// Graphs: print, compare, draw, evaluate, differentiate, rewrite; operations of your own.
#include "composit/ad/chain_rule.h"
#include "composit/ad/functional.h"
#include "composit/eval/evaluate.h"
#include "composit/io/saved_capture.h"
#include "composit/io/visualize.h"
#include "composit/ir/compare.h"
#include "composit/ir/error.h"
#include "composit/ir/parse.h"
#include "composit/ir/print.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/elementwise.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "composit/ops/operations.h"
#include "composit/ops/vmap.h"
#include "composit/passes/outline_repeats.h"
#include "composit/passes/pass.h"
