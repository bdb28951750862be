// The library that captures, as the stub and Python see it: functions of C, to be called on the
// main thread.
#pragma once

#define FLASHLIGHT_EXPORTED extern "C" __attribute__((visibility("default")))

// `library`: the path of this library; `settings`: as in settings.h; `torch`: LibTorch's version.
FLASHLIGHT_EXPORTED void flashlight_attach(const char* library, const char* settings,
                                           const char* torch);
// The process ends without exit().
FLASHLIGHT_EXPORTED void flashlight_finish();

namespace flashlight::preload {

class Session;
// nullptr on other threads than the main one, and in other processes than the one it was made in.
Session* session_here();

// Runs hooks.py in the interpreter that this process has, if any; see python.cpp.
void install_python_hooks(const char* library);

}  // namespace flashlight::preload
