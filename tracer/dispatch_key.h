// The dispatch key the tracer lives on: above Autocast and Autograd, below Python's modes, and free
// in LibTorch 2.13.
#pragma once

#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>

namespace flashlight::tracer {

constexpr c10::DispatchKey kTraceKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

// Everything that comes after the tracer in the dispatcher's order.
constexpr c10::DispatchKeySet kBelowTraceKey(c10::DispatchKeySet::FULL_AFTER, kTraceKey);

}  // namespace flashlight::tracer
