// Runs CUDA kernels on the host, so that their values are tested without a GPU.
//
// Each thread of a block is a fiber. Fibers run in shuffled order from barrier to barrier; a
// shuffle of a warp is two barriers of its fibers. Barriers that not all reach are an error. Blocks
// run one after the other, in shuffled order. Shared memory is poisoned before each; accesses to it
// and to global memory are watched (host_memory.h).
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#define FLASHLIGHT_CUDA_HOST
#define __global__ static
#define __device__
#define __forceinline__ inline
// NaN, or large integers, when a block begins.
#define FLASHLIGHT_SHARED(type, name, count) \
  const host_cuda::Shared<type> name(host_cuda::Block::instance().shared<type>(count), count)
#define __restrict__ __restrict

using cudaError_t = int;
using cudaStream_t = void*;
constexpr int cudaSuccess = 0, cudaErrorAssert = 710, cudaErrorIllegalInstruction = 715;
constexpr int cudaErrorStreamCaptureUnsupported = 900;
constexpr int cudaMemcpyDeviceToDevice = 0, cudaMemcpyDeviceToHost = 0, cudaMemcpyHostToDevice = 0;

namespace host_cuda {

// What was sent to a stream while it is captured.
using Work = std::vector<std::function<cudaError_t()>>;
inline Work* capturing = nullptr;

inline cudaError_t send(const std::function<cudaError_t()>& work) {
  if (capturing == nullptr) return work();
  capturing->push_back(work);
  return cudaSuccess;
}

}  // namespace host_cuda

inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, int, cudaStream_t) {
  return host_cuda::send([=] { return std::memmove(to, from, bytes), cudaSuccess; });
}
inline cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t) {
  return host_cuda::send([=] { return std::memset(memory, value, bytes), cudaSuccess; });
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return host_cuda::capturing == nullptr ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}

using cudaGraph_t = host_cuda::Work*;
using cudaGraphExec_t = host_cuda::Work*;
constexpr int cudaStreamCaptureModeThreadLocal = 1;
inline cudaError_t cudaStreamBeginCapture(cudaStream_t, int) {
  host_cuda::capturing = new host_cuda::Work();
  return cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  *graph = std::exchange(host_cuda::capturing, nullptr);
  return cudaSuccess;
}
inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph,
                                                 unsigned long long) {
  *made = new host_cuda::Work(*graph);
  return cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return cudaGraphDestroy(graph); }
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
  for (const auto& work : *graph)
    if (const cudaError_t error = work(); error != cudaSuccess) return error;
  return cudaSuccess;
}
struct Coordinate {
  unsigned x = 0, y = 0, z = 0;
};
inline Coordinate threadIdx, blockIdx, blockDim, gridDim;

namespace host_cuda {

struct Trap {};
void end_barrier();  // of a block
void end_block();

class Block {
 public:
  static constexpr int kThreads = 256;

  static Block& instance() {
    static Block block;
    return block;
  }

  void run(const std::function<void()>& kernel) {
    kernel_ = &kernel;
    trapped_ = false;
    std::memset(shared_, 0xff, sizeof shared_);
    for (int i = 0; i < kThreads; ++i) start(i);
    while (step()) {
    }
    end_block();
  }
  bool trapped() const { return trapped_; }

  enum Wait { none, warp, block, ended };
  void wait(Wait what) {
    Fiber& fiber = fibers_[current_];
    fiber.wait = what;
    swapcontext(&fiber.context, &scheduler_);
    threadIdx.x = static_cast<unsigned>(current_);
  }
  char* slot(int thread) { return slots_[thread]; }
  template <class T>
  T* shared(size_t count) {
    if (count * sizeof(T) > sizeof shared_) std::abort();
    return reinterpret_cast<T*>(shared_);
  }
  int current() const { return current_; }
  std::mt19937& order() { return order_; }

 private:
  struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(64 << 10);
    Wait wait = none;
  };

  static void enter() {
    Block& block = instance();
    try {
      (*block.kernel_)();
    } catch (const Trap&) {
      block.trapped_ = true;
    }
    block.fibers_[block.current_].wait = ended;
    setcontext(&block.scheduler_);
  }

