// Arrow C stream -> Columns. The structs are those of the Arrow specification ("The Arrow C data
// interface", "The Arrow C stream interface"): names and layout are fixed there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "table/columns.h"
#include "table/string_levels.h"
#include "table/times.h"

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

// Representation of an imported column.
enum class ArrowKind : std::uint8_t {
  number,       // zero-copy view
  time,         // seconds
  decimal,      // the nearest double
  text,         // indices of distinct strings
  unsupported,  // nested, or of an unknown type
};

// Value type of a column, parsed from its format string.
struct ArrowType {
  ArrowKind kind = ArrowKind::unsupported;
  Type stored = Type::null;  // numbers and ticks
  const char* unit = "";     // times: "datetime", "duration" or "time"
  Tick tick;                 // times
  int scale = 0;             // decimals: digits after the point
  std::size_t width = 0;     // decimals and strings of one length: bytes of a value
  bool is_wide = false;      // strings: offsets of 64 bits
  bool is_view = false;      // strings: 16 bytes for each, and buffers that these point into
};

struct ArrowColumn {
  std::string name, format;  // the format of the values, those of the dictionary where there is one
  ArrowType type;
  Type index = Type::null;  // where there is a dictionary, the type of its indices
  bool is_inexact = false;  // two distinct times round to one double
  bool is_ordered = false;  // the dictionary's entries ascend
  Text text;                // where the kind is text
  // Distinct dictionaries of the batches, where these are ordered: strings or numbers.
  std::vector<std::vector<std::string>> text_orders;
  std::vector<std::vector<double>> number_orders;
};

struct ArrowImport {
  std::vector<ArrowColumn> columns;
  bool is_complete = true;  // if some columns are unsupported, nothing was read
  bool is_table = false;    // or a single column
  Columns table;            // columns of text have no values here
};

// A decimal number in ASCII -> the nearest double. (The standard library's from_chars is not
// everywhere, and strtod depends on the locale.)
using ParseDouble = double (*)(const char*);

// Takes ownership of the stream and reads it to its end. A stream of structs becomes a table, any
// other stream a single column. Throws std::invalid_argument where the stream breaks the
// specification.
ArrowImport import_arrow(ArrowArrayStream& stream, ParseDouble parse);

}  // namespace arboost
