// Description of a table, field by field; checksums at the speed of memory.
#include "table/codes_file.h"

#include <algorithm>
#include <array>
#include <bit>  // endian
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "base/require.h"

namespace arboost {
namespace {

static_assert(std::endian::native == std::endian::little, "files of codes are little-endian");

constexpr char mark[8] = {'a', 'r', 'b', 'c', 'o', 'd', 'e', '1'};

struct End {
  char mark[8];
  std::uint64_t description, size, checksum;
};

[[noreturn]] void damaged() {
  throw std::invalid_argument(
      "The file of codes is damaged, or not finished. Delete it, and make it again.");
}

void require(bool holds) {
  if (!holds) damaged();
}

// A sum of words, each mixed with its position: changed, lost and exchanged words change it. Sums
// of consecutive pieces add up.
std::uint64_t checksum(const std::uint8_t* bytes, std::size_t n, std::uint64_t first_word) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < n; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min<std::size_t>(8, n - at));
    const std::uint64_t position_hash = (first_word + at / 8) * 0x9e3779b97f4a7c15 + 1;
    sum += (word ^ position_hash) * 0xd6e8feb86659fd93 ^ word >> 29;
  }
  return sum;
}

// Numbers of a description, to or from its bytes.
class Writer {
 public:
  template <class T>
  void number(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof(T));
  }
  template <class T>
  void numbers(const std::vector<T>& values) {
    number<std::uint64_t>(values.size());
    for (const T& value : values) number(value);
  }

  std::vector<std::uint8_t> bytes;
};

class Reader {
 public:
  explicit Reader(const std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}

  template <class T>
  void number(T& value) {
    require(bytes_.size() - at_ >= sizeof(T));
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
  }
  template <class T>
  void numbers(std::vector<T>& values) {
    std::uint64_t n = 0;
    number(n);
    require(n <= (bytes_.size() - at_) / sizeof(T));
    values.resize(n);
    for (T& value : values) number(value);
  }
  bool is_at_end() const { return at_ == bytes_.size(); }

 private:
  const std::vector<std::uint8_t>& bytes_;
  std::size_t at_ = 0;
};

// Features and digits name stored columns, digits and slots that there are.
void check_places(const Codes& codes) {
  std::vector<std::uint32_t> slots(codes.n_stores, 1);  // of the digits of a stored column so far
  std::uint32_t last = 0;
  require(codes.digits.empty() || codes.width == 1);
  for (const Digit& digit : codes.digits) {
    require(digit.store < codes.n_stores && digit.store >= last && digit.radix > 0);
    require(digit.stride == slots[digit.store] && digit.radix <= 256 / digit.stride);
    slots[digit.store] *= digit.radix;
    last = digit.store;
  }
  std::vector<bool> is_own(codes.n_stores, false);
  for (std::size_t f = 0; f < codes.n_features; ++f) {
    const FeatureStorage& storage = codes.where[f];
    require(storage.store < codes.n_stores && codes.has_missing[f] <= 1);
    require(codes.n_codes(f) <= std::uint32_t{1} << 8 * codes.width);
    if (storage.kind == Storage::single) {
      require(slots[storage.store] == 1 && !is_own[storage.store]);
      is_own[storage.store] = true;
      continue;
    }
    require(storage.kind == Storage::shared && storage.digit < codes.digits.size());
    const Digit& digit = codes.digits[storage.digit];
    require(digit.store == storage.store &&
            digit.radix >= (storage.exclusive ? 1 : codes.n_codes(f)));
    if (!storage.exclusive) continue;
    require(storage.n_others <= codes.n_bins[f] && storage.n_others + 1 >= codes.n_codes(f));
    require(storage.n_others < digit.radix && storage.first <= digit.radix - storage.n_others);
    require(storage.usual <= storage.n_others);
  }
}

// The stored codes that have a histogram slot, and a bin of each feature.
class KnownCodes {
 public:
  explicit KnownCodes(const Codes& codes) : codes_(codes), most_(codes.n_stores, 0) {
    for (const Digit& digit : codes.digits) {
      most_[digit.store] = digit.stride * digit.radix;  // of the last digit: all codes
      if (shared_.empty() || shared_.back().store != digit.store)
        shared_.push_back({.store = digit.store, .has_bins = {}});
    }
    for (Shared& shared : shared_) shared.has_bins.fill(true);
    std::vector<std::size_t> number(codes.n_stores, 0);
    for (std::size_t i = 0; i < shared_.size(); ++i) number[shared_[i].store] = i;
    for (std::size_t f = 0; f < codes.n_features; ++f) {
      const std::uint32_t store = codes.where[f].store;
      if (codes.where[f].kind == Storage::single) {
        most_[store] = codes.n_codes(f);
        continue;
      }
      std::array<bool, 256>& has_bins = shared_[number[store]].has_bins;
      for (std::uint32_t code = 0; code < most_[store]; ++code)
        has_bins[code] = has_bins[code] && codes.decode(f, code) < codes.n_codes(f);
    }
  }

