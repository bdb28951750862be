#include "tests/nn/torch_file.h"

#include "composit/io/safetensors.h"
#include "tests/ops/opdb/agreement.h"

namespace composit::test {

const std::map<std::string, Parts>& torch_cases() {
  static const std::map<std::string, Parts> cases = [] {
    std::map<std::string, Parts> found;
    for (const auto& [name, array] : read_safetensors(FLASHLIGHT_TORCH_CASES).tensors) {
      const size_t split = name.rfind('|');
      found[name.substr(0, split)][name.substr(split + 1)] = array;
    }
    return found;
  }();
  return cases;
}

std::string difference(const Array& ours, const Array& torch, double times) {
  const auto [relative, absolute] = opdb::tolerance_of(torch.type().dtype);
  return opdb::difference(ours, torch, {times * relative, times * absolute});
}

}  // namespace composit::test
