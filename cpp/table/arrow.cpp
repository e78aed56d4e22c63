// Arrow C stream -> column views. Buffers are not copied; the arrays live as long as the table. The
// interface carries no buffer sizes, so only lengths and null pointers can be checked. Linear in
// the number of arrays and of copied values; single-threaded.
#include "table/arrow.h"

#include <algorithm>
#include <array>
#include <charconv>  // integers of a format
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "table/arrow_values.h"

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

void check_result(ArrowArrayStream& stream, int error) {
  if (error == 0) return;
  const char* text = stream.get_last_error == nullptr ? nullptr : stream.get_last_error(&stream);
  broken_stream(text == nullptr ? "it reports error " + std::to_string(error) : text);
}

std::optional<Type> number_type(std::string_view format) {
  if (format.size() != 1) return std::nullopt;
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

bool is_index(Type type) {
  return type >= Type::int8 && type <= Type::uint64;
}

// "tsu:UTC", "tdD", "ttn", "tDm": kind of time (timestamp, date, time of day, duration), then its
// unit.
ArrowType time_type(std::string_view format) {
  const std::string_view kind = format.substr(0, 2);
  const char tick = format.size() > 2 ? format[2] : ' ';
  ArrowType type;
  type.kind = ArrowKind::time;
  type.stored = Type::int64;
  type.unit = kind == "tD" ? "duration" : kind == "tt" ? "time" : "datetime";
  if (kind == "td") {
    if (tick == 'D') {
      type.stored = Type::int32;
      type.tick.seconds = 24 * 60 * 60;
      return type;
    }
  } else if (kind != "ts" && kind != "tt" && kind != "tD") {
    return {};
  }
  const std::size_t power = std::string_view("smun").find(tick);
  if (power == std::string_view::npos) return {};
  for (std::size_t i = 0; i < power; ++i) type.tick.per_second *= 1000;
  if (kind == "tt" && power < 2) type.stored = Type::int32;
  return type;
}

// "d:precision,scale" or "d:precision,scale,bits".
ArrowType decimal_type(std::string_view format) {
  std::array<int, 3> numbers = {0, 0, 128};
  const char* at = format.data() + std::min<std::size_t>(2, format.size());
  const char* end = format.data() + format.size();
  for (int& number : numbers) {
    const auto read = std::from_chars(at, end, number);
    if (read.ec != std::errc()) break;
    at = read.ptr;
    if (at == end || *at != ',') break;
    ++at;
  }
  const auto [precision, scale, bits] = numbers;
  constexpr int largest_scale = 1000;  // far beyond what doubles hold
  if (at != end || precision < 1 || scale < -largest_scale || scale > largest_scale) return {};
  if (bits != 32 && bits != 64 && bits != 128 && bits != 256) return {};
  ArrowType type;
  type.kind = ArrowKind::decimal;
  type.scale = scale;
  type.width = static_cast<std::size_t>(bits) / 8;
  return type;
}

ArrowType text_type(std::string_view format) {
  ArrowType type;
  type.kind = ArrowKind::text;
  if (format == "u" || format == "z") return type;
  type.is_wide = format == "U" || format == "Z";
  type.is_view = format == "vu" || format == "vz";
  if (type.is_wide || type.is_view) return type;
  constexpr std::size_t widest = 1 << 30;
  const char* end = format.data() + format.size();
  if (format.starts_with("w:")) {
    const auto read = std::from_chars(format.data() + 2, end, type.width);
    if (read.ec == std::errc() && read.ptr == end && type.width > 0 && type.width < widest)
      return type;
  }
  return {};
}

void describe(const ArrowSchema& field, ArrowImport& into) {
  require_arrow(field.format != nullptr, "a column has no format");
  ArrowColumn arrow_column;
  arrow_column.name = field.name == nullptr ? "" : field.name;
  arrow_column.format = field.format;
  if (field.dictionary != nullptr) {
    const auto index = number_type(field.format);
    require_arrow(index && is_index(*index), "indices of a dictionary are no integers");
    require_arrow(field.dictionary->format != nullptr, "a dictionary has no format");
    arrow_column.index = *index;
    constexpr std::int64_t ordered_flag = 1;  // ARROW_FLAG_DICTIONARY_ORDERED
    arrow_column.is_ordered = (field.flags & ordered_flag) != 0;
    arrow_column.format = field.dictionary->format;
    if (field.dictionary->dictionary == nullptr)
      arrow_column.type = arrow_type(arrow_column.format.c_str());
  } else {
    arrow_column.type = arrow_type(arrow_column.format.c_str());
  }
  into.is_complete = into.is_complete && arrow_column.type.kind != ArrowKind::unsupported;
  into.columns.push_back(std::move(arrow_column));
}

// Numbers are zero-copy views; all other types go through a reader.
bool is_view(const ArrowColumn& column) {
  return column.type.kind == ArrowKind::number && column.index == Type::null;
}

bool has_null_row(const ArrowArray& batch) {
  if (batch.null_count == 0 || batch.n_buffers < 1 || batch.buffers == nullptr) return false;
  const auto* valid = static_cast<const std::uint8_t*>(batch.buffers[0]);
  if (valid == nullptr) return false;
  for (std::int64_t i = batch.offset; i < batch.offset + batch.length; ++i)
    if ((valid[i / 8] >> (i % 8) & 1) == 0) return true;
  return false;
}

class Import {
 public:
  Import(ArrowImport& result, ParseDouble parse) : result_(result) {
    for (const ArrowColumn& column : result.columns) {
      readers_.emplace_back(column.type, parse);
      const Type type = is_view(column) ? column.type.stored : Type::null;
      result.table.columns.push_back(whole_column(type, item_size(type), nullptr, 0));
    }
  }

  void add_batch(const ArrowArray& batch) {
    check_array(&batch);
    if (batch.length == 0) return;
    if (result_.is_table) {
      require_arrow(batch.n_children == static_cast<std::int64_t>(result_.columns.size()),
                    "a batch has another number of columns than the schema");
      require_arrow(batch.n_children == 0 || batch.children != nullptr,
                    "a batch lacks its columns");
      require_arrow(!has_null_row(batch), "a whole row is null");
      for (std::size_t c = 0; c < result_.columns.size(); ++c)
        add_array(batch.children[c], batch.offset, batch.length, c);
    } else {
      add_array(&batch, 0, batch.length, 0);
    }
    result_.table.n_rows += static_cast<std::size_t>(batch.length);
  }

  // Moves the converted values into the table.
  void finish() {
    const std::size_t n_rows = result_.table.n_rows;
    for (std::size_t c = 0; c < result_.columns.size(); ++c) {
      ArrowColumn& column = result_.columns[c];
      if (is_view(column)) continue;
      Column& stored = result_.table.columns[c];
      if (column.type.kind == ArrowKind::text) {
        stored = whole_column(Type::null, 0, nullptr, n_rows);
        continue;
      }
      auto values = std::make_shared<std::vector<double>>(std::move(readers_[c].values));
      column.is_inexact = column.type.kind == ArrowKind::time && readers_[c].clock.is_inexact();
      stored = whole_column(Type::float64, sizeof(double), values->data(), n_rows);
      result_.table.owners.push_back(std::move(values));
    }
  }

 private:
  // Appends rows [skip, skip + length) of the array to the column.
  void add_array(const ArrowArray* array, std::int64_t skip, std::int64_t length, std::size_t c) {
    check_array(array);
    ArrowColumn& column = result_.columns[c];
    if (!is_view(column)) return append_values(*array, skip, length, column, readers_[c]);
    result_.table.columns[c].pieces.push_back(
        arrow_piece(*array, column.type.stored, skip, length, result_.table.n_rows));
  }

  ArrowImport& result_;
  std::vector<ArrowReader> readers_;
};

}  // namespace

