// Weights in an archive: the bytes of each storage once, and for each name how it lies in one.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "composit/interchange/pt2/format.h"
#include "composit/io/log.h"
#include "composit/io/zip_write.h"
#include "composit/ir/array.h"

namespace composit::pt2 {

class Storages {
 public:
  // Entries are "FOLDER/PREFIX0", …
  Storages(std::string folder, std::string prefix)
      : folder_(std::move(folder)), prefix_(std::move(prefix)) {}

  // Arrays in the same memory share an entry. UserError for one that is lazily conjugated.
  void add(const std::string& name, const Array& array, bool is_parameter, bool requires_grad);
  uint64_t bytes() const;
  // The entries, and the table of names.
  void write(const std::string& root, const std::string& table, io::ZipWriter& archive,
             Progress& progress) const;

 private:
  std::string folder_, prefix_;
  std::map<std::pair<const std::byte*, int64_t>, size_t> entries_;  // by address and extent
  std::vector<Array> arrays_;                                       // one per entry
  Json names_ = Json::object();
};

// The bytes of an array from its first element to its last.
uint64_t stored_size(const Array& array);

}  // namespace composit::pt2
