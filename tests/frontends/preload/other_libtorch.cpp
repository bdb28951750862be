// Stands for a LibTorch of another version.
#include <cstdint>

extern "C" uint64_t aoti_torch_abi_version() { return 2ull << 56 | 9ull << 48 | 1ull << 40; }
