// Watches what kernels on the host do to memory: bounds, races, reads of shared memory that nobody
// wrote, and how far the addresses of a warp lie apart; and undefined arithmetic. Included by
// host_cuda.h.
//
// Kernels are watched whose parameters are Pointers instead of plain ones; shared memory always is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace host_cuda {

// Sectors of 32 bytes that warps touched, and how few would hold the bytes they touched.
struct Traffic {
  int64_t touched = 0, least = 0;
};

// The accesses of a block's threads, in their order. The accesses of a warp's lanes with one number
// count as one instruction: so they are where lanes take the same way. Those of a thread beyond
// kMost in a block are not counted.
class Accesses {
 public:
  void add(size_t thread, uintptr_t address, size_t bytes) {
    std::vector<uintptr_t>& list = lists_[thread];
    if (list.size() < kMost) list.push_back(address << 8 | bytes);
  }
  void end_block(Traffic& traffic) {
    for (size_t first = 0; first < kThreads; first += kLanes) {
      size_t longest = 0;
      for (size_t lane = first; lane < first + kLanes; ++lane)
        longest = std::max(longest, lists_[lane].size());
      for (size_t number = 0; number < longest; ++number) count(first, number, traffic);
      for (size_t lane = first; lane < first + kLanes; ++lane) lists_[lane].clear();
    }
  }

 private:
  void count(size_t first, size_t number, Traffic& traffic) const {
    uintptr_t accesses[kLanes];
    size_t lanes = 0;
    for (size_t lane = first; lane < first + kLanes; ++lane)
      if (number < lists_[lane].size()) accesses[lanes++] = lists_[lane][number];
    std::sort(accesses, accesses + lanes);
    int64_t bytes = 0;
    uintptr_t last_sector = 0;
    for (size_t i = 0; i < lanes; ++i) {
      if (i > 0 && accesses[i] == accesses[i - 1]) continue;  // lanes share an element
      bytes += static_cast<int64_t>(accesses[i] & 0xff);
      const uintptr_t sector = (accesses[i] >> 8) / kSector;
      traffic.touched += i == 0 || sector != last_sector;
      last_sector = sector;
    }
    traffic.least += (bytes + kSector - 1) / kSector;
  }

  static constexpr size_t kThreads = 256, kLanes = 32, kMost = 1 << 14;
  static constexpr int64_t kSector = 32;
  std::vector<uintptr_t> lists_[kThreads];
};

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
  void forbid(const void* begin) { regions_.erase(reinterpret_cast<uintptr_t>(begin)); }
  void forget() {
    regions_.clear();
    fault_.clear();
    touched_.clear();
    reads_ = writes_ = {};
  }
  void begin_kernel() { touched_.clear(); }
  void end_block() {
    read_accesses_.end_block(reads_);
    write_accesses_.end_block(writes_);
    shared_.clear();
  }
  // What threads did to shared memory before a barrier does not race with what they do then.
  void end_barrier() {
    for (auto& [address, touch] : shared_) touch.writer = touch.reader = -1;
  }

  void access(const void* at, size_t bytes, bool writes) {
    const auto address = reinterpret_cast<uintptr_t>(at);
    check_bounds(address, bytes);
    check_race(touched_[address], writes, "");  // no barriers between threads of a grid
    (writes ? write_accesses_ : read_accesses_).add(threadIdx.x, address, bytes);
  }
  void access_shared(const void* at, bool writes) {
    Touch& touch = shared_[reinterpret_cast<uintptr_t>(at)];
    if (writes)
      touch.is_written = true;
    else if (!touch.is_written)
      report("thread " + std::to_string(thread()) + " reads shared memory that nobody wrote");
    check_race(touch, writes, " of shared memory");
  }
  void check_shared_index(int64_t index, size_t count) {
    if (index >= 0 && static_cast<size_t>(index) < count) return;
    report("thread " + std::to_string(thread()) + " leaves its shared memory");
    throw Trap();
  }

  // Arithmetic that C++ leaves undefined, and nvcc makes use of.
  void report_undefined(const char* what, const void* place) {
    struct Place {
      const char* file;
      uint32_t line, column;
    };
    report(std::string(what) + " in line " +
           std::to_string(static_cast<const Place*>(place)->line) + " of " +
           static_cast<const Place*>(place)->file);
  }

  // The first thing that was wrong; empty: nothing.
  const std::string& fault() const { return fault_; }
  const Traffic& reads() const { return reads_; }
  const Traffic& writes() const { return writes_; }

 private:
  struct Touch {
    int64_t writer = -1, reader = -1;
    bool is_written = false;
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
  void check_race(Touch& touch, bool writes, const std::string& where) {
    const int64_t self = thread();
    const bool other_wrote = touch.writer != -1 && touch.writer != self;
    const bool other_read =
        touch.reader == kSeveral || (touch.reader != -1 && touch.reader != self);
    if (other_wrote || (writes && other_read))
      report("threads " + std::to_string(other_wrote ? touch.writer : touch.reader) + " and " +
             std::to_string(self) + " race for an element" + where);
    if (writes)
      touch.writer = self;
    else
      touch.reader = touch.reader == -1 || touch.reader == self ? self : kSeveral;
  }

  std::map<uintptr_t, size_t> regions_;
  std::unordered_map<uintptr_t, Touch> touched_;  // by the current kernel
  std::unordered_map<uintptr_t, Touch> shared_;   // by the current block; writers since a barrier
  Accesses read_accesses_, write_accesses_;
  Traffic reads_, writes_;
  std::string fault_;
};

