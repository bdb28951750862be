// The part of the runtime that code of the mosaic backend needs beside flashlight.hpp: teams of
// threads, packed products and convolutions, attention.
#pragma once

#include "flashlight/runtime/attention.hpp"
#include "flashlight/runtime/border.hpp"
#include "flashlight/runtime/compressed.hpp"
#include "flashlight/runtime/byte_rows.hpp"
#include "flashlight/runtime/bytes.hpp"
#include "flashlight/runtime/contraction.hpp"
#include "flashlight/runtime/depthwise.hpp"
#include "flashlight/runtime/lanes.hpp"
#include "flashlight/runtime/memory.hpp"
#include "flashlight/runtime/microkernel.hpp"
#include "flashlight/runtime/pack.hpp"
#include "flashlight/runtime/peak.hpp"
#include "flashlight/runtime/strassen.hpp"
#include "flashlight/runtime/team.hpp"
#include "flashlight/runtime/tiles.hpp"
#include "flashlight/runtime/times.hpp"
#include "flashlight/runtime/winograd.hpp"
#include "flashlight/runtime/winograd_points.hpp"

namespace fl {
class Generator;  // random.hpp, which programs that draw include
}  // namespace fl
