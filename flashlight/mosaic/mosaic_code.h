// The code that this backend makes of a plan: what runs it, and what its calls need.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "flashlight/backends/profile.h"
#include "flashlight/mosaic/emit.h"
#include "flashlight/mosaic/plan.h"
#include "flashlight/mosaic/prepare.h"
#include "flashlight/mosaic/runner.h"
#include "flashlight/package/arena_pool.h"
#include "flashlight/package/backend.h"

namespace flashlight::mosaic {

// What calls need of a plan.
struct CallPlan {
  explicit CallPlan(const Plan& plan);
  // A result that is an input's new value and may be written in its memory.
  struct Update {
    size_t input;     // of the graph
    bool is_over_it;  // the kernel that writes it reads the input in the same memory
    size_t bytes;
  };
  std::map<size_t, Update> updates;  // by result
  std::vector<bool> frozen;          // by input of the routine
  size_t arena_bytes;
};

// The part of the code that is the same for all sets of weights.
struct Kernels {
  std::shared_ptr<const Runner> runner;
  std::shared_ptr<const Source> source;
  CallPlan calls;
  std::shared_ptr<package::ArenaPool> arenas;
  std::shared_ptr<const Plan> plan =
      nullptr;  // whole; of a program that is the only one of its text
  // The text, where the source has none.
  std::function<std::string()> text = {};
};

class MosaicCode : public package::GeneratedCode {
 public:
  MosaicCode(composit::Ports ports, std::shared_ptr<const Kernels> kernels,
             std::shared_ptr<const Prepared> prepared = nullptr);

  bool is_frozen(size_t input) const override;
  bool may_update(size_t result) const override;
  // Weights that calls read as they are stay shared with the caller. Those that are packed are not
  // needed any more.
  std::shared_ptr<const composit::Code> prepare(
      const std::vector<composit::Array>& weights) const override;
  std::shared_ptr<const composit::Code> prepare_beside(const std::vector<composit::Array>& weights,
                                                       const Codes& others) const override;
  std::shared_ptr<const composit::Code> prepare_like(const Codes& others) const override;
  const std::string& source() const override;
  void run(composit::InputBuffers inputs, composit::Buffers results,
           fl::Generator* generator) const override;
  Profile profile(composit::InputBuffers inputs, composit::Buffers results,
                  fl::Generator* generator) const override;

  const std::shared_ptr<const Plan>& plan() const { return kernels_->plan; }

 private:
  static PreparedList prepared_by(const Codes& codes);
  Preparing preparing() const {
    return {ports(), kernels_->calls.frozen, *kernels_->source, *kernels_->runner};
  }
  void run_timed(composit::InputBuffers inputs, composit::Buffers results, fl::Generator* generator,
                 int64_t* times) const;
  void copy_updated(composit::InputBuffers inputs, composit::Buffers results) const;
  const void* weight(size_t place, composit::InputBuffers inputs) const override;

  std::shared_ptr<const Kernels> kernels_;
  std::shared_ptr<const Prepared> prepared_;
  mutable std::once_flag written_;
  mutable std::string text_;
};

}  // namespace flashlight::mosaic
