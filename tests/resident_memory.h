// The memory of this process.
//
//   const int64_t before = resident_bytes();
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace composit::test {

// Without what was freed: the allocator gives that back first.
inline int64_t resident_bytes() {
  malloc_trim(0);
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace composit::test
