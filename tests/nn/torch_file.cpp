#include "tests/nn/torch_file.h"

#include <stdexcept>

#include "composit/io/safetensors.h"
#include "tests/io/command.h"
#include "tests/io/temporary_folder.h"

namespace composit::test {

static std::map<std::string, Parts> make_cases() {
  const TemporaryFolder folder;
  const auto file = folder / "cases.safetensors";
  const CommandResult result =
      run({FLASHLIGHT_PYTHON, FLASHLIGHT_SOURCE_DIR "/tests/nn/torch_cases.py", file.string()});
  constexpr int kSkipped = 77;
  const bool missing = result.status == -1 || WEXITSTATUS(result.status) == kSkipped;
  if (missing) return {};
  if (result.status != 0) throw std::runtime_error("torch_cases.py: " + result.output);
  std::map<std::string, Parts> found;
  for (const auto& [name, array] : read_safetensors(file).tensors) {
    const size_t split = name.rfind('|');
    found[name.substr(0, split)][name.substr(split + 1)] = array;
  }
  return found;
}

const std::map<std::string, Parts>& torch_cases() {
  static const std::map<std::string, Parts> cases = make_cases();
  return cases;
}

}  // namespace composit::test
