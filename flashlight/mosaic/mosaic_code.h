// The code that this backend makes of a plan: a loaded library, and what its calls need.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "composit/ir/hash.h"
#include "flashlight/backends/profile.h"
#include "flashlight/mosaic/emit.h"
#include "flashlight/mosaic/plan.h"
#include "flashlight/mosaic/prepare.h"
#include "flashlight/package/arena_pool.h"
#include "flashlight/package/backend.h"
#include "flashlight/toolchain/library.h"

namespace flashlight::mosaic {

// The part of the code that is the same for all sets of weights.
struct Kernels {
  toolchain::Library library;
  std::shared_ptr<const Source> source;
  std::vector<composit::Array> constants;  // Source::constants, of this size
  Plan plan;                               // without what only its text is made of
  int threads;
  std::shared_ptr<package::ArenaPool> arenas;
  // Of a text whose sizes are data (sized_source.h): those, and what its preparation does.
  std::optional<std::vector<int64_t>> numbers = {};
  composit::Hash preparation = {};
  Profile timed = {};  // kernels of plan.run, without times
};

class MosaicCode : public package::GeneratedCode {
 public:
  explicit MosaicCode(std::shared_ptr<const Kernels> kernels,
                      std::shared_ptr<const Prepared> prepared = nullptr);

  bool is_frozen(size_t input) const override;
  bool may_update(size_t result) const override;
  // Weights that calls read as they are stay shared with the caller. Those that are packed are not
  // needed any more.
  std::shared_ptr<const composit::Code> prepare(
      const std::vector<composit::Array>& weights) const override;
  std::shared_ptr<const composit::Code> prepare_like(const composit::Code& other) const override;
  void run(composit::InputBuffers inputs, composit::Buffers results,
           fl::Generator* generator) const override;
  Profile profile(composit::InputBuffers inputs, composit::Buffers results,
                  fl::Generator* generator) const override;

  const Plan& plan() const { return kernels_->plan; }

 private:
  using Run = const char*(const void* const*, const void* const*, void* const*, const void*, void*,
                          void*, int64_t*, int);
  using SizedRun = const char*(const void* const*, const void* const*, void* const*, const void*,
                               void*, void*, int64_t*, int, const int64_t*);
  const char* enter(const package::Pointers& at, void* arena, int64_t* times) const;
  void run_timed(composit::InputBuffers inputs, composit::Buffers results, fl::Generator* generator,
                 int64_t* times) const;
  void copy_updated(composit::InputBuffers inputs, composit::Buffers results) const;
  const void* weight(size_t place, composit::InputBuffers inputs) const override;

  std::shared_ptr<const Kernels> kernels_;
  std::shared_ptr<const Prepared> prepared_;
  Run* run_ = nullptr;
  SizedRun* sized_run_ = nullptr;  // of a text whose sizes are data, instead
};

}  // namespace flashlight::mosaic
