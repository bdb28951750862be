// The command line: `flashlight --version`, `flashlight show FOLDER`.
#include <CLI/CLI.hpp>
#include <string>

#include "flashlight/version.h"

namespace {

std::string version_text() {
  std::string text = "flashlight " + std::string(flashlight::kVersion);
  if (flashlight::kTorchVersion.empty()) return text + ", without LibTorch";
  return text + ", LibTorch " + std::string(flashlight::kTorchVersion);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Graphs captured from LibTorch models");
  app.set_version_flag("--version", version_text());
  CLI11_PARSE(app, argc, argv);
  return 0;
}
