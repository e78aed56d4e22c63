// Arrow C stream -> Columns. The structs are those of the Arrow specification ("The Arrow C data
// interface", "The Arrow C stream interface"): names and layout are fixed there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "table.h"

extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
}

namespace arboost {

struct ArrowImport {
  std::vector<std::string> names, formats;  // of all columns; formats as the specification has them
  std::vector<std::size_t> unsupported;  // columns that are not numbers; if any, nothing was read
  bool is_table = false;                 // or a single column
  Columns table;
};

// Takes the stream over and reads it to its end. A stream of structs is a table, any other one a
// single column. Throws std::invalid_argument where the stream breaks the specification.
ArrowImport import_arrow(ArrowArrayStream& stream);

}  // namespace arboost