// An element that is written when it is assigned.
template <class T, bool is_shared = false>
class Element {
 public:
  explicit Element(T* at) : at_(at) {}
  operator T() const {
    touch(false);
    return *at_;
  }
  // A 16-bit float in arithmetic.
  template <class U = T, std::enable_if_t<std::is_class_v<U>, int> = 0>
  operator float() const {
    return T(*this);
  }
  Element& operator=(T value) {
    touch(true);
    *at_ = value;
    return *this;
  }
  Element& operator+=(T value) { return *this = static_cast<T>(T(*this) + value); }

 private:
  void touch(bool writes) const {
    if constexpr (is_shared)
      Memory::instance().access_shared(at_, writes);
    else
      Memory::instance().access(at_, sizeof(T), writes);
  }

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

// An array in shared memory.
template <class T>
class Shared {
 public:
  Shared(T* first, size_t count) : first_(first), count_(count) {}
  Element<T, true> operator[](int64_t index) const {
    Memory::instance().check_shared_index(index, count_);
    return Element<T, true>(first_ + index);
  }

 private:
  T* first_;
  size_t count_;
};

}  // namespace host_cuda

// What g++'s -fsanitize=signed-integer-overflow,float-cast-overflow calls.
#define HOST_CUDA_UNDEFINED(name, what)                                      \
  extern "C" void __ubsan_handle_##name(void* place, uintptr_t, uintptr_t) { \
    host_cuda::Memory::instance().report_undefined(what, place);             \
  }
HOST_CUDA_UNDEFINED(add_overflow, "a sum overflows")
HOST_CUDA_UNDEFINED(sub_overflow, "a difference overflows")
HOST_CUDA_UNDEFINED(mul_overflow, "a product overflows")
HOST_CUDA_UNDEFINED(divrem_overflow, "a quotient overflows")
extern "C" void __ubsan_handle_negate_overflow(void* place, uintptr_t) {
  host_cuda::Memory::instance().report_undefined("a negated number overflows", place);
}
extern "C" void __ubsan_handle_float_cast_overflow(void* place, uintptr_t) {
  host_cuda::Memory::instance().report_undefined("a float does not fit an integer", place);
}

extern "C" void host_cuda_allow(const void* begin, size_t bytes) {
  host_cuda::Memory::instance().allow(begin, bytes);
}
extern "C" void host_cuda_forbid(const void* begin) { host_cuda::Memory::instance().forbid(begin); }
extern "C" void host_cuda_forget() { host_cuda::Memory::instance().forget(); }
extern "C" const char* host_cuda_fault() { return host_cuda::Memory::instance().fault().c_str(); }
// Of reads, then of writes: sectors touched, and the least.
extern "C" void host_cuda_sectors(int64_t* numbers) {
  const host_cuda::Memory& memory = host_cuda::Memory::instance();
  numbers[0] = memory.reads().touched;
  numbers[1] = memory.reads().least;
  numbers[2] = memory.writes().touched;
  numbers[3] = memory.writes().least;
}
