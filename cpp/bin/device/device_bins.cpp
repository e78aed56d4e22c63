// Samples of the rows -> edges and plan: two small copies, and one scan on the device of columns
// with few distinct values in the sample. Columns and edges -> codes in device memory: one read of
// the table, and one write of the codes in each order; features that share stored columns need a
// byte a cell more for a while.
#include "bin/device/device_bins.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "base/require.h"
#include "bin/codes/encode.h"
#include "bin/codes/layout.h"
#include "bin/edges/keys.h"
#include "bin/edges/quantiles.h"
#include "cuda/staging.h"

namespace arboost::cuda {
namespace {

// Replaces the edges of columns whose distinct values, of all rows, fit into max_bins.
void complete(const DeviceColumns& table, const Rows& rows, const std::vector<FewValues>& few,
              std::size_t max_bins, Team& team, std::vector<std::vector<double>>& edges) {
  if (few.empty()) return;
  Device& device = Device::number(table.device);
  Device::Use use(device);
  Queue queue;
  const std::size_t n_slots = std::bit_ceil(4 * max_bins);
  std::vector<double> known;
  for (const FewValues& values_of_column : few)
    known.insert(known.end(), values_of_column.values.begin(), values_of_column.values.end());
  const DeviceArray<double> known_there = queue.send(known);
  DeviceArray<std::uint32_t> n_found(few.size());
  DeviceArray<unsigned long long> slots(few.size() * n_slots);
  queue.fill_zero(n_found.address(), few.size() * sizeof(std::uint32_t));
  queue.fill_ones(slots.address(), slots.size() * sizeof(unsigned long long));
  std::vector<ValueSearch> searches;
  std::size_t first = 0;
  for (std::size_t k = 0; k < few.size(); ++k) {
    searches.push_back({table.columns[few[k].column], known_there.data() + first,
                        static_cast<std::uint32_t>(few[k].values.size()),
                        static_cast<std::uint32_t>(n_slots), static_cast<std::uint32_t>(max_bins),
                        n_found.data() + k, slots.data() + k * n_slots});
    first += few[k].values.size();
  }
  const DeviceArray<ValueSearch> sent = queue.send(searches);
  const DeviceRowIndex index(device, rows, &team);
  queue.launch(device.kernel("find_values"), {blocks_of(device, rows.size()), few.size()},
               block_threads, 0, sent.data(), index.rows());
  const std::vector<std::uint32_t> counts = receive(n_found, queue);
  const std::vector<unsigned long long> keys = receive(slots, queue);
  for (std::size_t k = 0; k < few.size(); ++k) {
    std::vector<double> values = few[k].values;
    if (values.size() + counts[k] > max_bins) continue;
    for (std::size_t slot = k * n_slots; slot < (k + 1) * n_slots; ++slot)
      if (keys[slot] != no_key) values.push_back(value_of(std::uint64_t{keys[slot]}));
    std::sort(values.begin(), values.end());
    edges[few[k].column] = cut(values, {}, max_bins);
  }
}

constexpr std::size_t most_kept_bytes = 64 << 10;  // edges in the shared memory of a block

// The largest float32 up to an edge: float32 values are above both, or above neither.
float rounded_down(double edge) {
  const auto near = static_cast<float>(edge);
  return near <= edge ? near : std::nextafter(near, -std::numeric_limits<float>::infinity());
}

// Launches the encoding of some rows, with columns where `features` says.
using Launch = FunctionRef<void(const EncodeWork& work, Queue& queue)>;

// Values that are on the device.
class DeviceSource {
 public:
  DeviceSource(const Device& device, const DeviceColumns& table, const Rows& rows, Team& team)
      : table_(table), index_(device, rows, &team) {}

  template <class Number>
  void run(std::vector<CodedFeature> features, std::span<const std::size_t> numbers,
           const Launch& launch) {
    for (std::size_t k = 0; k < features.size(); ++k)
      features[k].column = table_.columns[numbers[k]];
    const DeviceArray<CodedFeature> sent = queue_.send(features);
    launch({.features = sent.data(), .rows = index_.rows(), .by_row = table_.by_row()}, queue_);
    queue_.wait();
  }