void broken_stream(const std::string& what) {
  throw std::invalid_argument("The Arrow stream that was given as a table is broken: " + what +
                              ". Export the table again, or pass it as NumPy arrays.");
}

ArrowType arrow_type(const char* given) {
  const std::string_view format = given;
  if (const auto number = number_type(format)) {
    ArrowType type;
    type.kind = ArrowKind::number;
    type.stored = *number;
    return type;
  }
  if (format.starts_with("t")) return time_type(format);
  if (format.starts_with("d:")) return decimal_type(format);
  return text_type(format);
}

void check_array(const ArrowArray* array) {
  require_arrow(array != nullptr, "an array is null");
  require_arrow(array->length >= 0 && array->offset >= 0 && array->null_count >= -1,
                "a length, offset or null count is negative");
  require_arrow(array->offset <= std::numeric_limits<std::int64_t>::max() - array->length,
                "an offset overflows");
}

Piece arrow_piece(const ArrowArray& array, Type type, std::int64_t skip, std::int64_t length,
                  std::size_t row) {
  require_arrow(array.length - skip >= length, "a column is shorter than its table");
  Piece piece;
  piece.begin = row;
  piece.end = row + static_cast<std::size_t>(length);
  if (type == Type::null) return piece;
  require_arrow(array.n_buffers == 2 && array.buffers != nullptr, "a column lacks its buffers");
  const auto first = static_cast<std::size_t>(array.offset + skip);
  const auto* values = static_cast<const std::byte*>(array.buffers[1]);
  require_arrow(values != nullptr, "a column lacks its values");
  piece.values = values + first * item_size(type);
  piece.first_bit = first;
  if (array.null_count != 0) {
    piece.valid = static_cast<const std::uint8_t*>(array.buffers[0]);
    piece.first_valid = first;
    require_arrow(piece.valid != nullptr || array.null_count == -1,
                  "a column has null values but no validity bitmap");
  }
  return piece;
}

ArrowImport import_arrow(ArrowArrayStream& source, ParseDouble parse) {
  require_arrow(source.release != nullptr, "it was read already");
  Owned<ArrowArrayStream> stream(source);
  require_arrow(stream.get_schema != nullptr && stream.get_next != nullptr,
                "its functions are null");
  Owned<ArrowSchema> schema;
  check_result(stream, stream.get_schema(&stream, &schema));
  require_arrow(schema.release != nullptr && schema.format != nullptr, "it has no schema");

  ArrowImport result;
  result.is_table = std::string_view(schema.format) == "+s";
  if (result.is_table) {
    require_arrow(schema.n_children == 0 || schema.children != nullptr,
                  "its schema lacks its columns");
    for (std::int64_t c = 0; c < schema.n_children; ++c) {
      require_arrow(schema.children[c] != nullptr, "its schema lacks a column");
      describe(*schema.children[c], result);
    }
  } else {
    describe(schema, result);
  }
  if (!result.is_complete) return result;

  Import import(result, parse);
  for (;;) {
    auto batch = std::make_shared<Owned<ArrowArray>>();
    check_result(stream, stream.get_next(&stream, batch.get()));
    if (batch->release == nullptr) break;  // the end
    import.add_batch(*batch);
    result.table.owners.push_back(std::move(batch));
  }
  import.finish();
  return result;
}

}  // namespace arboost
