// The header that code of this backend includes. It includes that of the cpp backend.
//
//   sources.headers.push_back({cpp::kRuntimeName, cpp::runtime_text()});
//   sources.headers.push_back({mosaic::kRuntimeName, mosaic::runtime_text()});
#pragma once

#include <string>

namespace flashlight::mosaic {

inline constexpr const char* kRuntimeName = "flashlight_mosaic.hpp";
const std::string& runtime_text();

// The header of written programs that report on their kernels.
inline constexpr const char* kProfileName = "flashlight_profile.hpp";
const std::string& profile_text();

}  // namespace flashlight::mosaic
