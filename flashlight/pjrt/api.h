// PJRT's C interface, by which XLA and other compilers are loaded as a shared library: what is used
// of it here.
//
// A library exports `GetPjrtApi`, which gives a table of functions. Each takes one struct, whose
// first member is its size, by which both sides know how much of it the other one knows; and gives
// an error, or null. The layout is that of version 0.113 (xla/pjrt/c/pjrt_c_api.h of OpenXLA);
// within version 0 members are only added at ends.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flashlight::pjrt {

inline constexpr int kMajor = 0;        // of the interface: others have other layouts
inline constexpr int kLeastMinor = 40;  // has all functions and members that are used

// Objects of the library.
struct Error;
struct Event;
struct Client;
struct Device;
struct Executable;
struct DeviceBuffer;

// What every struct begins with.
struct Head {
  size_t size;                 // of the struct
  void* extensions = nullptr;  // none
};

// Places in the table of functions.
enum class Function : size_t {
  error_destroy = 0,
  error_message = 1,
  plugin_initialize = 3,
  event_destroy = 5,
  event_await = 8,
  client_create = 10,
  client_destroy = 11,
  client_platform_name = 12,
  client_addressable_devices = 16,
  client_compile = 20,
  client_buffer_from_host_buffer = 22,
  loaded_executable_destroy = 50,
  loaded_executable_execute = 55,
  buffer_destroy = 58,
  buffer_to_host_buffer = 70
};
inline constexpr size_t kFunctions = 71;  // of the table that are used

// The version of the interface that a library was compiled with.
struct Version {
  Head head;
  int major, minor;
};

// The table. Its size says how many functions it has.
struct Api {
  Head head;
  Version version;
  void* functions[kFunctions];  // Error* (*)(Arguments*)
};

// Types of elements, by their numbers.
enum class ElementType : int {
  pred = 1,
  s8,
  s16,
  s32,
  s64,
  u8,
  u16,
  u32,
  u64,
  f16,
  f32,
  f64,
  bf16,
  c64,
  c128
};

struct ErrorDestroy {
  Head head;
  Error* error;
};
struct ErrorMessage {
  Head head;
  const Error* error;
  const char* message;  // given; no zero at its end
  size_t message_size;  // given
};
struct PluginInitialize {
  Head head;
};
struct EventArguments {  // of event_destroy and event_await
  Head head;
  Event* event;
};
struct ClientCreate {
  Head head;
  const void* options = nullptr;
  size_t option_count = 0;
  void *get = nullptr, *get_argument = nullptr, *put = nullptr, *put_argument = nullptr;
  Client* client = nullptr;  // given
  void *try_get = nullptr, *try_get_argument = nullptr;
};
struct ClientDestroy {
  Head head;
  Client* client;
};
struct ClientPlatformName {
  Head head;
  Client* client;
  const char* name;  // given
  size_t name_size;  // given
};
struct ClientAddressableDevices {
  Head head;
  Client* client;
  Device* const* devices;  // given
  size_t device_count;     // given
};
struct Program {
  Head head;
  const char* code;
  size_t code_size;
  const char* format;  // "mlir"
  size_t format_size;
};
struct ClientCompile {
  Head head;
  Client* client;
  const Program* program;
  const char* options;  // CompileOptionsProto
  size_t options_size;
  Executable* executable;  // given
};
struct ClientBufferFromHostBuffer {
  Head head;
  Client* client;
  const void* data;
  ElementType type;
  const int64_t* sizes;
  size_t size_count;
  const int64_t* strides = nullptr;  // row-major
  size_t stride_count = 0;
  int semantics = 0;  // the data are read during the call only
  Device* device;
  void* memory = nullptr;
  void* layout = nullptr;
  Event* done = nullptr;           // given
  DeviceBuffer* buffer = nullptr;  // given
};
struct ExecuteOptions {
  Head head;
  void *send = nullptr, *receive = nullptr;
  size_t send_count = 0, receive_count = 0;
  int launch = 0;
  const int64_t* not_donated = nullptr;
  size_t not_donated_count = 0;
  void* context = nullptr;
  const char* call_location = nullptr;
  size_t task_count = 0;
  int* tasks = nullptr;
  int64_t* incarnations = nullptr;
  void* slices = nullptr;
  bool row_major_for_callbacks = false;
  void* output_callbacks = nullptr;
  size_t output_callback_count = 0;
};
struct LoadedExecutableExecute {
  Head head;
  Executable* executable;
  ExecuteOptions* options;
  DeviceBuffer* const* const* arguments;  // by device
  size_t device_count;
  size_t argument_count;
  DeviceBuffer** const* results;  // by device; given
  Event** done;                   // by device; given
  Device* device = nullptr;
};
struct LoadedExecutableDestroy {
  Head head;
  Executable* executable;
};
struct BufferDestroy {
  Head head;
  DeviceBuffer* buffer;
};
// How elements lie in memory: the axes from the one whose elements are neighbours on.
struct Layout {
  Head head;
  Head tiled_head;
  const int64_t* minor_to_major;
  size_t axis_count;
  const int64_t* tile_sizes = nullptr;
  const size_t* tile_ranks = nullptr;
  size_t tile_count = 0;
  int kind = 0;  // tiled
};
struct BufferToHostBuffer {
  Head head;
  DeviceBuffer* buffer;
  Layout* layout;
  void* data;
  size_t data_size;
  Event* done;  // given
};

}  // namespace flashlight::pjrt
