// Values and edges -> codes by column, and codes by column -> codes by row.
//
// A warp has one feature in each lane: edges lie in shared memory by [edge][feature], so that a
// search has no bank conflicts. Values come in, and codes go out, through tiles in shared memory:
// reads follow the order of the table, and writes that of a column.
#include "bin/device/kernels/values.cuh"

namespace arboost::cuda {

constexpr std::uint32_t tile_pitch = coded_features + 1;

// Values of every step-th row of a tile, from `start` on, as they are in memory.
template <class Item, class Word>
inline void load_items(const DeviceColumn& column, const TableRows& rows, std::uint64_t first_row,
                       std::uint32_t start, std::uint32_t step, Word* to) {
#pragma unroll 8
  for (std::uint32_t r = start; r < coded_rows; r += step)
    if (first_row + r < rows.n)
      to[r * tile_pitch] = raw_value<Item>(column, table_row(rows, first_row + r));
}

// A word of a tile as a number; NaN where it is missing.
template <class Number, class Word>
inline Number number_of(const DeviceColumn& column, Word word) {
  double x = std::numeric_limits<double>::quiet_NaN();
  with_number(column.type, [&]<class T>() {
    if constexpr (sizeof(T) <= sizeof(Word)) {
      T value;
      memcpy(&value, &word, sizeof(T));
      x = to_double(value);
    }
  });
  return static_cast<Number>(x == column.missing ? std::numeric_limits<double>::quiet_NaN() : x);
}

// Level codes stay; all other values are missing.
template <class Number>
inline Number level_of(Number x, std::uint32_t n_levels) {
  const bool is_level = x >= 0 && x < static_cast<Number>(n_levels) &&
                        static_cast<Number>(static_cast<std::uint32_t>(x)) == x;
  return is_level ? x : static_cast<Number>(std::numeric_limits<double>::quiet_NaN());
}

// Words are of the size of numbers: float32 holds all values of types up to that size.
template <class Number, class Word, class Code>
inline void encode(const EncodeWork& work, const Number* edges) {
  ARBOOST_DYNAMIC_SHARED(double, edge_buffer);
  auto* kept = reinterpret_cast<Number*>(edge_buffer);
  __shared__ Word words[coded_rows * tile_pitch];
  __shared__ Code codes[coded_features][coded_rows + 4 / sizeof(Code)];
  const std::uint32_t lane = lane_of(), warp = warp_of(), n_warps = blockDim.x / 32;
  const std::uint32_t first = blockIdx.y * coded_features;
  const std::uint32_t n_own =
      work.n_features - first < coded_features ? work.n_features - first : coded_features;
  const CodedFeature coded = work.features[first + (lane < n_own ? lane : 0)];
  const Number* listed = edges + coded.first_edge;
  for (std::uint32_t e = warp; work.keeps_edges && e < coded.n_edges; e += n_warps)
    kept[e * coded_features + lane] = listed[e];
  __syncthreads();
  // Lanes read the values of one row, or those of one column.
  const std::uint32_t own_start = work.by_row ? warp : lane;
  const std::uint32_t own_step = work.by_row ? n_warps : 32;
  bool any_missing = false;
  const std::uint64_t n_tiles = (work.rows.n + coded_rows - 1) / coded_rows;
  for (std::uint64_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
    const std::uint64_t first_row = tile * coded_rows;
    for (std::uint32_t k = work.by_row ? lane : warp; k < n_own;
         k += work.by_row ? coded_features : n_warps) {
      const DeviceColumn column = work.features[first + k].column;
      const auto load = [&]<class Item>() {
        load_items<Item>(column, work.rows, first_row, own_start, own_step, words + k);
      };
      const std::uint32_t size = item_size(column.type);
      if (size == 4) load.template operator()<std::uint32_t>();
      if (size == 1) load.template operator()<std::uint8_t>();
      if (size == 2) load.template operator()<std::uint16_t>();
      if constexpr (sizeof(Word) == 8)
        if (size == 8) load.template operator()<std::uint64_t>();
    }
    __syncthreads();
#pragma unroll 1
    for (std::uint32_t r = warp; r < coded_rows && first_row + r < work.rows.n; r += n_warps) {
      if (lane >= n_own) break;
      Number x = number_of<Number>(coded.column, words[r * tile_pitch + lane]);
      if (coded.n_levels > 0) x = level_of(x, coded.n_levels);
      const Number* of_edge = work.keeps_edges ? kept + lane : listed;
      const std::uint32_t step = work.keeps_edges ? coded_features : 1;
      const std::uint32_t code =
          count_below(coded.n_edges, x, [=](std::uint32_t e) { return of_edge[e * step]; });
      const bool is_missing = x != x;
      any_missing |= is_missing;
      codes[lane][r] = static_cast<Code>(is_missing ? coded.n_edges + 1 : code);
    }
    __syncthreads();
    for (std::uint32_t k = warp; k < n_own; k += n_warps) {
      Code* to =
          reinterpret_cast<Code*>(work.features[first + k].codes) + work.first_row + first_row;
      for (std::uint32_t r = lane; r < coded_rows && first_row + r < work.rows.n; r += 32)
        to[r] = codes[k][r];
    }
  }
  if (any_missing) work.has_missing[first + lane] = 1;
}

// Column-major codes -> row-major codes, in tiles of 64 rows and columns; the pad is cleared.
template <class Code>
inline void write_rows(const Code* by_column, std::uint64_t n_rows, std::uint32_t n_stores,
                       std::uint32_t row_codes, Code* by_row) {
  constexpr std::uint32_t size = 64;
  __shared__ Code tile[size][size + 4 / sizeof(Code)];
  const std::uint64_t first_row = static_cast<std::uint64_t>(blockIdx.x) * size;
  const std::uint32_t first_column = blockIdx.y * size;
  for (std::uint32_t j = threadIdx.x; j < size * size; j += blockDim.x) {
    const std::uint64_t row = first_row + j % size;
    const std::uint32_t column = first_column + j / size;
    const bool is_stored = row < n_rows && column < n_stores;
    tile[j % size][j / size] = is_stored ? by_column[column * n_rows + row] : Code{0};
  }
  __syncthreads();
  for (std::uint32_t j = threadIdx.x; j < size * size; j += blockDim.x) {
    const std::uint64_t row = first_row + j / size;
    const std::uint32_t column = first_column + j % size;
    if (row < n_rows && column < row_codes)
      by_row[row * row_codes + column] = tile[j / size][j % size];
  }
}

}  // namespace arboost::cuda

