// Follows numbers from where a program reads them of tensors to where it gives them to operators:
// the step count of an optimizer, which becomes the bias corrections of its update.
//
//   if (follows_numbers()) {           // a host language whose numbers can be watched asks
//     float step = t.item();           // runs the operator; last_read() is its record
//     x.mul_(1 - pow(0.9, step));      // records from record_count() before to that after
//     give_numbers({{before, after, value, "1.0 - pow(0.9, read_7)"}});   // at the end of the run
//   }
//
// What is given is believed to be all that the program made of those reads. A read that decides
// anything, that the program keeps or prints, must not be in any formula: it stays a guard.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tracer/recording.h"

namespace flashlight::tracer {

// All are about the innermost scope around the running code.
// Does it want to know? No scope: false.
bool follows_numbers();
// The number of records so far.
RecordId record_count();
// The record that was made last, if it reads a number that may be followed.
std::optional<RecordId> last_read();
void give_numbers(std::vector<GivenNumber> numbers);

}  // namespace flashlight::tracer