  // Throws where a row has another code.
  void check(const std::uint8_t* rows, std::size_t n) const {
    codes_.width == 1 ? check<std::uint8_t>(rows, n) : check<std::uint16_t>(rows, n);
    for (const Shared& shared : shared_) {
      bool all_have = true;
      for (std::size_t row = 0; row < n; ++row)
        all_have = all_have && shared.has_bins[rows[row * codes_.row_stride + shared.store]];
      require(all_have);
    }
  }

 private:
  struct Shared {
    std::uint32_t store;
    std::array<bool, 256> has_bins;  // of each code, in every feature
  };

  template <class Code>
  void check(const std::uint8_t* rows, std::size_t n) const {
    std::vector<Code> largest(codes_.n_stores, 0);
    for (std::size_t row = 0; row < n; ++row) {
      const auto* codes = reinterpret_cast<const Code*>(rows + row * codes_.row_stride);
      for (std::size_t s = 0; s < largest.size(); ++s) largest[s] = std::max(largest[s], codes[s]);
    }
    for (std::size_t s = 0; s < largest.size(); ++s) require(largest[s] < most_[s]);
  }

  const Codes& codes_;
  std::vector<std::uint32_t> most_;  // codes of each stored column
  std::vector<Shared> shared_;
};

// Writes the description of a table, or reads it; throws where it describes none.
template <class Stream>
void describe(Codes& codes, Stream& stream) {
  static_assert(sizeof(std::size_t) == 8 && sizeof(int) == 4);
  for (std::size_t* size : {&codes.n_rows, &codes.n_features, &codes.n_stores, &codes.row_stride})
    stream.number(*size);
  stream.number(codes.width);
  stream.numbers(codes.n_bins);
  stream.numbers(codes.has_missing);
  stream.numbers(codes.is_category);
  require(codes.n_bins.size() == codes.n_features && (codes.width == 1 || codes.width == 2));
  require(codes.has_missing.size() == codes.n_features);
  require(codes.is_category.empty() || codes.is_category.size() == codes.n_features);
  require(codes.n_stores <= codes.n_features && codes.row_stride % 8 == 0);
  require(codes.row_stride / static_cast<std::size_t>(codes.width) >= codes.n_stores);
  codes.edges.resize(codes.n_features);
  for (std::size_t f = 0; f < codes.n_features; ++f) {
    stream.numbers(codes.edges[f]);
    require(codes.edges[f].size() + 1 == codes.n_bins[f]);
  }
  codes.where.resize(codes.n_features);
  for (FeatureStorage& storage : codes.where) {
    auto kind = static_cast<std::uint8_t>(storage.kind);
    std::uint8_t exclusive = storage.exclusive ? 1 : 0;
    stream.number(kind);
    stream.number(exclusive);
    storage.kind = static_cast<Storage>(kind);
    storage.exclusive = exclusive != 0;
    for (std::uint32_t* number :
         {&storage.store, &storage.digit, &storage.first, &storage.usual, &storage.n_others})
      stream.number(*number);
  }
  std::uint64_t n_digits = codes.digits.size();
  stream.number(n_digits);
  require(n_digits <= codes.n_features);
  codes.digits.resize(n_digits);
  for (Digit& digit : codes.digits)
    for (std::uint32_t* number : {&digit.store, &digit.stride, &digit.radix})
      stream.number(*number);
  check_places(codes);
}

std::uint64_t sum_of(const std::vector<std::uint64_t>& checksums) {
  std::uint64_t sum = 0;
  for (const std::uint64_t checksum : checksums) sum += checksum;
  return sum;
}

bool have_same_layout(const Codes& a, const Codes& b) {
  return a.n_stores == b.n_stores && a.width == b.width && a.row_stride == b.row_stride &&
         a.n_bins == b.n_bins && a.edges == b.edges && a.is_category == b.is_category &&
         a.where == b.where && a.digits == b.digits;
}

}  // namespace

CodesWriter::CodesWriter(int descriptor, std::size_t window_rows)
    : file_(std::make_shared<CodesFile>(descriptor)), window_rows_(window_rows) {
  if (window_rows == 0) throw std::invalid_argument("Windows must have at least one row.");
}

