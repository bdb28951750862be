// A folder of files that are costly to make, each under the hash of all that it is made of.
//
//   const Cache cache = Cache::of_user();
//   if (auto object = cache.find(key, ".o")) return *object;
//   const BuildFolder folder(cache);
//   return cache.store(key, ".o", make_object(folder.path()));
//
// Any number of threads and processes may use one folder at once: a file appears whole or not at
// all. Every file carries a seal, its key and the hash of its content, so that one that was cut
// short or put there by another program is noticed, and made again.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "composit/ir/hash.h"

namespace flashlight::toolchain {

class Cache {
 public:
  // Makes the folder. Throws UserError if it cannot be made or written.
  explicit Cache(const std::filesystem::path& folder);

  // $FLASHLIGHT_CACHE, else $XDG_CACHE_HOME/flashlight, else ~/.cache/flashlight. If that cannot be
  // written: a folder that lives as long as this process, with a warning.
  static Cache of_user();

  const std::filesystem::path& folder() const { return folder_; }

  // The file of this key, counted as used now.
  std::optional<std::filesystem::path> find(const composit::Hash& key,
                                            const std::string& extension) const;
  // Copies `file`, which is in a BuildFolder of this cache, and returns the copy. The seal follows
  // the content in it; linkers and dlopen() do not look there.
  std::filesystem::path store(const composit::Hash& key, const std::string& extension,
                              const std::filesystem::path& file) const;

  // Removes the files that were used longest ago, until at most `bytes` are left, and build folders
  // older than a day: those of killed processes, and the sources of failed builds.
  void trim(uint64_t bytes) const;
  // The same with FLASHLIGHT_CACHE_SIZE, at most once an hour for all processes together.
  void trim_now_and_then() const;

 private:
  friend class BuildFolder;
  std::filesystem::path files() const { return folder_ / "files"; }
  std::filesystem::path builds() const { return folder_ / "builds"; }
  void remove_old_builds() const;

  std::filesystem::path folder_;
};

// A new folder inside the cache to build in, removed at the end of its life.
class BuildFolder {
 public:
  explicit BuildFolder(const Cache& cache);
  ~BuildFolder();
  BuildFolder(const BuildFolder&) = delete;
  BuildFolder& operator=(const BuildFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void keep() { kept_ = true; }  // for a day or more; any thread may ask for it

 private:
  std::filesystem::path path_;
  std::atomic<bool> kept_ = false;
};

// "2G" is 2 * 1024^3; K and M likewise. Throws UserError for anything else.
uint64_t parse_bytes(const std::string& text);

}  // namespace flashlight::toolchain
