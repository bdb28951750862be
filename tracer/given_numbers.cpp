#include "tracer/given_numbers.h"

#include "composit/ir/error.h"
#include "tracer/recorder.h"
#include "tracer/trace_scope.h"

namespace flashlight::tracer {

std::optional<RecordId> Recorder::last_read() const {
  if (recording_->records.size() == 0) return std::nullopt;
  const RecordId last = recording_->records.size() - 1;
  const Record& record = recording_->records[last];
  static const composit::Symbol read("aten::_local_scalar_dense");
  const bool reads = record.kind == RecordKind::op && record.info->name == read;
  return reads && record.expected != kNone ? std::optional(last) : std::nullopt;
}

namespace {

Recorder& recorder_here() {
  Recorder* recorder = innermost_recorder();
  COMPOSIT_ASSERT(recorder != nullptr && !recorder->finished(), "no scope follows numbers here");
  return *recorder;
}

}  // namespace

bool follows_numbers() {
  const Recorder* recorder = innermost_recorder();
  return recorder != nullptr && recorder->follows_numbers();
}

RecordId record_count() { return recorder_here().record_count(); }

std::optional<RecordId> last_read() { return recorder_here().last_read(); }

void give_numbers(std::vector<GivenNumber> numbers) { recorder_here().give(std::move(numbers)); }

}  // namespace flashlight::tracer
