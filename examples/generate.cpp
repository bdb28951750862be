// Writes what the cpp and cuda backends make, for reading: the programs of examples/generated.
//
//   generate_examples FOLDER            writes them
//   generate_examples --check FOLDER    compares with what is there; prints what differs
#include "examples/generated_program.h"

int main(int argc, char** argv) {
  return examples::generate(argc, argv, {}, [] { return examples::programs(); });
}
