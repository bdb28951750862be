// Calls written as text, in rows' `samples` and `bad`.
//
//   for (const std::string& text : split_samples("f32[2,3] f32[3] 2 | i64[4]<3 2.5"))
//     infer(operation, parse_sample(schema, text).call);
//
// Calls are separated by `|`, arguments by spaces, in the order of the schema; trailing ones may be
// left out. A tensor is a dtype (f16 bf16 f32 f64 c64 c128 i8 i16 i32 i64 u8 bool) with sizes, and
// optionally what its elements are:
//
// ```text
//   f32[2,3]            random from -2 to 2, away from 0; integers from -5 to 5
//   =0.1..5             random in that range
//   <n                  indices from 0 to n - 1;   =distinct<n  without repetition along any axis
//   =[1,2,nan]          these elements
//   =nan                random with a NaN among them
//   =mask               random bools, at least one true in each row
// ```
//
// Lists of tensors and of numbers are in brackets without spaces: [f32[2],None,f32[3]], [1,2].
// Everything else is as in Python: 2, 2.5, 1e-05, True, None, 'text', float32.
// The text of a bad call ends with `: ` and a fragment of the expected message.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/array.h"
#include "composit/op/call.h"

namespace composit {

// A call, and values for its tensors.
struct SampleCall {
  std::string text;           // as written
  std::string message;        // the error of a bad sample
  Call call;                  // its tensors are inputs named after the arguments
  std::vector<Array> values;  // per place of Call::tensors(); undefined where there is none
};

// `floats`: what float32 stands for, so that a sample can be run in float64. The same text gives
// the same values. InternalError for text that cannot be read. A bad call may fail while it is
// made: its UserError is thrown by `parse_sample`.
std::vector<std::string> split_samples(std::string_view text);
SampleCall parse_sample(const Schema& schema, std::string_view text, DType floats = DType::float32);
// A bad sample as the call and its message.
std::pair<std::string, std::string> split_message(std::string_view text);

}  // namespace composit
