#include "flashlight/mosaic/runner.h"

#include <utility>

#include "flashlight/mosaic/emit.h"
#include "flashlight/runtime/arena.hpp"

namespace flashlight::mosaic {
namespace {

constexpr int64_t kAlignment = 64;

class LibraryRunner : public Runner {
 public:
  LibraryRunner(const toolchain::Library& library, const Source& source, PreparedBytes prepared,
                int threads)
      : library_(library),
        prepare_(library.symbol<Prepare>(source.prepare_name)),
        run_(library.symbol<Run>(source.run_name)),
        prepared_(prepared),
        threads_(threads) {}

  bool take(const PreparedList& /*others*/, std::vector<PreparedMemory>& memory) const override {
    memory.resize(1);
    return false;
  }
  const char* prepare(const std::vector<const void*>& weights,
                      std::vector<PreparedMemory>& memory) const override {
    memory[0].first = allocate_together({prepared_.all})[0];
    const char* error = prepare_(weights.data(), memory[0].first.get(), threads_);
    fl::give_back(memory[0].first.get() + prepared_.stay, prepared_.all - prepared_.stay);
    return error;
  }
  const char* run(const package::Pointers& at, const Prepared& prepared, std::byte* arena,
                  int64_t* times) const override {
    return run_(at.arguments.data(), at.weights.data(), at.results.data(),
                prepared.memory[0].first.get(), arena, at.generator, times, threads_);
  }

 private:
  using Prepare = const char*(const void* const*, void*, int);
  using Run = const char*(const void* const*, const void* const*, void* const*, const void*, void*,
                          void*, int64_t*, int);
  toolchain::Library library_;
  Prepare* prepare_;
  Run* run_;
  PreparedBytes prepared_;
  int threads_;
};

}  // namespace

std::vector<std::shared_ptr<std::byte>> allocate_together(const std::vector<int64_t>& bytes) {
  int64_t all = 0;
  std::vector<int64_t> offsets;
  for (const int64_t one : bytes) {
    offsets.push_back(all);
    all += (one + kAlignment - 1) / kAlignment * kAlignment;
  }
  const std::shared_ptr<std::byte[]> memory = fl::allocate(static_cast<size_t>(all));
  std::vector<std::shared_ptr<std::byte>> addresses;
  for (const int64_t offset : offsets) addresses.emplace_back(memory, memory.get() + offset);
  return addresses;
}

std::shared_ptr<const Runner> library_runner(const toolchain::Library& library,
                                             const Source& source, PreparedBytes prepared,
                                             int threads) {
  return std::make_shared<const LibraryRunner>(library, source, prepared, threads);
}

}  // namespace flashlight::mosaic