extern "C" __global__ void encode_floats_bytes(arboost::cuda::EncodeWork work, const float* edges) {
  arboost::cuda::encode<float, std::uint32_t, std::uint8_t>(work, edges);
}
extern "C" __global__ void encode_floats_words(arboost::cuda::EncodeWork work, const float* edges) {
  arboost::cuda::encode<float, std::uint32_t, std::uint16_t>(work, edges);
}
extern "C" __global__ void encode_doubles_bytes(arboost::cuda::EncodeWork work,
                                                const double* edges) {
  arboost::cuda::encode<double, std::uint64_t, std::uint8_t>(work, edges);
}
extern "C" __global__ void encode_doubles_words(arboost::cuda::EncodeWork work,
                                                const double* edges) {
  arboost::cuda::encode<double, std::uint64_t, std::uint16_t>(work, edges);
}

extern "C" __global__ void write_rows_bytes(const std::uint8_t* by_column, std::uint64_t n_rows,
                                            std::uint32_t n_stores, std::uint32_t row_codes,
                                            std::uint8_t* by_row) {
  arboost::cuda::write_rows(by_column, n_rows, n_stores, row_codes, by_row);
}
extern "C" __global__ void write_rows_words(const std::uint16_t* by_column, std::uint64_t n_rows,
                                            std::uint32_t n_stores, std::uint32_t row_codes,
                                            std::uint16_t* by_row) {
  arboost::cuda::write_rows(by_column, n_rows, n_stores, row_codes, by_row);
}
