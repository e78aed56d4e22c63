// Arrow C stream -> column views. Buffers are not copied; the arrays live as long as the table. The
// interface carries no sizes of most buffers, so only lengths, null pointers, and the order and
// sign of offsets can be checked. Linear in the number of arrays and of copied values;
// single-threaded.
#include "table/arrow.h"

#include <algorithm>
#include <array>
#include <charconv>  // integers of a format
#include <cmath>
#include <cstring>  // loads from any alignment
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <type_traits>  // is_integral_v
#include <utility>

namespace arboost {
namespace {

// Throws std::invalid_argument: the stream breaks the specification.
[[noreturn]] void broken_stream(const std::string& what) {
  throw std::invalid_argument("The Arrow stream that was given as a table is broken: " + what +
                              ". Export the table again, or pass it as NumPy arrays.");
}

void require_arrow(bool holds, const char* what) {
  if (!holds) broken_stream(what);
}

// ---- formats ----

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
  constexpr std::string_view letters = "nbcCsSiIlLefg";
  constexpr Type types[] = {Type::null,    Type::bit,     Type::int8,   Type::uint8, Type::int16,
                            Type::uint16,  Type::int32,   Type::uint32, Type::int64, Type::uint64,
                            Type::float16, Type::float32, Type::float64};
  const std::size_t at = letters.find(format);
  if (format.size() != 1 || at == letters.npos) return std::nullopt;
  return types[at];
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

// Parses a format string of the specification.
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

// Throws unless the array's lengths and offsets are consistent.
void check_array(const ArrowArray* array) {
  require_arrow(array != nullptr, "an array is null");
  require_arrow(array->length >= 0 && array->offset >= 0 && array->null_count >= -1,
                "a length, offset or null count is negative");
  require_arrow(array->offset <= std::numeric_limits<std::int64_t>::max() - array->length,
                "an offset overflows");
}

// Rows [skip, skip + length) of an array of numbers as a piece of a column that begins at `row`.
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

// ---- values that need more than a view ----

// Converted values of one column that cannot be a view.
struct ArrowReader {
  explicit ArrowReader(const ArrowType& type, ParseDouble parse_double)
      : clock(type.tick), parse(parse_double) {}
  Clock clock;
  ParseDouble parse;
  std::vector<double> values;  // of all rows so far
};

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

template <class T>
T load(const void* base, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(base) + i * sizeof(T), sizeof(T));
  return value;
}

// Rows of one array.
struct Slice {
  const ArrowArray& array;
  std::size_t first, length;

