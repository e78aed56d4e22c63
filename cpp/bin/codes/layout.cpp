// Linear in features and codes; single-threaded.
#include "bin/codes/layout.h"

#include <algorithm>
#include <map>

namespace arboost {
namespace {

// Digit of a feature's code.
std::uint32_t digit_of(const FeatureStorage& storage, std::uint32_t code) {
  if (!storage.exclusive) return code;
  return code == storage.usual ? 0 : storage.first + storage.rank_of(code);
}

}  // namespace

std::deque<StoreSource> lay_out(const StoragePlan& plan, const Columns& table, Codes& codes) {
  codes.where.assign(codes.n_features, {});
  codes.digits.clear();
  std::deque<StoreSource> sources;
  for (const std::uint32_t f : plan.sparse) codes.where[f].kind = Storage::sparse;
  std::vector<std::vector<std::uint32_t>> columns = plan.columns();
  std::erase_if(columns, [&](const auto& column) {
    return column.size() == 1 && !plan.digits[column[0]].exclusive();
  });
  for (const auto& column : columns)
    for (const std::uint32_t d : column)
      for (const Share& share : plan.digits[d].shares)
        codes.where[share.feature].kind = Storage::shared;
  std::uint32_t store = 0;
  for (FeatureStorage& storage : codes.where)
    if (storage.kind == Storage::single) storage.store = store++;
  for (const auto& column : columns) {
    StoreSource& source = sources.emplace_back();
    source.store = store;
    std::uint32_t stride = 1;
    for (const std::uint32_t d : column) {
      const DigitPlan& digit = plan.digits[d];
      source.digits.push_back({stride, digit.radix(), digit.exclusive(), {}});
      std::uint32_t first = 1;
      for (const Share& share : digit.shares) {
        FeatureStorage& storage = codes.where[share.feature];
        storage = {Storage::shared,
                   digit.exclusive(),
                   store,
                   static_cast<std::uint32_t>(codes.digits.size()),
                   first,
                   share.usual,
                   share.n_codes - 1};
        first += share.n_codes - 1;
        const bool is_thin = arboost::is_thin(table, share.feature, codes.is_category);
        ShareSource& share_source = source.digits.back().shares.emplace_back();
        share_source.feature = share.feature;
        share_source.is_thin = is_thin;
        share_source.usual = share.usual;
        for (std::uint32_t code = 0; code < 256; ++code)
          share_source.digit_of[code] = static_cast<std::uint8_t>(digit_of(storage, code));
      }
      codes.digits.push_back({store, stride, digit.radix()});
      stride *= digit.radix();
    }
    ++store;
  }
  codes.n_stores = store;
  return sources;
}

bool check_layout(const std::deque<StoreSource>& sources, const Codes& codes, StoragePlan& plan) {
  const auto allowed =
      static_cast<std::size_t>(plan.max_conflict_rate * static_cast<double>(codes.n_rows));
  std::map<std::uint32_t, bool> moves_out;  // by feature that does not fit: out of its digit
  for (const StoreSource& source : sources)
    for (const DigitSource& digit : source.digits) {
      std::vector<std::pair<std::size_t, std::uint32_t>> clashes;
      std::size_t total = 0;
      for (const ShareSource& share : digit.shares) {
        const std::size_t n = share.clashes.load();
        if (n > 0) clashes.emplace_back(n, share.feature);
        total += n;
        const FeatureStorage& storage = codes.where[share.feature];
        if (codes.n_codes(share.feature) > storage.n_others + 1) moves_out[share.feature] = false;
      }
      std::sort(clashes.begin(), clashes.end(), std::greater<>());
      for (std::size_t i = 0; total > allowed; ++i) {
        total -= clashes[i].first;
        moves_out[clashes[i].second] = true;
      }
    }
  if (moves_out.empty()) return true;
  std::vector<DigitPlan> alone;
  for (DigitPlan& digit : plan.digits) {
    for (Share& share : digit.shares) {
      const auto wrong = moves_out.find(share.feature);
      if (wrong == moves_out.end()) continue;
      share.n_codes = codes.n_codes(share.feature);
      if (wrong->second) alone.push_back({{share}});
    }
    std::erase_if(digit.shares, [&](const Share& share) {
      const auto wrong = moves_out.find(share.feature);
      return wrong != moves_out.end() && wrong->second;
    });
    while (!digit.shares.empty() &&
           digit.radix() > 256) {  // no room for a missing value that the sample had not shown
      alone.push_back({{digit.shares.back()}});
      digit.shares.pop_back();
    }
  }
  std::erase_if(plan.digits, [](const DigitPlan& digit) { return digit.shares.empty(); });
  plan.digits.insert(plan.digits.end(), alone.begin(), alone.end());
  return false;
}

}  // namespace arboost
