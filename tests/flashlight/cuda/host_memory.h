// Watches what kernels on the host do to memory: bounds, races, and how far the addresses of a warp
// lie apart. Included by host_cuda.h.
//
// Kernels are watched whose parameters are Pointers instead of plain ones.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <unordered_map>

namespace host_cuda {

class Memory {
 public:
  static Memory& instance() {
    static Memory memory;
    return memory;
  }

  // Kernels may access these bytes from now on.
  void allow(const void* begin, size_t bytes) {
    regions_[reinterpret_cast<uintptr_t>(begin)] = bytes;
  }
  void forget() {
    regions_.clear();
    fault_.clear();
    touched_.clear();
    sectors_ = {};
  }
  void begin_kernel() {
    touched_.clear();
    end_warps();
  }

  void access(const void* at, size_t bytes, bool writes) {
    const auto address = reinterpret_cast<uintptr_t>(at);
    check_bounds(address, bytes);
    check_race(address, writes);
    if (writes) count_sector(address, bytes);
  }

  // The first thing that was wrong; empty: nothing.
  const std::string& fault() const { return fault_; }

  // Sectors of 32 bytes to which warps wrote, and how few they could have been.
  struct Sectors {
    int64_t written = 0, least = 0;
  };
  Sectors sectors() {
    end_warps();
    return sectors_;
  }

 private:
  struct Touch {
    int64_t writer = -1, reader = -1;
  };
  struct Accesses {  // of a warp's lanes, each its same access by number
    std::set<uintptr_t> sectors;
    int64_t bytes = 0;
  };
  static constexpr int64_t kSeveral = -2;

  static int64_t thread() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }

  void report(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }
  void check_bounds(uintptr_t address, size_t bytes) {
    auto region = regions_.upper_bound(address);
    const bool known = region != regions_.begin() && (--region, true);
    if (!known || address + bytes > region->first + region->second) {
      report("thread " + std::to_string(thread()) + " leaves its memory");
      throw Trap();
    }
  }
  // Kernels have no barriers between what threads do to global memory.
  void check_race(uintptr_t address, bool writes) {
    Touch& touch = touched_[address];
    const int64_t self = thread();
    const bool other_wrote = touch.writer != -1 && touch.writer != self;
    const bool other_read =
        touch.reader == kSeveral || (touch.reader != -1 && touch.reader != self);
    if (other_wrote || (writes && other_read))
      report("threads " + std::to_string(other_wrote ? touch.writer : touch.reader) + " and " +
             std::to_string(self) + " race for an element");
    if (writes)
      touch.writer = self;
    else
      touch.reader = touch.reader == -1 || touch.reader == self ? self : kSeveral;
  }

  void count_sector(uintptr_t address, size_t bytes) {
    const int64_t number = counts_[thread()]++;
    Accesses& accesses = warps_[{thread() / 32, number}];
    accesses.sectors.insert(address / kSector);
    accesses.bytes += static_cast<int64_t>(bytes);
  }
  void end_warps() {
    for (const auto& [place, accesses] : warps_) {
      sectors_.written += static_cast<int64_t>(accesses.sectors.size());
      sectors_.least += (accesses.bytes + kSector - 1) / kSector;
    }
    warps_.clear();
    counts_.clear();
  }

  static constexpr int64_t kSector = 32;
  std::map<uintptr_t, size_t> regions_;
  std::unordered_map<uintptr_t, Touch> touched_;           // by the current kernel
  std::map<std::pair<int64_t, int64_t>, Accesses> warps_;  // by warp and number of the access
  std::unordered_map<int64_t, int64_t> counts_;            // of a thread's accesses
  Sectors sectors_;
  std::string fault_;
};

// An element that is written when it is assigned.
template <class T>
class Element {
 public:
  explicit Element(T* at) : at_(at) {}
  operator T() const {
    Memory::instance().access(at_, sizeof(T), false);
    return *at_;
  }
  // A 16-bit float in arithmetic.
  template <class U = T, std::enable_if_t<std::is_class_v<U>, int> = 0>
  operator float() const {
    return T(*this);
  }
  Element& operator=(T value) {
    Memory::instance().access(at_, sizeof(T), true);
    *at_ = value;
    return *this;
  }
  Element& operator+=(T value) { return *this = static_cast<T>(T(*this) + value); }

 private:
  T* at_;
};

template <class T>
class Pointer {
 public:
  Pointer(T* first) : first_(first) {}
  auto operator[](int64_t index) const {
    if constexpr (std::is_const_v<T>) {
      Memory::instance().access(first_ + index, sizeof(T), false);
      return std::remove_const_t<T>(first_[index]);
    } else {
      return Element<T>(first_ + index);
    }
  }

 private:
  T* first_;
};

}  // namespace host_cuda

extern "C" void host_cuda_allow(const void* begin, size_t bytes) {
  host_cuda::Memory::instance().allow(begin, bytes);
}
extern "C" void host_cuda_forget() { host_cuda::Memory::instance().forget(); }
// Copies the fault to `text`, of 200 characters.
extern "C" void host_cuda_report(char* text, int64_t* written, int64_t* least) {
  host_cuda::Memory& memory = host_cuda::Memory::instance();
  std::snprintf(text, 200, "%s", memory.fault().c_str());
  const auto sectors = memory.sectors();
  *written = sectors.written;
  *least = sectors.least;
}
