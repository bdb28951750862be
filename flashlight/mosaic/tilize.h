// Which layouts a program's values get.
//
//   tilize(routine, is_frozen);
//
// A product wants the index that its terms run along innermost in what it reads by rows, and its
// columns innermost in what it writes; what works element by element hands wishes on. The most
// multiplications win. Padding becomes zeros around a value, so that a convolution knows no
// borders; rows that would meet in the same sets of a cache are set apart.
#pragma once

#include <functional>
#include <map>

#include "flashlight/cpp/program.h"
#include "flashlight/mosaic/choices.h"
#include "flashlight/mosaic/layout.h"

namespace flashlight::mosaic {

// The layouts of values that are not row-major and tight. Nests that copy what the caller gave into
// another layout are inserted. `choices`: by value, an order and distance of rows that it gets in
// any case; UserError where it cannot.
std::map<size_t, Layout> tilize(cpp::Routine& routine,
                                const std::function<bool(size_t value)>& is_frozen,
                                const std::map<size_t, Choice>& choices = {});

}  // namespace flashlight::mosaic