  void start(int i) {
    Fiber& fiber = fibers_[i];
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &Block::enter, 0);
    fiber.wait = none;
  }

  // Runs all fibers that do not wait, then opens barriers; false if all have ended.
  bool step() {
    std::vector<int> ready;
    for (int i = 0; i < kThreads; ++i)
      if (fibers_[i].wait == none) ready.push_back(i);
    std::shuffle(ready.begin(), ready.end(), order_);
    for (const int i : ready) {
      current_ = i;
      threadIdx.x = static_cast<unsigned>(i);
      swapcontext(&scheduler_, &fibers_[i].context);
    }
    if (trapped_) return false;
    bool opened = false;
    for (int first = 0; first < kThreads; first += 32)
      opened = open(first, first + 32, warp) || opened;
    if (open(0, kThreads, block)) {
      end_barrier();
      opened = true;
    }
    const bool all_ended = std::all_of(std::begin(fibers_), std::end(fibers_),
                                       [](const Fiber& one) { return one.wait == ended; });
    if (!opened && !all_ended) {
      std::fprintf(stderr, "a barrier that not all threads reach\n");
      std::abort();
    }
    return opened;
  }

  // Lets fibers go on if all of them wait at such a barrier.
  bool open(int first, int last, Wait barrier) {
    for (int i = first; i < last; ++i)
      if (fibers_[i].wait != barrier) return false;
    for (int i = first; i < last; ++i) fibers_[i].wait = none;
    return true;
  }

  const std::function<void()>* kernel_ = nullptr;
  Fiber fibers_[kThreads];
  char slots_[kThreads][16];
  alignas(16) char shared_[4096];
  ucontext_t scheduler_;
  int current_ = 0;
  bool trapped_ = false;
  std::mt19937 order_{1};
};

}  // namespace host_cuda

#include "host_memory.h"

template <class T>
cudaError_t cudaGetSymbolAddress(void** memory, const T& symbol) {
  *memory = const_cast<void*>(static_cast<const void*>(&symbol));
  host_cuda::Memory::instance().allow(*memory, sizeof symbol);
  return cudaSuccess;
}

inline void host_cuda::end_barrier() { Memory::instance().end_barrier(); }
inline void host_cuda::end_block() { Memory::instance().end_block(); }

inline void __syncthreads() { host_cuda::Block::instance().wait(host_cuda::Block::block); }
[[noreturn]] inline void __trap() { throw host_cuda::Trap(); }

template <class T>
T __shfl_down_sync(unsigned, T value, int offset) {
  host_cuda::Block& block = host_cuda::Block::instance();
  const int thread = block.current(), lane = thread % 32;
  std::memcpy(block.slot(thread), &value, sizeof value);
  block.wait(host_cuda::Block::warp);
  T other = value;
  if (lane + offset < 32) std::memcpy(&other, block.slot(thread + offset), sizeof other);
  block.wait(host_cuda::Block::warp);
  return other;
}

#include "flashlight_cuda.cuh"

namespace fl {

template <class... Parameters, class... Arguments>
cudaError_t run(void (*kernel)(Parameters...), Grid grid, Arguments... arguments) {
  host_cuda::Block& block = host_cuda::Block::instance();
  blockDim = {kBlockThreads, 1, 1};
  gridDim = {static_cast<unsigned>(grid.blocks), 1, 1};
  std::vector<unsigned> order(static_cast<size_t>(grid.blocks));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<unsigned>(i);
  std::shuffle(order.begin(), order.end(), block.order());
  host_cuda::Memory::instance().begin_kernel();
  for (const unsigned i : order) {
    blockIdx.x = i;
    block.run([&] { kernel(arguments...); });
    if (block.trapped()) return cudaErrorIllegalInstruction;
  }
  return cudaSuccess;
}
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), Grid grid, cudaStream_t, Arguments... arguments) {
  return host_cuda::send([=] { return run(kernel, grid, arguments...); });
}

}  // namespace fl
