// A library that exports GetPjrtApi, of a version of the interface that nobody knows.
#include "flashlight/pjrt/api.h"

extern "C" const flashlight::pjrt::Api* GetPjrtApi() {
  static flashlight::pjrt::Api api{};
  api.head.size = sizeof api;
  api.version = {{sizeof api.version}, 9, 3};
  return &api;
}
