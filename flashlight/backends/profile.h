// The times of a call's kernels.
//
//   const Profile profile = compiled.profile(inputs);
//   std::cout << table(profile, 236.0);        // the machine's peak in GFLOP/s
//   std::ofstream("trace.json") << chrome_trace(profile);
#pragma once

#include "flashlight/runtime/profile.hpp"

namespace flashlight {

using fl::chrome_trace;
using fl::Profile;
using fl::table;
using fl::TimedKernel;

namespace mosaic {  // most often its kernels are timed
using fl::chrome_trace;
using fl::Profile;
using fl::table;
using fl::TimedKernel;
}  // namespace mosaic

}  // namespace flashlight
