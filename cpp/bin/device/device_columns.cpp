// Samples are gathered on the device, column by column, and copied once.
#include "bin/device/device_columns.h"

#include "base/buffer.h"

namespace arboost::cuda {
namespace {

template <class Number>
void put_values(DeviceColumns& table, std::size_t index, const Column& column, Type type,
                Team& team) {
  Buffer<Number> values(table.n_rows);
  team.for_chunks(0, table.n_rows, 64 * block_rows, [&](std::size_t begin, std::size_t end, int) {
    double block[block_rows];
    for (; begin < end; begin += block_rows) {
      const std::size_t last = std::min(begin + block_rows, end);
      read_block(column, begin, last, block, 1);
      std::copy(block, block + (last - begin), values.data() + begin);
    }
  });
  Device& device = Device::number(table.device);
  Device::Use use(device);
  const std::size_t bytes = table.n_rows * sizeof(Number);
  auto owner = std::make_shared<OwnedBytes>(bytes, table.device);
  upload_staged(device, values.data(), bytes, owner->address(), &team);
  table.columns.at(index) = {owner->data(), sizeof(Number),
                             std::numeric_limits<double>::quiet_NaN(), type};
  table.owners.push_back(std::move(owner));
}

}  // namespace

bool DeviceColumns::by_row() const {
  if (columns.size() < 2) return false;
  const auto distance = [](std::int64_t a) { return a < 0 ? -a : a; };
  return distance(columns[1].values - columns[0].values) < distance(columns[0].stride);
}

Columns gather(const DeviceColumns& table, std::span<const std::uint32_t> columns, const Rows& rows,
               Team* team) {
  Columns device_table;
  device_table.n_rows = rows.size();
  device_table.columns.resize(table.columns.size());
  std::vector<std::size_t> first{0};  // byte of each column
  for (const std::uint32_t c : columns)
    first.push_back(first.back() + (rows.size() * item_size(table.columns[c].type) + 15) / 16 * 16);
  Device& device = Device::number(table.device);
  Device::Use use(device);
  Queue queue;
  DeviceArray<std::uint8_t> values(first.back());
  std::vector<GatheredColumn> records;
  for (std::size_t k = 0; k < columns.size(); ++k)
    records.push_back({table.columns[columns[k]], values.data() + first[k]});
  const DeviceRowIndex index(device, rows, team);
  const DeviceArray<GatheredColumn> sent = queue.send(records);
  const std::size_t cells = rows.size() * columns.size();
  if (cells > 0)
    queue.launch(device.kernel("gather_values"), {blocks_of(device, cells)}, block_threads, 0,
                 sent.data(), static_cast<std::uint32_t>(columns.size()), index.rows(),
                 static_cast<std::uint32_t>(table.by_row()));
  queue.wait();
  auto bytes = std::make_shared<Buffer<std::byte>>(first.back());
  download_staged(device, values.address(), first.back(), bytes->data(), team);
  for (Column& column : device_table.columns)
    column.pieces = {Piece{.begin = 0, .end = rows.size()}};
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const DeviceColumn& from = table.columns[columns[k]];
    Column& column = device_table.columns[columns[k]];
    column.type = from.type;
    column.stride = static_cast<std::ptrdiff_t>(item_size(from.type));
    column.missing = from.missing;
    column.pieces[0].values = bytes->data() + first[k];
  }
  device_table.owners.push_back(std::move(bytes));
  return device_table;
}

void put(DeviceColumns& table, std::size_t index, const Column& column, Team& team) {
  if (column.type == Type::null)
    table.columns.at(index).type = Type::null;
  else if (fits_float32(column.type))
    put_values<float>(table, index, column, Type::float32, team);
  else
    put_values<double>(table, index, column, Type::float64, team);
}

std::vector<std::size_t> inexact_columns(const DeviceColumns& table) {
  std::vector<std::size_t> wide, distant;
  std::vector<DeviceColumn> records;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Type type = table.columns[c].type;
    if (type != Type::int64 && type != Type::uint64) continue;
    wide.push_back(c);
    records.push_back(table.columns[c]);
  }
  if (wide.empty() || table.n_rows == 0) return distant;
  Device& device = Device::number(table.device);
  Device::Use use(device);
  Queue queue;
  const DeviceArray<DeviceColumn> sent = queue.send(records);
  DeviceArray<std::uint32_t> flags(wide.size());
  queue.fill_zero(flags.address(), wide.size() * sizeof(std::uint32_t));
  queue.launch(device.kernel("find_inexact"), {blocks_of(device, table.n_rows), wide.size()},
               block_threads, 0, sent.data(), static_cast<std::uint64_t>(table.n_rows),
               flags.data());
  const std::vector<std::uint32_t> is_inexact = receive(flags, queue);
  for (std::size_t k = 0; k < wide.size(); ++k)
    if (is_inexact[k] != 0) distant.push_back(wide[k]);
  return distant;
}

HostMatrix find_matrix(const Columns& table) {
  if (table.columns.empty()) return {};
  const std::ptrdiff_t stride = table.columns[0].stride;
  const std::byte *first = nullptr, *end = nullptr;
  for (const Column& column : table.columns) {
    const std::size_t size = item_size(column.type);
    if (size == 0 || column.stride != stride || column.pieces.size() != 1) return {};
    const Piece& piece = column.pieces[0];
    if (piece.mask != nullptr || piece.valid != nullptr) return {};
    if (first == nullptr || piece.values < first) first = piece.values;
    if (end == nullptr || piece.values + size > end) end = piece.values + size;
  }
  const std::ptrdiff_t used = end - first;
  if (used > stride || 2 * used < stride) return {};  // no rows, or mostly other values
  for (const Column& column : table.columns) {
    const auto size = static_cast<std::ptrdiff_t>(item_size(column.type));
    if ((column.pieces[0].values - first) % size != 0 || stride % size != 0) return {};
  }
  return {first, static_cast<std::size_t>(stride), static_cast<std::size_t>(used)};
}

}  // namespace arboost::cuda
