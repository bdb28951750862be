// Prints the names of all operations that have a row, other names of the same meaning included.
#include <iostream>

#include "composit/ops/operations.h"

int main() {
  for (const composit::Operation* operation : composit::all_operations()) {
    std::cout << operation->schema.name.str() << '\n';
    for (std::string_view other : operation->row.also) std::cout << other << '\n';
  }
}
