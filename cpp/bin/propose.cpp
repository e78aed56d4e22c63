// Cost a cell and round: an addition at the code's sum, and a look-up of its bin; with codes in a
// file, one pass over it, and the look-up in each window of later passes. Parallel over features,
// then over rows.
#include "bin/propose.h"

#include <cmath>
#include <cstring>
#include <numeric>  // iota
#include <stdexcept>
#include <string>
#include <utility>

#include "table/columns.h"  // block_rows

namespace arboost {
namespace {

// Sums of features that are made in one pass.
constexpr std::size_t most_sums = std::size_t{1} << 23, most_features = 32768;

// The codes after which to cut, from the running sums of their weights: the codes of a part but the
// largest weigh at most eps of the total together, and apart from that parts are as few as can be.
// A code of twice that weight or more is a part of its own.
std::vector<std::size_t> cuts(std::span<const std::int64_t> sums, double eps) {
  const double total = sums.empty() ? 0.0 : static_cast<double>(sums.back());
  const auto most = static_cast<std::int64_t>(std::floor(eps * total));
  std::vector<std::size_t> chosen;
  std::size_t last = 0;                // code of a weight above 0
  std::int64_t below = 0, before = 0;  // weights up to that code, and up to the last cut
  for (std::size_t code = 0; code < sums.size(); ++code) {
    const std::int64_t weight = sums[code] - below;
    if (weight == 0) continue;
    if (below > 0 && (weight >= 2 * most || below - before > most)) {
      chosen.push_back(last);
      before = below;
    }
    last = code;
    below = sums[code];
  }
  return chosen;
}

// Each part but the last weighs more than eps, up to rounding.
double most_bins(double eps) {
  return 1 + std::floor(1 / (eps - 1e-8));
}

// Calls use(Code{}) for the type of codes of this width.
template <class Use>
void with_code(int width, Use use) {
  width == 1 ? use(std::uint8_t{}) : use(std::uint16_t{});
}

}  // namespace

// Windows of proposed codes, translated from those of the table's file.
class Proposal::Windows final : public StoredRows {
 public:
  explicit Windows(const Proposal& of) : of_(of) {}

  std::size_t window_rows() const override { return of_.table_.window_rows(); }
  std::uint64_t checksum() const override { return of_.table_.stored_rows->checksum(); }
  void each_window(std::size_t begin, std::size_t end,
                   FunctionRef<void(const RowWindow&)> use) const override {
    const Codes& table = of_.table_;
    const std::size_t stride = of_.codes_.row_stride;
    const std::size_t rows = std::min(window_rows(), table.n_rows);
    Buffer<std::uint8_t> row_buffer(rows * stride + padding);
    Team team(of_.n_threads_);
    table.each_window(begin, end, [&](const RowWindow& window) {
      const RowWindow proposed{
          window.begin, window.end, {row_buffer.data(), window.begin * stride}};
      team.for_chunks(
          0, window.end - window.begin, block_rows, [&](std::size_t first, std::size_t last, int) {
            translate(window, window.begin + first, window.begin + last, row_buffer.data());
          });
      use(proposed);
    });
  }

 private:
  // Rows [begin, end) of a window; `out` has those of the window from its first on.
  void translate(const RowWindow& window, std::size_t begin, std::size_t end,
                 std::uint8_t* out) const {
    with_code(of_.table_.width, [&]<class From>(From) {
      with_code(of_.codes_.width, [&]<class To>(To) {
        const std::size_t from_stride = of_.table_.row_stride, stride = of_.codes_.row_stride;
        for (std::size_t f = 0; f < of_.table_.n_features; ++f) {
          const std::uint16_t* bins = of_.bin_of_code_[f].data();
          const std::uint8_t* from =
              window.row_zero + of_.table_.where[f].store * sizeof(From) + begin * from_stride;
          std::uint8_t* to = out + f * sizeof(To) + (begin - window.begin) * stride;
          for (std::size_t row = begin; row < end; ++row, from += from_stride, to += stride)
            *reinterpret_cast<To*>(to) =
                static_cast<To>(bins[*reinterpret_cast<const From*>(from)]);
        }
      });
    });
  }

