// The joined header of the mosaic backend compiles alone, and works from two translation units.
#include <gtest/gtest.h>

#include <vector>

#include "flashlight/mosaic/emit.h"
#include "flashlight/package/shipped.h"
#include "flashlight/toolchain/library.h"

namespace flashlight::mosaic {
namespace {

constexpr const char* kProduct = R"(
extern "C" void NAME(const float* x, const float* panels, float* y) {
  fl::run_team(2, [&](const fl::Team& team) {
    const int32_t offset = 0;
    const fl::Contraction<float> of = {1, 5, 3, 4, {&offset, 1, 3}};
    fl::contract<float>(
        team, of, [&](int64_t) { return x; }, panels,
        [&](int64_t, int64_t row, int rows, int64_t column, int columns, const auto* sums) {
          for (int r = 0; r < rows; ++r)
            for (int c = 0; c < columns; ++c) y[(row + r) * 4 + column + c] = sums[r][c];
        });
  });
}
)";

toolchain::SourceFile unit(const std::string& name, const std::string& head,
                           const std::string& tail) {
  std::string text = kProduct;
  text.replace(text.find("NAME"), 4, name);
  return {name + ".cpp", head + "#include \"" + kRuntimeName + "\"\n" + text + tail};
}

// Without a warning, too.
TEST(RuntimeText, CompilesAloneInSeveralUnits) {
  toolchain::Sources sources;
  sources.headers = {package::shipped_file(package::kRuntimeName),
                     package::shipped_file(kRuntimeName)};
  sources.units = {unit("first", "#define FLASHLIGHT_TILES_ELSEWHERE\n", ""),
                   unit("second", "", "FLASHLIGHT_TILES(float);\n")};
  toolchain::CompileOptions options;
  options.flags = {"-std=c++17", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"};
  const auto library = toolchain::Library::load(sources, options);
  const std::vector<float> x(15, 2), panels(256, 3);
  for (const char* name : {"first", "second"}) {
    std::vector<float> y(20, 0);
    library.symbol<void(const float*, const float*, float*)>(name)(x.data(), panels.data(),
                                                                   y.data());
    EXPECT_EQ(y, std::vector<float>(20, 18)) << name;
  }
}

}  // namespace
}  // namespace flashlight::mosaic
