// What code of the mosaic backend needs beside flashlight.hpp: teams of threads, packed products
// and convolutions, attention.
#pragma once

#include "flashlight/mosaic/runtime/attention.hpp"
#include "flashlight/mosaic/runtime/border.hpp"
#include "flashlight/mosaic/runtime/contraction.hpp"
#include "flashlight/mosaic/runtime/depthwise.hpp"
#include "flashlight/mosaic/runtime/lanes.hpp"
#include "flashlight/mosaic/runtime/memory.hpp"
#include "flashlight/mosaic/runtime/microkernel.hpp"
#include "flashlight/mosaic/runtime/pack.hpp"
#include "flashlight/mosaic/runtime/peak.hpp"
#include "flashlight/mosaic/runtime/strassen.hpp"
#include "flashlight/mosaic/runtime/team.hpp"
#include "flashlight/mosaic/runtime/tiles.hpp"
#include "flashlight/mosaic/runtime/times.hpp"
#include "flashlight/mosaic/runtime/winograd.hpp"
#include "flashlight/mosaic/runtime/winograd_points.hpp"
