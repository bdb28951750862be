// The times of a call's kernels.
//
//   const Profile profile = compiled.profile(inputs);
//   std::cout << table(profile, 236.0);        // GFLOP/s that the machine can do
//   std::ofstream("trace.json") << chrome_trace(profile);
#pragma once

#include "flashlight/runtime/profile.hpp"

namespace flashlight {

using fl::chrome_trace;
using fl::Profile;
using fl::table;
using fl::TimedKernel;

namespace mosaic {  // whose kernels they are most often of
using fl::chrome_trace;
using fl::Profile;
using fl::table;
using fl::TimedKernel;
}  // namespace mosaic

}  // namespace flashlight
