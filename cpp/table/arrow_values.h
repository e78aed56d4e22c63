// Arrow arrays of strings, times, decimals and dictionaries -> converted values: the types that
// need more than a view.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "table/arrow.h"

namespace arboost {

// Throws std::invalid_argument: the stream breaks the specification.
[[noreturn]] void broken_stream(const std::string& what);
inline void require_arrow(bool holds, const char* what) {
  if (!holds) broken_stream(what);
}

// Parses a format string of the specification.
ArrowType arrow_type(const char* format);

// Throws unless the array's lengths and offsets are consistent.
void check_array(const ArrowArray* array);

// Rows [skip, skip + length) of an array of numbers as a piece of a column that begins at `row`.
Piece arrow_piece(const ArrowArray& array, Type type, std::int64_t skip, std::int64_t length,
                  std::size_t row);

// Converted values of one column that cannot be a view.
struct ArrowReader {
  explicit ArrowReader(const ArrowType& type, ParseDouble parse_double)
      : clock(type.tick), parse(parse_double) {}
  Clock clock;
  ParseDouble parse;
  std::vector<double> values;  // of all rows so far
};

// Appends rows [skip, skip + length) of an array to the column's text or to the reader's values.
void append_values(const ArrowArray& array, std::int64_t skip, std::int64_t length,
                   ArrowColumn& column, ArrowReader& reader);

}  // namespace arboost
