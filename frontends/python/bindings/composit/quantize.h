// Options of `quantize` as Python's keywords.
#pragma once

#include <pybind11/pybind11.h>

#include "composit/quantize/quantize.h"

namespace composit::python {

// UserError for a keyword that there is not. `examples` are left to the caller.
QuantizeOptions quantize_options(const pybind11::dict& keywords);

}  // namespace composit::python
