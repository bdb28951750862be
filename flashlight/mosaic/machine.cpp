#include "flashlight/mosaic/machine.h"

#include <spdlog/fmt/fmt.h>

#include "composit/ir/error.h"
#include "flashlight/mosaic/prepare.h"
#include "flashlight/package/shipped.h"
#include "flashlight/toolchain/isa.h"
#include "flashlight/toolchain/library.h"

namespace flashlight::mosaic {
namespace {

using composit::UserError;

int widest_vector() {
  const std::string isa = toolchain::host_isa();
  return isa == "avx512f" ? 64 : isa.starts_with("avx") ? 32 : 16;
}

}  // namespace

Machine machine_of(const std::string& march) {
  constexpr const char* kText = R"(#include "{}"
extern "C" int vector_bytes() {{ return fl::detail::kVectorBytes; }}
extern "C" int has_matrix_unit() {{
#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__)
  return 1;
#else
  return 0;
#endif
}}
)";
  const toolchain::Sources sources = {
      .units = {{"machine.cpp", fmt::format(kText, package::kRuntimeName)}},
      .headers = {package::shipped_file(package::kRuntimeName)}};
  toolchain::CompileOptions options = {.flags = default_flags()};
  options.flags.push_back("-march=" + march);
  const toolchain::Library library = toolchain::Library::load(sources, options);
  const int bytes = library.symbol<int()>("vector_bytes")();
  if (bytes > widest_vector())
    throw UserError(
        fmt::format("-march={} has vectors of {} bytes; weights are prepared for them "
                    "where the processor has them, and this one has {}",
                    march, bytes, widest_vector()));
  return {bytes, library.symbol<int()>("has_matrix_unit")() == 1};
}

}  // namespace flashlight::mosaic