  const Proposal& of_;
};

Proposal::Proposal(const Codes& table, double eps, Collective& workers, bool elsewhere)
    : table_(table), eps_(eps), workers_(workers) {
  if (!(eps > 1e-6 && eps < 1))
    throw std::invalid_argument("sketch_eps is " + std::to_string(eps) +
                                ", but it must be above 0.000001 and below 1.");
  if (!table.is_plain() || table.sparse.size() > 0 || table.width > 2)
    throw std::invalid_argument("bins are proposed for features with stored columns of their own");
  codes_.n_rows = table.n_rows;
  codes_.n_features = table.n_features;
  codes_.has_missing = table.has_missing;
  codes_.give_own_places();
  codes_.is_category = table.is_category;
  const double most = most_bins(eps);
  std::uint32_t widest = 1;
  for (std::size_t f = 0; f < table.n_features; ++f) {
    const double most_bins = table.has_levels(f) ? 255 : most;  // categories keep their levels
    codes_.n_bins.push_back(
        static_cast<std::uint32_t>(std::min(most_bins, static_cast<double>(table.n_bins[f]))));
    widest = std::max(widest, codes_.n_bins[f]);
  }
  codes_.width = widest <= 255 ? 1 : 2;
  codes_.row_stride = (codes_.n_features * static_cast<std::size_t>(codes_.width) + 7) / 8 * 8;
  codes_.number_slots();
  codes_.edges.resize(table.n_features);
  first_sum_.resize(table.n_features);
  last_codes_.resize(table.n_features);
  bin_of_code_.resize(table.n_features);
  std::size_t n_sums = most_sums + 1;  // of the last group
  for (std::size_t f = 0; f < table.n_features; ++f) {
    if (!changes(f)) {
      last_codes_[f].resize(table.n_bins[f]);
      std::iota(last_codes_[f].begin(), last_codes_[f].end(), 0u);
      spread(f);
      codes_.edges[f] = table.edges[f];
      continue;
    }
    const std::size_t n = table.n_bins[f] + std::size_t{1};
    if (n_sums + n > most_sums || groups_.back().size() == most_features) {
      groups_.emplace_back();
      n_sums = 0;
    }
    first_sum_[f] = static_cast<std::uint32_t>(std::exchange(n_sums, n_sums + n));
    groups_.back().push_back(f);
    sums_.resize(std::max(sums_.size(), n_sums));
  }
  keeps_all_ = groups_.empty() && codes_.width == table.width;
  if (keeps_all_ || elsewhere) return;
  if (table.stored_rows) {
    codes_.stored_rows = std::make_shared<Windows>(*this);
    return;
  }
  codes_.by_row = Buffer<std::uint8_t>(codes_.bytes_by_row());
  codes_.by_column = Buffer<std::uint8_t>(codes_.bytes_by_column());
  std::memset(codes_.by_row.data(), 0, codes_.by_row.size());
}

Proposal::~Proposal() = default;

bool Proposal::changes(std::size_t feature) const {
  return codes_.n_bins[feature] < table_.n_bins[feature];
}

void Proposal::update(std::span<const std::uint32_t> hessians, Team& team) {
  n_threads_ = team.size();
  update(team, [&](std::span<const std::size_t> features, std::span<std::int64_t> sums) {
    sum_hessians(features, hessians, sums, team);
  });
  if (codes_.by_row.size() > 0) encode(team);
}

void Proposal::update(Team& team, Add add) {
  for (const auto& group : groups_) {
    std::fill(sums_.begin(), sums_.end(), 0);
    add(group, sums_);
    if (workers_.size() > 1) workers_.sum(Collective::Numbers(sums_));
    team.for_chunks(0, group.size(), 1, [&](std::size_t i, std::size_t, int) {
      const std::size_t f = group[i];
      propose(f, {sums_.data() + first_sum_[f], table_.n_bins[f]});
      spread(f);
    });
  }
  started_ = true;
}

void Proposal::sum_hessians(std::span<const std::size_t> features,
                            std::span<const std::uint32_t> hessians, std::span<std::int64_t> all,
                            Team& team) const {
  // Rows of a window are read in blocks by all features of a chunk.
  const std::size_t grain = table_.stored_rows
                                ? (features.size() + static_cast<std::size_t>(team.size()) - 1) /
                                      static_cast<std::size_t>(team.size())
                                : 1;
  const auto add = [&]<class Code>(Code) {
    table_.each_window(0, table_.n_rows, [&](const RowWindow& window) {
      team.for_chunks(0, features.size(), grain, [&](std::size_t first, std::size_t last, int) {
        for (std::size_t begin = window.begin; begin < window.end; begin += 16 * block_rows) {
          const std::size_t end = std::min(begin + 16 * block_rows, window.end);
          for (std::size_t i = first; i < last; ++i) {
            const std::uint32_t store = table_.where[features[i]].store;
            const ColumnCodes column = table_.stored_rows
                                           ? table_.codes_in_rows(store, window.row_zero)
                                           : table_.column_codes(store);
            std::int64_t* sums = all.data() + first_sum_[features[i]];
            for (std::size_t row = begin; row < end; ++row)
              sums[*reinterpret_cast<const Code*>(column.first + row * column.stride)] +=
                  hessians[row];
          }
        }
      });
    });
  };
  with_code(table_.width, add);
}

// Fills last_codes_ and the edges. The sums of the codes become running ones.
void Proposal::propose(std::size_t feature, std::span<std::int64_t> sums) {
  for (std::size_t code = 1; code < sums.size(); ++code) sums[code] += sums[code - 1];
  std::vector<std::size_t> chosen = cuts(sums, eps_);
  // Where nearly all hessians vanish, rounding may ask for a few cuts more than there is room for.
  for (double eps = eps_; chosen.size() >= codes_.n_bins[feature];) chosen = cuts(sums, eps *= 1.1);
  auto& last_codes = last_codes_[feature];
  auto& edges = codes_.edges[feature];
  last_codes.clear();
  edges.clear();
  for (const std::size_t code : chosen) {
    last_codes.push_back(static_cast<std::uint32_t>(code));
    edges.push_back(table_.edges[feature][code]);
  }
  last_codes.push_back(table_.n_bins[feature] - 1);
}

// The bin of every code, and of missing values.
void Proposal::spread(std::size_t feature) {
  auto& bins = bin_of_code_[feature];
  bins.clear();
  const auto& last_codes = last_codes_[feature];
  for (std::size_t bin = 0; bin < last_codes.size(); ++bin)
    bins.resize(last_codes[bin] + std::size_t{1}, static_cast<std::uint16_t>(bin));
  bins.push_back(static_cast<std::uint16_t>(codes_.n_bins[feature]));
}

// The proposed codes in memory. Features that change, and in the first round all.
void Proposal::encode(Team& team) {
  std::vector<std::size_t> features;
  for (std::size_t f = 0; f < table_.n_features; ++f)
    if (!encoded_ || changes(f)) features.push_back(f);
  encoded_ = true;
  with_code(table_.width, [&]<class From>(From) {
    with_code(codes_.width, [&]<class To>(To) {
      team.for_chunks(0, features.size(), 1, [&](std::size_t i, std::size_t, int) {
        const std::size_t f = features[i];
        const std::uint16_t* bins = bin_of_code_[f].data();
        const From* from = table_.column<From>(table_.where[f].store);
        To* to = codes_.column<To>(f);
        for (std::size_t row = 0; row < codes_.n_rows; ++row)
          to[row] = static_cast<To>(bins[from[row]]);
      });
      const std::size_t stride = codes_.row_stride;
      team.for_chunks(
          0, codes_.n_rows, 16 * block_rows, [&](std::size_t first, std::size_t last, int) {
            for (std::size_t begin = first; begin < last; begin += block_rows) {
              const std::size_t end = std::min(begin + block_rows, last);
              for (const std::size_t f : features) {
                const To* from = codes_.column<To>(f);
                std::uint8_t* cell = codes_.by_row.data() + begin * stride + f * sizeof(To);
                for (std::size_t row = begin; row < end; ++row, cell += stride)
                  *reinterpret_cast<To*>(cell) = from[row];
              }
            }
          });
    });
  });
}

}  // namespace arboost
