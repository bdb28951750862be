// Files as this folder needs them. Every failure is a UserError that names the file and what the
// system said.
//
//   OutputFile file("graph.txt");     // what stood at that path stays there...
//   file.write("hello\n");
//   file.commit();                    // ...until here; without commit(), nothing has happened
//
//   auto mapped = MappedFile::open("weights.safetensors");
//   Array array(type, mapped, mapped->data());
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace composit::io {

// "[OPERATION] FILE: TEXT OF errno"
[[noreturn]] void throw_system_error(std::string_view operation, const std::filesystem::path& path,
                                     int error);

// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  int close();  // 0, or errno

 private:
  int release();
  int number_;
};

// Writes beside `path` and takes its place on commit(), so that a reader never sees half a file and
// a mapping of the old file stays valid.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void sync();  // what was written survives a power failure
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path partial_;  // empty after commit()
  Descriptor descriptor_;
};

// A whole file in memory, read on demand. Writing to it is allowed and private to this process.
class MappedFile : public std::enable_shared_from_this<MappedFile> {
 public:
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  // The bytes that begin at `data`, inside the file, for an owner of their own: when it lets them
  // go, the pages that hold nothing else leave memory, and what was written to them is lost. Those
  // who share the file keep the rest.
  std::shared_ptr<const std::byte> part(const std::byte* data, size_t size) const;
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}
  const std::byte* data_;
  size_t size_;
};

// Holds on to a folder, so that one can tell whether another has taken its place.
class OpenFolder {
 public:
  explicit OpenFolder(const std::filesystem::path& folder);
  bool is_at(const std::filesystem::path& folder) const;

 private:
  Descriptor descriptor_;
};

// Makes what was written, renamed or removed in `folder` survive a power failure.
void sync_folder(const std::filesystem::path& folder);

}  // namespace composit::io
