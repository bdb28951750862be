// Memory that the program was given a pointer to: by numpy(), DLPack, data_ptr. What it writes
// there passes no operator, so the content is compared around each operator that touches it.
//
//   HostMemory memory;                      // of this thread, until stop()
//   const auto id = memory.hand_out(x, begin, bytes, "numpy() at step.py:3 in step");
//   x.mul_(2);                              // UserError where the host wrote before
//   memory.release(id);                     // nobody has the pointer any more
//   memory.expect_unwritten();              // at the end of the program
//
// Nests: operators are compared with the memory of all that are around them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "composit/ir/hash.h"
#include "tracer/op_info.h"

namespace flashlight::tracer {

class HostMemory {
 public:
  HostMemory();
  ~HostMemory() { stop(); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // `bytes` bytes from the address `begin` on, where they lie in the storage of `tensor`; all of
  // the storage where `begin` is 0. Its number; 0 where the memory is another one (a copy) or
  // empty.
  uint64_t hand_out(const at::Tensor& tensor, uintptr_t begin, size_t bytes, std::string place);
  // `tensor` was made over memory of the host's (from_numpy), which may fill it until an operator
  // touches it.
  void take_in(const at::Tensor& tensor, std::string place);
  // On any thread.
  void release(uint64_t id);
  // UserError where the host wrote into memory that was handed out.
  void expect_unwritten();
  // The lines that were handed memory which an operator wrote while the host still had it: later
  // reads of the host give values that were not known when it was handed out.
  std::vector<std::string> rewritten();
  // On its own thread. It is told of no operators any more.
  void stop();

  // Called on this thread before and after the kernel, which consumes its arguments: pass the
  // result of `before_operator` to `after_operator`.
  static std::vector<c10::IValue> before_operator(const OpInfo& info,
                                                  c10::ArrayRef<c10::IValue> arguments);
  static void after_operator(c10::ArrayRef<c10::IValue> written);

 private:
  struct Piece {
    uint64_t id = 0;
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    uintptr_t begin = 0;
    size_t bytes = 0;
    std::string place;
    std::optional<composit::Hash> digest;  // none: the host may fill it
  };

  uint64_t add(const at::Tensor& tensor, uintptr_t begin, size_t bytes, std::string place);
  void compare(const Piece& piece);
  bool compare_touched(c10::ArrayRef<c10::IValue> arguments);
  void follow_touched(c10::ArrayRef<c10::IValue> arguments);
  template <class Visit>
  void for_each_touched(c10::ArrayRef<c10::IValue> arguments, Visit visit);
  void refuse();

  std::mutex mutex_;
  std::vector<Piece> pieces_;
  std::vector<std::string> rewritten_;
  std::optional<std::string> written_;  // the first place whose memory the host wrote
  uint64_t last_ = 0;
  bool stopped_ = false;
  HostMemory* outer_;
};

}  // namespace flashlight::tracer
