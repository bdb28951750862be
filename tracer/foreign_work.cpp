// The part of the recorder that handles work which it cannot record: work of other threads, and
// undeclared writes of foreign operators.
#include "composit/ir/error.h"
#include "tracer/convert.h"
#include "tracer/recorder.h"

namespace flashlight::tracer {
namespace {

constexpr const char* kAdvice =
    "; no replay would repeat it: do this work on the thread that is captured";

}  // namespace

void Recorder::expect_no_foreign_work() {
  for (const ForeignThreads::Access& access : foreign_->take_news()) {
    const Aliasing::Memory memory = aliasing_.memory(access.storage);
    const bool own = memory == Aliasing::Memory::inside;
    if (own || (access.writes && memory != Aliasing::Memory::unknown))
      throw composit::UserError("[trace] " + access.op->name.str() + " on thread " + access.thread +
                                (access.writes ? " writes" : " reads") +
                                (own ? " a value of the scope" : " a tensor that the scope uses") +
                                kAdvice);
    foreign_read_ = foreign_read_ || memory == Aliasing::Memory::argument ||
                    memory == Aliasing::Memory::constant;
  }
}

// Memory of the scope's own: no other thread has a reason to look at it now.
bool Recorder::is_own(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return false;
  std::lock_guard lock(mutex_);
  if (finished()) return false;
  const Aliasing::Memory memory =
      aliasing_.memory(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
  return memory == Aliasing::Memory::inside || memory == Aliasing::Memory::argument;
}

// In an excerpt, what a thread made of data of its own comes in like all from outside.
void Recorder::expect_not_foreign(const at::Tensor& tensor) const {
  if (options_.excerpt && !foreign_read_) return;
  const auto made = foreign_->maker_of(tensor);
  if (!made) return;
  throw composit::UserError("[trace] " + *current_op_ + ": an argument of sizes " +
                            c10::str(tensor.sizes()) + " was made by " + made->op->name.str() +
                            " on thread " + made->thread + kAdvice);
}

void Recorder::keep_contents(Pending& pending, c10::ArrayRef<c10::IValue> arguments) {
  pending.contents = std::make_shared<ArgumentContents>(*pending.info, arguments);
  if (!keeps_originals()) return;
  constexpr size_t kSmall = 64 * 1024;
  for (const c10::IValue& argument : arguments)
    for (const at::Tensor& tensor : tensors_of(argument))
      if (tensor.defined() && has_memory(tensor) && tensor.storage().nbytes() <= kSmall)
        keep_original(tensor);
}

void Recorder::note_observed_writes(Pending& pending) {
  if (pending.contents == nullptr) return;
  const auto contents = std::move(pending.contents);
  const std::vector<int64_t> changed = contents->changed();
  if (changed.empty()) return;
  pending.info = &pending.info->writing(changed);
  for (const int64_t argument : changed)
    recording_->remark(*current_op_ + " writes its argument '" +
                       pending.info->argument_names[static_cast<size_t>(argument)].str() +
                       "', which its schema does not declare");
  pending.joint.clear();
  pending.written.clear();
  pending.written_sizes.clear();
  pending.written_joined.clear();
  join_shared(pending, contents->arguments());
  if (!keeps_originals()) return;
  for (const at::Tensor& tensor : pending.written)
    if (aliasing_.is_untouched(tensor) &&
        originals_.count(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()) ==
            0)
      throw composit::UserError("[trace] " + *current_op_ +
                                " writes an argument that its schema does not mark, and what it "
                                "held before is lost: declare it, Tensor(a!)");
}

}  // namespace flashlight::tracer
