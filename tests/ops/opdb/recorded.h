// The calls that dump.py has written: those of torch's operator database with torch's answers.
//
//   const Recorded recorded = read_recorded(folder);
//   for (const RecordedCall& call : recorded.calls) infer(*call.operation, call.call);
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "composit/op/call.h"
#include "composit/ops/operations.h"

namespace composit::opdb {

struct RecordedCall {
  const Operation* operation;
  std::string name;           // as called; of `operation` or another one of the same meaning
  std::string code;           // the call in Python
  Call call;                  // its tensors are inputs named after the arguments
  std::vector<Array> values;  // per place of Call::tensors(); undefined where there is none

  std::vector<Array> results;                    // undefined where torch returns no tensor
  std::optional<std::vector<std::string>> meta;  // of the Meta backend: "float32[2, 3]" or ""
  // Absent where torch has no derivative; undefined where nothing flows.
  std::vector<Array> cotangents;  // per result
  std::vector<Array> gradients;   // per place of Call::tensors()
};

// One of torch's operators in the database.
struct Entry {
  std::string name;
  bool differentiable;
  size_t samples;
  std::vector<size_t> calls;       // numbers in `Recorded::calls`
  std::vector<std::string> holes;  // operators that nothing was compared for, and why
};

struct Recorded {
  std::vector<RecordedCall> calls;
  std::vector<Entry> entries;
};

// UserError for files that cannot be read, or for arguments that do not fit a row's schema.
Recorded read_recorded(const std::filesystem::path& folder);

}  // namespace composit::opdb