void CodesWriter::append(const Codes& part) {
  if (!file_) throw std::invalid_argument("The file of codes is finished.");
  if (part.width > 2 || part.sparse.size() > 0 || part.stored_rows)
    throw std::invalid_argument("Only full columns of bin codes in memory are written to a file.");
  part.fetch();
  if (!has_layout_) all_ = part.layout();
  if (has_layout_ && !have_same_layout(all_, part))
    throw std::invalid_argument("The part of the table has another layout than the parts before.");
  has_layout_ = true;
  check_row_count(all_.n_rows + part.n_rows);
  for (std::size_t f = 0; f < all_.n_features; ++f) all_.has_missing[f] |= part.has_missing[f];
  add_to_checksums(part.by_row.data(), part.n_rows);
  file_->write(all_.n_rows * all_.row_stride, part.by_row.data(), part.bytes_by_row());
  all_.n_rows += part.n_rows;
}

void CodesWriter::add_to_checksums(const std::uint8_t* rows, std::size_t n) {
  const std::size_t stride = all_.row_stride;
  for (std::size_t row = all_.n_rows, end = row + n; row < end;) {
    const std::size_t window = row / window_rows_;
    const std::size_t last = std::min((window + 1) * window_rows_, end);
    checksums_.resize(std::max(checksums_.size(), window + 1));
    checksums_[window] += checksum(rows, (last - row) * stride, row * stride / 8);
    rows += (last - row) * stride;
    row = last;
  }
}

Codes CodesWriter::finish() {
  if (!file_ || !has_layout_) throw std::invalid_argument("The file of codes has no rows.");
  all_.number_slots();
  Writer out;
  describe(all_, out);
  out.number<std::uint64_t>(window_rows_);
  out.numbers(checksums_);
  const std::uint8_t none[StoredRows::padding] = {};
  End end{};
  std::memcpy(end.mark, mark, sizeof(mark));
  end.description = all_.bytes_by_row() + sizeof(none);
  end.size = out.bytes.size();
  end.checksum = checksum(out.bytes.data(), out.bytes.size(), 0);
  file_->write(all_.bytes_by_row(), none, sizeof(none));
  file_->write(end.description, out.bytes.data(), out.bytes.size());
  file_->write(end.description + end.size, &end, sizeof(end));
  all_.stored_rows = std::make_shared<RowsInFile>(std::move(file_), all_.n_rows, all_.row_stride,
                                                  window_rows_, sum_of(checksums_));
  file_ = nullptr;
  return std::move(all_);
}

Codes open_codes(int descriptor, Team& team) {
  const auto file = std::make_shared<CodesFile>(descriptor);
  const std::uint64_t size = file->size();
  End end{};
  require(size >= sizeof(end));
  file->read(size - sizeof(end), &end, sizeof(end));
  require(std::memcmp(end.mark, mark, sizeof(mark)) == 0);
  require(end.size <= size && end.description <= size &&
          end.description + end.size + sizeof(end) == size);
  std::vector<std::uint8_t> bytes(end.size);
  file->read(end.description, bytes.data(), bytes.size());
  require(checksum(bytes.data(), bytes.size(), 0) == end.checksum);
  Reader in(bytes);
  Codes codes;
  describe(codes, in);
  std::uint64_t window_rows = 0;
  std::vector<std::uint64_t> checksums;
  in.number(window_rows);
  in.numbers(checksums);
  require(in.is_at_end() && window_rows > 0 && window_rows <= most_rows &&
          codes.n_rows <= most_rows &&
          codes.row_stride <= size / std::max<std::size_t>(1, codes.n_rows) &&
          codes.bytes_by_row() + StoredRows::padding == end.description &&
          checksums.size() == (codes.n_rows + window_rows - 1) / window_rows);
  const KnownCodes known(codes);
  team.for_chunks(0, checksums.size(), 1, [&](std::size_t window, std::size_t, int) {
    const std::size_t first = window * window_rows;
    const std::size_t n = std::min<std::size_t>(window_rows, codes.n_rows - first);
    const CodesFile::Window rows(*file, std::uint64_t{first} * codes.row_stride,
                                 n * codes.row_stride);
    require(checksum(rows.data(), n * codes.row_stride, first * codes.row_stride / 8) ==
            checksums[window]);
    known.check(rows.data(), n);
  });
  codes.number_slots();
  codes.stored_rows = std::make_shared<RowsInFile>(file, codes.n_rows, codes.row_stride,
                                                   window_rows, sum_of(checksums));
  return codes;
}

}  // namespace arboost
