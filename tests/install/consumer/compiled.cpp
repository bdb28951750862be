// Compiles a function while it runs, and calls it, without LibTorch.
#include <flashlight/toolchain/library.h>

#include <iostream>

int main() {
  using namespace flashlight::toolchain;
  const Sources sources{
      .units = {{"square.cpp", "extern \"C\" double square(double x) { return x * x; }\n"}}};
  const Library library = Library::load(sources, {.flags = {"-O3"}});
  const double nine = library.symbol<double(double)>("square")(3);
  std::cout << library.path() << ": " << nine << '\n';
  return nine == 9 ? 0 : 1;
}