 private:
  const DeviceColumns& table_;
  Queue queue_;
  DeviceRowIndex index_;
};

// Values that are in the memory of the host, sent in chunks of rows: whole rows where the table is
// a matrix in row-major order, else column by column, as floating-point numbers.
class HostSource {
 public:
  HostSource(const Device& device, const Columns& table, const Rows& rows, Team& team)
      : device_(device),
        table_(table),
        rows_(rows),
        team_(team),
        matrix_(rows.is_all() ? find_matrix(table) : HostMatrix{}) {}

  template <class Number>
  void run(std::vector<CodedFeature> features, std::span<const std::size_t> numbers,
           const Launch& launch) {
    const std::size_t row_bytes =
        matrix_.first != nullptr ? matrix_.row_bytes : features.size() * sizeof(Number);
    const std::size_t chunk_rows =
        std::min(staged_bytes / row_bytes / block_rows * block_rows, padded(rows_.size()));
    if (chunk_rows == 0) throw std::invalid_argument("too many columns to encode on a device");
    DeviceArray<std::uint8_t> staged[2];
    DeviceArray<CodedFeature> sent[2];
    Queue queue;
    for (int side = 0; side < 2; ++side) {
      staged[side] = DeviceArray<std::uint8_t>(chunk_rows * row_bytes);
      for (std::size_t k = 0; k < features.size(); ++k)
        features[k].column =
            matrix_.first != nullptr
                ? in_matrix(table_.columns[numbers[k]], staged[side].data())
                : column_at<Number>(staged[side].data() + k * chunk_rows * sizeof(Number));
      sent[side] = queue.send(features);
      queue.wait();
    }
    const auto n_of = [&](std::size_t chunk) {
      return std::min(chunk_rows, rows_.size() - chunk * chunk_rows);
    };
    const auto fill = [&](std::size_t chunk, std::byte* buffer) {
      const std::size_t first = chunk * chunk_rows, n = n_of(chunk);
      if (matrix_.first == nullptr) {
        read(numbers, first, n, chunk_rows, reinterpret_cast<Number*>(buffer));
        return chunk_rows * row_bytes;
      }
      const std::size_t bytes = (n - 1) * row_bytes + matrix_.used_bytes;
      copy_by_threads(matrix_.first + first * row_bytes, bytes, buffer, team_);
      return bytes;
    };
    const auto use = [&](std::size_t chunk, int side, Queue& sending) {
      launch({.features = sent[side].data(),
              .rows = {nullptr, n_of(chunk)},
              .first_row = chunk * chunk_rows,
              .by_row = matrix_.first != nullptr},
             sending);
    };
    send_chunks(device_, (rows_.size() + chunk_rows - 1) / chunk_rows,
                {staged[0].address(), staged[1].address()}, fill, use);
  }

 private:
  static std::size_t padded(std::size_t n) {
    return (n + block_rows - 1) / block_rows * block_rows;
  }

  DeviceColumn in_matrix(const Column& column, const std::uint8_t* staged) const {
    return {staged + (column.pieces[0].values - matrix_.first), column.stride, column.missing,
            column.type};
  }

  template <class Number>
  static DeviceColumn column_at(const std::uint8_t* values) {
    return {values, sizeof(Number), std::numeric_limits<double>::quiet_NaN(),
            sizeof(Number) == 4 ? Type::float32 : Type::float64};
  }

  template <class Number>
  void read(std::span<const std::size_t> numbers, std::size_t first, std::size_t n,
            std::size_t chunk_rows, Number* to) {
    constexpr std::size_t grain = 8 * block_rows;
    team_.for_chunks(0, n, grain, [&](std::size_t begin, std::size_t end, int) {
      double block[block_rows];
      for (; begin < end; begin += block_rows) {
        const std::size_t last = std::min(begin + block_rows, end);
        for (std::size_t k = 0; k < numbers.size(); ++k) {
          rows_.read(table_.columns[numbers[k]], first + begin, first + last, block);
          std::copy(block, block + (last - begin), to + k * chunk_rows + begin);
        }
      }
    });
  }

