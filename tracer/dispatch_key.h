// The dispatch key the tracer lives on: above Autocast and Autograd, below Python's modes, and free
// in LibTorch 2.13.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace flashlight::tracer {

constexpr c10::DispatchKey kTraceKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

// Everything that comes after the tracer in the dispatcher's order.
constexpr c10::DispatchKeySet kBelowTraceKey(c10::DispatchKeySet::FULL_AFTER, kTraceKey);

// No scope and no autograd sees the operators that this thread calls while it stands.
struct Unseen {
  const c10::impl::ExcludeDispatchKeyGuard no_scope{kTraceKey};
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
};

}  // namespace flashlight::tracer