  Slice(const ArrowArray& from, std::int64_t skip, std::int64_t rows, std::int64_t n_buffers)
      : array(from),
        first(static_cast<std::size_t>(from.offset + skip)),
        length(static_cast<std::size_t>(rows)) {
    require_arrow(from.length - skip >= rows, "a column is shorter than its table");
    require_arrow(from.n_buffers >= n_buffers && from.buffers != nullptr,
                  "a column lacks its buffers");
    require_arrow(from.buffers[0] != nullptr || from.null_count <= 0,
                  "a column has null values but no validity bitmap");
  }
  bool is_valid(std::size_t i) const {
    if (array.null_count == 0 || array.buffers[0] == nullptr) return true;
    const auto* bits = static_cast<const std::uint8_t*>(array.buffers[0]);
    return bits[(first + i) / 8] >> ((first + i) % 8) & 1;
  }
  const void* buffer(std::size_t b) const {
    require_arrow(array.buffers[b] != nullptr || length == 0, "a column lacks its values");
    return array.buffers[b];
  }
};

// ---- strings ----

template <class Offset, class Sink>
void each_by_offsets(const Slice& slice, const Sink& sink) {
  if (slice.length == 0) return;
  const void* offsets = slice.buffer(1);
  const auto* bytes = static_cast<const char*>(slice.array.buffers[2]);
  auto begin = load<Offset>(offsets, slice.first);
  require_arrow(begin >= 0, "a string begins before its buffer");
  for (std::size_t i = 0; i < slice.length; ++i) {
    const auto end = load<Offset>(offsets, slice.first + i + 1);
    require_arrow(begin <= end, "a string ends before it begins");
    require_arrow(bytes != nullptr || begin == end, "a column lacks its strings");
    const auto size = static_cast<std::size_t>(end - begin);
    sink(i, slice.is_valid(i),
         size == 0 ? std::string_view() : std::string_view(bytes + begin, size));
    begin = end;
  }
}

template <class Sink>
void each_view(const Slice& slice, const Sink& sink) {
  constexpr std::size_t view_size = 16, longest_inline = 12;
  const auto* views = static_cast<const char*>(slice.buffer(1));
  const auto n_data = slice.array.n_buffers - 3;  // validity, views, sizes of the data buffers
  for (std::size_t i = 0; i < slice.length; ++i) {
    if (!slice.is_valid(i)) {
      sink(i, false, std::string_view());
      continue;
    }
    const char* view = views + (slice.first + i) * view_size;
    const auto size = load<std::int32_t>(view, 0);
    require_arrow(size >= 0, "a string has a negative length");
    if (static_cast<std::size_t>(size) <= longest_inline) {
      sink(i, true, std::string_view(view + 4, static_cast<std::size_t>(size)));
      continue;
    }
    const auto buffer = load<std::int32_t>(view, 2), begin = load<std::int32_t>(view, 3);
    require_arrow(buffer >= 0 && buffer < n_data, "a string is in a buffer that is not there");
    const auto data = static_cast<std::size_t>(buffer) + 2;
    const void* sizes = slice.buffer(static_cast<std::size_t>(slice.array.n_buffers) - 1);
    const auto limit = load<std::int64_t>(sizes, static_cast<std::size_t>(buffer));
    require_arrow(begin >= 0 && std::int64_t{begin} + size <= limit,
                  "a string is outside its buffer");
    const auto* bytes = static_cast<const char*>(slice.buffer(data));
    sink(i, true, std::string_view(bytes + begin, static_cast<std::size_t>(size)));
  }
}

template <class Sink>
void each_of_width(const Slice& slice, std::size_t width, const Sink& sink) {
  const auto* bytes = static_cast<const char*>(width == 0 ? nullptr : slice.buffer(1));
  for (std::size_t i = 0; i < slice.length; ++i)
    sink(i, slice.is_valid(i), std::string_view(bytes + (slice.first + i) * width, width));
}

// Calls sink(i, is_valid, string) for every row.
template <class Sink>
void each_string(const ArrowArray& array, std::int64_t skip, std::int64_t length,
                 const ArrowType& type, const Sink& sink) {
  if (type.is_view) return each_view(Slice(array, skip, length, 3), sink);
  if (type.width > 0) return each_of_width(Slice(array, skip, length, 2), type.width, sink);
  const Slice slice(array, skip, length, 3);
  type.is_wide ? each_by_offsets<std::int64_t>(slice, sink)
               : each_by_offsets<std::int32_t>(slice, sink);
}

// ---- numbers ----

// Little-endian words of a decimal -> its digits. Overwrites the words.
std::string digits_of(std::array<std::uint32_t, 8>& words) {
  constexpr std::uint64_t billion = 1'000'000'000;
  std::string digits;
  while (std::any_of(words.begin(), words.end(), [](std::uint32_t w) { return w != 0; })) {
    std::uint64_t rest = 0;
    for (std::size_t i = words.size(); i-- > 0;) {
      rest = rest << 32 | words[i];
      words[i] = static_cast<std::uint32_t>(rest / billion);
      rest %= billion;
    }
    for (int i = 0; i < 9; ++i, rest /= 10) digits.push_back(static_cast<char>('0' + rest % 10));
  }
  std::reverse(digits.begin(), digits.end());
  return digits.empty() ? "0" : digits;
}

double decimal_value(const std::byte* from, const ArrowType& type, ParseDouble parse) {
  constexpr std::array<double, 23> powers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                             1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                             1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  std::array<std::uint32_t, 8> words{};
  std::memcpy(words.data(), from, type.width);
  const std::size_t n_words = type.width / 4;
  const bool negative = words[n_words - 1] >> 31 != 0;
  if (negative) {
    std::uint64_t carry = 1;
    for (std::size_t i = 0; i < n_words; ++i) {
      carry += static_cast<std::uint32_t>(~words[i]);
      words[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
  }
  const bool is_small = words[1] < (1U << 21) &&
                        std::all_of(words.begin() + 2, words.end(), [](auto w) { return w == 0; });
  double value;
  if (is_small && type.scale >= 0 && type.scale < static_cast<int>(powers.size())) {
    // Both operands are exact doubles, so one division gives the correctly rounded result.
    const auto whole = static_cast<double>(std::uint64_t{words[1]} << 32 | words[0]);
    value = whole / powers[static_cast<std::size_t>(type.scale)];
  } else {
    value = parse((digits_of(words) + "e" + std::to_string(-type.scale)).c_str());
  }
  return negative ? -value : value;
}

std::vector<double> plain_numbers(const ArrowArray& array, Type type, std::int64_t skip,
                                  std::int64_t length) {
  std::vector<double> values(static_cast<std::size_t>(length));
  Column column = whole_column(type, item_size(type), nullptr, 0);
  if (length > 0) column.pieces.push_back(arrow_piece(array, type, skip, length, 0));
  read_block(column, 0, values.size(), values.data(), 1);
  return values;
}

// Appends the doubles of an array that has no dictionary.
void append_numbers(const ArrowArray& array, std::int64_t skip, std::int64_t length,
                    const ArrowType& type, ArrowReader& reader, std::vector<double>& into) {
  if (type.kind == ArrowKind::number) {
    const auto values = plain_numbers(array, type.stored, skip, length);
    into.insert(into.end(), values.begin(), values.end());
    return;
  }
  const Slice slice(array, skip, length, 2);
  const void* values = slice.buffer(1);
  for (std::size_t i = 0; i < slice.length; ++i) {
    const std::size_t at = slice.first + i;
    if (!slice.is_valid(i)) {
      into.push_back(missing);
    } else if (type.kind == ArrowKind::decimal) {
      const auto* from = static_cast<const std::byte*>(values) + at * type.width;
      into.push_back(decimal_value(from, type, reader.parse));
    } else if (type.stored == Type::int32) {
      into.push_back(reader.clock.seconds(load<std::int32_t>(values, at)));
    } else {
      into.push_back(reader.clock.seconds(load<std::int64_t>(values, at)));
    }
  }
}

// ---- dictionaries ----

std::int64_t index_at(const void* indices, Type type, std::size_t i) {
  std::int64_t index = 0;
  with_number(type, [&]<class T>() {
    if constexpr (std::is_integral_v<T>)  // above 2^63 it is negative, and refused as such
      index = static_cast<std::int64_t>(load<T>(indices, i));
  });
  return index;
}

// Calls sink(i, entry) for every row, with entry -1 where the row is null.
template <class Sink>
void each_index(const ArrowArray& array, std::int64_t skip, std::int64_t length, Type type,
                std::int64_t n_entries, const Sink& sink) {
  const Slice slice(array, skip, length, 2);
  const void* indices = slice.buffer(1);
  for (std::size_t i = 0; i < slice.length; ++i) {
    if (!slice.is_valid(i)) {
      sink(std::int64_t{-1});
      continue;
    }
    const std::int64_t entry = index_at(indices, type, slice.first + i);
    require_arrow(entry >= 0 && entry < n_entries, "an index is outside its dictionary");
    sink(entry);
  }
}

template <class Order>
void add_order(Order order, std::vector<Order>& orders) {
  if (std::find(orders.begin(), orders.end(), order) == orders.end())
    orders.push_back(std::move(order));
}

void append_entries(const ArrowArray& array, std::int64_t skip, std::int64_t length,
                    ArrowColumn& column, ArrowReader& reader) {
  check_array(array.dictionary);
  const ArrowArray& dictionary = *array.dictionary;
  if (column.type.kind != ArrowKind::text) {
    std::vector<double> entries;
    append_numbers(dictionary, 0, dictionary.length, column.type, reader, entries);
    if (column.is_ordered) {
      std::vector<double> order = entries;
      std::erase_if(order, [](double entry) { return std::isnan(entry); });
      add_order(std::move(order), column.number_orders);
    }
    each_index(array, skip, length, column.index, dictionary.length, [&](std::int64_t entry) {
      reader.values.push_back(entry < 0 ? missing : entries[static_cast<std::size_t>(entry)]);
    });
    return;
  }
  // A dictionary may be far larger than the set of used entries: an entry is hashed at its first
  // use.
  constexpr std::int32_t unmet = -2;
  std::vector<std::string_view> entries(static_cast<std::size_t>(dictionary.length));
  std::vector<std::int32_t> codes(entries.size(), unmet);
  each_string(dictionary, 0, dictionary.length, column.type,
              [&](std::size_t i, bool is_valid, std::string_view text) {
                entries[i] = text;
                if (!is_valid) codes[i] = -1;
              });
  if (column.is_ordered) {
    std::vector<std::string> order;
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (codes[i] != -1) order.emplace_back(entries[i]);
    add_order(std::move(order), column.text_orders);
  }
  Text& text = column.text;
  each_index(array, skip, length, column.index, dictionary.length, [&](std::int64_t entry) {
    if (entry < 0) return text.codes.push_back(-1);
    auto& code = codes[static_cast<std::size_t>(entry)];
    if (code == unmet) code = text.strings.add(entries[static_cast<std::size_t>(entry)]);
    text.codes.push_back(code);
  });
}

// Appends rows [skip, skip + length) of an array to the column's text or to the reader's values.
void append_values(const ArrowArray& array, std::int64_t skip, std::int64_t length,
                   ArrowColumn& column, ArrowReader& reader) {
  if (column.index != Type::null) {
    append_entries(array, skip, length, column, reader);
  } else if (column.type.kind == ArrowKind::text) {
    Text& text = column.text;
    each_string(array, skip, length, column.type,
                [&text](std::size_t, bool is_valid, std::string_view given) {
                  text.codes.push_back(is_valid ? text.strings.add(given) : -1);
                });
  } else {
    append_numbers(array, skip, length, column.type, reader, reader.values);
  }
}

// ---- batches ----

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