  const Device& device_;
  const Columns& table_;
  const Rows& rows_;
  Team& team_;
  const HostMatrix matrix_;
};

template <class Source>
class DeviceEncoder {
 public:
  template <class Table>
  DeviceEncoder(int number, const Table& table, const Rows& rows, const Edges& edges, Codes& codes,
                Team& team)
      : number_(number),
        edges_(edges),
        codes_(codes),
        device_(Device::number(number)),
        use_(device_),
        source_(device_, table, rows, team) {
    narrow_ = std::all_of(table.columns.begin(), table.columns.end(),
                          [](const auto& column) { return fits_float32(column.type); });
    for (const auto& column : edges) {
      first_edge_.push_back(wide_edges_.size());
      wide_edges_.insert(wide_edges_.end(), column.begin(), column.end());
    }
    for (const double edge : wide_edges_) narrow_edges_.push_back(rounded_down(edge));
  }

  // False where the plan did not fit, and was changed.
  bool run(StoragePlan& plan) {
    Columns none;  // the layout asks for sparse columns, and there are none
    none.columns.resize(codes_.n_features);
    std::deque<StoreSource> shared = lay_out(plan, none, codes_);
    codes_.row_stride = (codes_.n_stores * static_cast<std::size_t>(codes_.width) + 7) / 8 * 8;
    check_memory(shared);
    there_ = std::make_shared<CodesOnDevice>(number_);
    there_->by_column = DeviceArray<std::uint8_t>(codes_.bytes_by_column());
    encode_features(shared);
    if (!shared.empty()) share(shared);
    return check_layout(shared, codes_, plan);
  }

  void write_rows() {
    there_->by_row = DeviceArray<std::uint8_t>(codes_.bytes_by_row());
    const auto width = static_cast<std::size_t>(codes_.width);
    constexpr std::size_t tile = 64;
    const std::size_t row_codes = codes_.row_stride / width;
    queue_.launch(device_.kernel(width == 1 ? "write_rows_bytes" : "write_rows_words"),
                  {in_blocks(codes_.n_rows, tile), in_blocks(row_codes, tile)}, block_threads, 0,
                  there_->by_column.data(), static_cast<std::uint64_t>(codes_.n_rows),
                  static_cast<std::uint32_t>(codes_.n_stores),
                  static_cast<std::uint32_t>(row_codes), there_->by_row.data());
    queue_.wait();
    codes_.distant = there_;
  }

 private:
  static std::size_t n_shares(const std::deque<StoreSource>& shared) {
    std::size_t n = 0;
    for (const StoreSource& source : shared)
      for (const DigitSource& digit : source.digits) n += digit.shares.size();
    return n;
  }

  void check_memory(const std::deque<StoreSource>& shared) const {
    const std::size_t needed =
        codes_.bytes_by_row() + codes_.bytes_by_column() + n_shares(shared) * codes_.n_rows;
    const std::size_t free = device_.free_bytes();
    if (needed <= free) return;
    throw DeviceError("the bins of the table need " + std::to_string(needed >> 20) +
                      " MiB on the CUDA device, and " + std::to_string(free >> 20) +
                      " MiB are free. Use fewer rows or features, another device, or the table as "
                      "a NumPy array with device=\"cpu\".");
  }

  void encode_features(const std::deque<StoreSource>& shared) {
    const auto width = static_cast<std::size_t>(codes_.width);
    share_codes_ = DeviceArray<std::uint8_t>(n_shares(shared) * codes_.n_rows);
    share_features_.clear();
    std::vector<CodedFeature> records;
    std::vector<std::size_t> numbers;
    const auto add = [&](std::size_t f, std::uint8_t* to) {
      records.push_back({.column = {},
                         .first_edge = static_cast<std::uint32_t>(first_edge_[f]),
                         .n_edges = static_cast<std::uint32_t>(edges_[f].size()),
                         .n_levels = codes_.has_levels(f) ? codes_.n_bins[f] : 0,
                         .codes = to});
      numbers.push_back(f);
    };
    for (std::size_t f = 0; f < codes_.n_features; ++f)
      if (codes_.where[f].kind == Storage::single)
        add(f, there_->by_column.data() + codes_.where[f].store * codes_.n_rows * width);
    for (const StoreSource& source : shared)
      for (const DigitSource& digit : source.digits)
        for (const ShareSource& share : digit.shares) {
          std::uint8_t* to = share_codes_.data() + share_features_.size() * codes_.n_rows;
          add(share.feature, to);
          SharedFeature& feature = share_features_.emplace_back();
          feature.codes = to;
          std::copy(share.digit_of, share.digit_of + 256, feature.digit_of);
        }
    const std::vector<std::uint32_t> has_missing =
        narrow_ ? launch(records, numbers, narrow_edges_) : launch(records, numbers, wide_edges_);
    for (std::size_t k = 0; k < numbers.size(); ++k)
      if (has_missing[k] != 0) codes_.has_missing[numbers[k]] = 1;
  }

