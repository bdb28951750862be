// Which values of a program share memory: what a write in place changes besides the value it names.
//
//   Aliases aliases;
//   aliases.add_fresh("x");
//   aliases.add_view("row", "x");        // a part of x, or x in other sizes
//   aliases.add_same("y", "x");          // x itself under a further name
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "composit/op/schema.h"

namespace composit::pt2_read {

class Aliases {
 public:
  void add_fresh(const std::string& name) { places_[name] = {++last_, ++last_}; }
  void add_view(const std::string& name, const std::string& of) {
    places_[name] = {places_[of].memory, ++last_};
  }
  // A value that may share memory with what is there already.
  void join(const std::string& name, const std::string& of);
  void add_same(const std::string& name, const std::string& of) { places_[name] = places_[of]; }

  // The names that are the same value as `name`, itself among them; and those that show other
  // parts, or other forms, of its memory.
  std::vector<std::string> same_as(const std::string& name) const;
  std::vector<std::string> views_beside(const std::string& name) const;

 private:
  struct Place {
    int memory = 0, value = 0;
    bool operator==(const Place&) const = default;
  };
  std::map<std::string, Place> places_;
  int last_ = 0;
};

// Which arguments a result may share memory with: the first, where the schema says so; any, where
// torch does so though the schema does not.
enum class Shares { none, first, any };
Shares shared_arguments(const Schema& schema);

}  // namespace composit::pt2_read
