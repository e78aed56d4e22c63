// Arrow C stream -> column views. Buffers are not copied; the arrays live as long as the table.
// The interface does not tell the size of a buffer, so lengths and pointers are what can be
// checked.
#include "arrow.h"

#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace arboost {
namespace {

// Owns one of the three structs: released once, as the specification asks.
template <class Struct>
struct Owned : Struct {
  Owned() : Struct{} {}
  explicit Owned(Struct& source) : Struct(source) { source.release = nullptr; }
  ~Owned() {
    if (this->release != nullptr) this->release(this);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
};

[[noreturn]] void broken(const std::string& what) {
  throw std::invalid_argument("The Arrow stream that was given as a table is broken: " + what +
                              ". Export the table again, or pass it as NumPy arrays.");
}

void require(bool holds, const char* what) {
  if (!holds) broken(what);
}

std::optional<Type> type_of(const ArrowSchema& schema) {
  const std::string_view format = schema.format;
  if (schema.dictionary != nullptr || format.size() != 1) return std::nullopt;
  switch (format[0]) {
    case 'n':
      return Type::null;
    case 'b':
      return Type::bit;
    case 'c':
      return Type::int8;
    case 'C':
      return Type::uint8;
    case 's':
      return Type::int16;
    case 'S':
      return Type::uint16;
    case 'i':
      return Type::int32;
    case 'I':
      return Type::uint32;
    case 'l':
      return Type::int64;
    case 'L':
      return Type::uint64;
    case 'e':
      return Type::float16;
    case 'f':
      return Type::float32;
    case 'g':
      return Type::float64;
    default:
      return std::nullopt;
  }
}

void check_result(ArrowArrayStream& stream, int error) {
  if (error == 0) return;
  const char* text = stream.get_last_error == nullptr ? nullptr : stream.get_last_error(&stream);
  broken(text == nullptr ? "it reports error " + std::to_string(error) : text);
}

void describe(const ArrowSchema& field, ArrowImport& into) {
  require(field.format != nullptr, "a column has no format");
  const std::optional<Type> type = type_of(field);
  if (!type) into.unsupported.push_back(into.names.size());
  into.names.emplace_back(field.name == nullptr ? "" : field.name);
  into.formats.emplace_back(field.dictionary != nullptr ? "dictionary" : field.format);
  Column column;
  column.type = type.value_or(Type::null);
  column.stride = static_cast<std::ptrdiff_t>(item_size(column.type));
  into.table.columns.push_back(std::move(column));
}

void check_array(const ArrowArray* array) {
  require(array != nullptr, "an array is null");
  require(array->length >= 0 && array->offset >= 0 && array->null_count >= -1,
          "a length, offset or null count is negative");
  require(array->offset <= std::numeric_limits<std::int64_t>::max() - array->length,
          "an offset overflows");
}

// Appends rows [skip, skip + length) of the array to the column.
void add_piece(const ArrowArray* array, std::int64_t skip, std::int64_t length, std::size_t row,
               Column& column) {
  check_array(array);
  require(array->length - skip >= length, "a column is shorter than its table");
  Piece piece;
  piece.begin = row;
  piece.end = row + static_cast<std::size_t>(length);
  if (column.type != Type::null) {
    require(array->n_buffers == 2 && array->buffers != nullptr, "a column lacks its buffers");
    const auto first = static_cast<std::size_t>(array->offset + skip);
    const auto* values = static_cast<const std::byte*>(array->buffers[1]);
    require(values != nullptr, "a column lacks its values");
    piece.values = values + first * item_size(column.type);
    piece.first_bit = first;
    if (array->null_count != 0) {
      piece.valid = static_cast<const std::uint8_t*>(array->buffers[0]);
      piece.first_valid = first;
      require(piece.valid != nullptr || array->null_count == -1,
              "a column has null values but no validity bitmap");
    }
  }
  column.pieces.push_back(piece);
}

bool has_null_row(const ArrowArray& batch) {
  if (batch.null_count == 0 || batch.n_buffers < 1 || batch.buffers == nullptr) return false;
  const auto* valid = static_cast<const std::uint8_t*>(batch.buffers[0]);
  if (valid == nullptr) return false;
  for (std::int64_t i = batch.offset; i < batch.offset + batch.length; ++i)
    if ((valid[i / 8] >> (i % 8) & 1) == 0) return true;
  return false;
}

void add_batch(const ArrowArray& batch, bool is_table, Columns& table) {
  check_array(&batch);
  if (batch.length == 0) return;
  const std::size_t row = table.n_rows;
  if (is_table) {
    require(batch.n_children == static_cast<std::int64_t>(table.columns.size()),
            "a batch has another number of columns than the schema");
    require(batch.n_children == 0 || batch.children != nullptr, "a batch lacks its columns");
    require(!has_null_row(batch), "a whole row is null");
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      add_piece(batch.children[c], batch.offset, batch.length, row, table.columns[c]);
  } else {
    add_piece(&batch, 0, batch.length, row, table.columns[0]);
  }
  table.n_rows += static_cast<std::size_t>(batch.length);
}

}  // namespace

ArrowImport import_arrow(ArrowArrayStream& source) {
  require(source.release != nullptr, "it was read already");
  Owned<ArrowArrayStream> stream(source);
  require(stream.get_schema != nullptr && stream.get_next != nullptr, "its functions are null");
  Owned<ArrowSchema> schema;
  check_result(stream, stream.get_schema(&stream, &schema));
  require(schema.release != nullptr && schema.format != nullptr, "it has no schema");

  ArrowImport result;
  result.is_table = std::string_view(schema.format) == "+s";
  if (result.is_table) {
    require(schema.n_children == 0 || schema.children != nullptr, "its schema lacks its columns");
    for (std::int64_t c = 0; c < schema.n_children; ++c) {
      require(schema.children[c] != nullptr, "its schema lacks a column");
      describe(*schema.children[c], result);
    }
  } else {
    describe(schema, result);
  }
  if (!result.unsupported.empty()) return result;

  for (;;) {
    auto batch = std::make_shared<Owned<ArrowArray>>();
    check_result(stream, stream.get_next(&stream, batch.get()));
    if (batch->release == nullptr) return result;  // the end
    add_batch(*batch, result.is_table, result.table);
    result.table.owners.push_back(std::move(batch));
  }
}

}  // namespace arboost