  template <class Number>
  std::vector<std::uint32_t> launch(const std::vector<CodedFeature>& records,
                                    std::span<const std::size_t> numbers,
                                    const std::vector<Number>& edges) {
    std::size_t most_edges = 0;
    for (const CodedFeature& record : records)
      most_edges = std::max<std::size_t>(most_edges, record.n_edges);
    const std::size_t kept = most_edges * coded_features * sizeof(Number);
    const bool keeps = kept <= std::min(most_kept_bytes, device_.shared_bytes() / 2);
    const std::size_t shared_bytes = keeps ? kept : 0;
    const DeviceArray<Number> sent_edges = queue_.send(edges);
    DeviceArray<std::uint32_t> has_missing(records.size());
    queue_.fill_zero(has_missing.address(), records.size() * sizeof(std::uint32_t));
    queue_.wait();
    const char* const names[2][2] = {{"encode_floats_bytes", "encode_floats_words"},
                                     {"encode_doubles_bytes", "encode_doubles_words"}};
    const Function kernel =
        device_.kernel(names[sizeof(Number) == 8][codes_.width == 2], shared_bytes);
    const std::size_t groups = (records.size() + coded_features - 1) / coded_features;
    const std::size_t blocks = static_cast<std::size_t>(device_.multiprocessors()) * 16 / groups;
    source_.template run<Number>(records, numbers, [&](EncodeWork work, Queue& queue) {
      work.n_features = static_cast<std::uint32_t>(records.size());
      work.keeps_edges = keeps ? 1 : 0;
      work.has_missing = has_missing.data();
      const std::size_t tiles = (work.rows.n + coded_rows - 1) / coded_rows;
      queue.launch(kernel,
                   {std::clamp<std::size_t>(blocks, 1, std::max<std::size_t>(tiles, 1)), groups},
                   block_threads, shared_bytes, work, sent_edges.data());
    });
    return receive(has_missing, queue_);
  }

  // Codes of features -> codes of the columns that they share, and rows in conflict.
  void share(std::deque<StoreSource>& shared) {
    std::vector<SharedColumn> columns;
    std::vector<SharedDigit> digits;
    std::uint32_t n_features = 0;
    for (const StoreSource& source : shared) {
      columns.push_back({there_->by_column.data() + source.store * codes_.n_rows,
                         static_cast<std::uint32_t>(digits.size()),
                         static_cast<std::uint32_t>(source.digits.size())});
      for (const DigitSource& digit : source.digits) {
        const auto n = static_cast<std::uint32_t>(digit.shares.size());
        digits.push_back({digit.stride, n_features, n});
        n_features += n;
      }
    }
    const DeviceArray<SharedColumn> sent_columns = queue_.send(columns);
    const DeviceArray<SharedDigit> sent_digits = queue_.send(digits);
    const DeviceArray<SharedFeature> sent_features = queue_.send(share_features_);
    DeviceArray<unsigned long long> clashes(n_features);
    queue_.fill_zero(clashes.address(), n_features * sizeof(unsigned long long));
    queue_.launch(device_.kernel("share_columns"),
                  {blocks_of(device_, codes_.n_rows), columns.size()}, block_threads, 0,
                  sent_columns.data(), sent_digits.data(), sent_features.data(),
                  static_cast<std::uint64_t>(codes_.n_rows), clashes.data());
    const std::vector<unsigned long long> n_clashes = receive(clashes, queue_);
    auto next = n_clashes.begin();
    for (StoreSource& source : shared)
      for (DigitSource& digit : source.digits)
        for (ShareSource& share : digit.shares)
          share.clashes.store(static_cast<std::size_t>(*next++));
    share_codes_ = {};
  }

