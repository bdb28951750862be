#include "flashlight/shared_code.h"

#include "flashlight/backends/registry.h"

namespace flashlight {

SharedCode::SharedCode(std::vector<composit::SizedGraph> shown, const CompileSettings& settings)
    : shown_(std::move(shown)),
      code_(backend_named(settings.backend.name).compile_sized(shown_, compile_options(settings))) {
}

size_t SharedCode::compilations() const {
  const std::lock_guard lock(mutex_);
  size_t count = code_->compilations();
  for (const auto& [wanted, derivative] : derivatives_) count += derivative->compilations();
  return count;
}

}  // namespace flashlight
