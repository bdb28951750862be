#include <cstdint>
#include <cstdio>

extern "C" uint64_t aoti_torch_abi_version();

int main() {
  std::printf("version %d\n", static_cast<int>(aoti_torch_abi_version() >> 48));
  return 4;
}
