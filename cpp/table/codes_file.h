// A binned table in a file that describes itself.
//
//   rows          codes of all stored columns, row by row
//   padding
//   description   columns, edges, layout; a checksum of each window of rows
//   end           a mark, the offset of the description, its size and checksum
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/parallel.h"
#include "table/codes.h"
#include "table/stored_rows.h"

namespace arboost {

class CodesWriter {
 public:
  // Writes to a file from its begin on; rows are read in windows of window_rows later.
  CodesWriter(int descriptor, std::size_t window_rows);

  // Appends rows in memory. All parts have the same edges and layout, and no sparse columns. Throws
  // std::system_error where the file cannot grow.
  void append(const Codes& part);

  // The table of all parts, of which there is one at least. Ends the writing.
  Codes finish();

 private:
  void add_to_checksums(const std::uint8_t* rows, std::size_t n);

  std::shared_ptr<CodesFile> file_;
  std::size_t window_rows_;
  Codes all_;
  bool has_layout_ = false;
  std::vector<std::uint64_t> checksums_;  // of the windows
};

// The table of a finished file. Throws std::invalid_argument where the file is not whole, or has
// codes without a bin: whoever can write the file cannot make a fit write out of bounds. The file
// may not change later.
Codes open_codes(int descriptor, Team& team);

}  // namespace arboost