  const int number_;
  const Edges& edges_;
  Codes& codes_;
  Device& device_;
  Device::Use use_;
  Queue queue_;
  Source source_;
  bool narrow_ = false;  // float32 holds all values
  std::vector<std::size_t> first_edge_;
  std::vector<double> wide_edges_;
  std::vector<float> narrow_edges_;
  DeviceArray<std::uint8_t> share_codes_;
  std::vector<SharedFeature> share_features_;
  std::shared_ptr<CodesOnDevice> there_;
};

template <class Source, class Table>
Codes encode_from(int device, const Table& table, const Rows& rows, const Edges& edges,
                  const std::vector<std::uint8_t>& categorical, const StoragePlan* plan,
                  Team& team) {
  Codes codes = start_codes(rows.size(), edges, categorical);
  if (codes.width > 2) throw std::invalid_argument("at most 65,535 bins on a CUDA device");
  StoragePlan stores;
  if (plan != nullptr) stores = *plan;
  DeviceEncoder<Source> encoder(device, table, rows, edges, codes, team);
  while (!encoder.run(stores)) {
  }
  encoder.write_rows();
  codes.number_slots();
  return codes;
}

}  // namespace

std::vector<std::vector<double>> quantiles(const DeviceColumns& table, const Rows& rows,
                                           std::span<const double> weights, std::size_t max_bins,
                                           Team& team) {
  check_row_count(rows.size());
  std::vector<std::uint32_t> all(table.columns.size());
  std::iota(all.begin(), all.end(), 0u);
  EdgeRows sample = choose_edge_rows(rows, team);
  if (sample.complete) {
    const Columns values = gather(table, all, rows, &team);
    return arboost::quantiles(values, Rows(values.n_rows, nullptr), weights, max_bins, team);
  }
  const Columns values = gather(table, all, Rows(sample.size, sample.rows.data()), &team);
  std::iota(sample.rows.begin(), sample.rows.end(), RowId{0});
  std::vector<FewValues> few;
  std::vector<std::vector<double>> edges =
      sampled_edges(values, sample, weights, max_bins, team, few);
  complete(table, rows, few, max_bins, team, edges);
  return edges;
}

StoragePlan plan_storage(const DeviceColumns& table, const Rows& rows, const Edges& edges,
                         const PlanOptions& options, Team& team) {
  Columns none;  // of the same columns, without values
  none.columns.resize(table.columns.size());
  const std::vector<std::uint32_t> read = shareable(none, edges, options, rows.size());
  if (read.empty()) return plan_from(none, {}, rows.size(), edges, options, team);
  const std::vector<RowId> sample = choose_plan_rows(rows, team);
  const Columns values = gather(table, read, Rows(sample.size(), sample.data()), &team);
  std::vector<RowId> places(sample.size());
  std::iota(places.begin(), places.end(), RowId{0});
  return plan_from(values, places, rows.size(), edges, options, team);
}

CodesOnDevice::~CodesOnDevice() {
  free_on(device, [this] {
    by_row = {};
    by_column = {};
  });
}

void CodesOnDevice::copy(const Codes& codes) {
  Device& from = Device::number(device);
  Device::Use use(from);
  Buffer<std::uint8_t> rows(codes.bytes_by_row()), columns(codes.bytes_by_column());
  download_staged(from, by_row.address(), rows.size(), rows.data());
  download_staged(from, by_column.address(), columns.size(), columns.data());
  codes.by_row = std::move(rows);
  codes.by_column = std::move(columns);
}

Codes encode(const DeviceColumns& table, const Rows& rows, const Edges& edges,
             const std::vector<std::uint8_t>& categorical, const StoragePlan* plan, Team& team) {
  return encode_from<DeviceSource>(table.device, table, rows, edges, categorical, plan, team);
}

Codes encode_on(int device, const Columns& table, const Rows& rows, const Edges& edges,
                const std::vector<std::uint8_t>& categorical, const StoragePlan* plan, Team& team) {
  if (table.has_sparse()) throw std::invalid_argument("sparse columns are encoded by the host");
  return encode_from<HostSource>(device, table, rows, edges, categorical, plan, team);
}

}  // namespace arboost::cuda
