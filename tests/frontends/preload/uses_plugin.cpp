// Opens a library that lies in its RUNPATH by a bare name.
#include <dlfcn.h>

#include <cstdio>

int main() {
  void* plugin = dlopen("libflashlight_test_plugin.so", RTLD_NOW);
  if (plugin == nullptr) {
    std::printf("no plugin: %s\n", dlerror());
    return 1;
  }
  std::printf("answer %d\n", reinterpret_cast<int (*)()>(dlsym(plugin, "answer"))());
  return 0;
}
