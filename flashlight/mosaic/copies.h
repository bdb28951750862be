// Nests that copy a value into another one of the same type, and readers and writers of that one.
//
//   const ValueId copy = add_copy(routine, value, "is in blocks");
//   routine.steps.push_back(copying(routine, value, copy));
//   read_instead(nest, value, copy);
#pragma once

#include <string>

#include "flashlight/loops/program.h"
#include "flashlight/mosaic/ids.h"

namespace flashlight::mosaic {

// A temporary of the type and name of `value`; `kept`: why it is memory.
ValueId add_copy(loops::Routine& routine, ValueId value, const std::string& kept);
loops::Nest copying(const loops::Routine& routine, ValueId from, ValueId to);

// Loads and stores of `value` become those of `copy`.
void read_instead(loops::Nest& nest, ValueId value, ValueId copy);
void write_instead(loops::Nest& nest, ValueId value, ValueId copy);

// True if a statement with one store writes every element that there is and no domain limits it.
bool writes_all(const loops::Routine& routine, const loops::Statement& statement);

// All nests touch the copy of what is the caller's: it is made before the first one that reads an
// argument, and copied back behind the last one that touches a result. False where no nest touches
// it, or a call writes it.
bool touch_instead(loops::Routine& routine, ValueId value, ValueId copy);

}  // namespace flashlight::mosaic
