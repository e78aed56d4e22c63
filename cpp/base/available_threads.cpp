// CPUs of this process: affinity mask and container quota.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>  // affinity mask
#endif

#include "base/parallel.h"

namespace arboost {
namespace {

double read_number(const char* path) {
  std::ifstream file(path);
  double value = -1;
  return file >> value ? value : -1;
}

// CPUs granted by the container's quota, or a large number where there is none.
double quota_cpus() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
  const double v1_quota = read_number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const double v1_period = read_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  return v1_quota > 0 && v1_period > 0 ? v1_quota / v1_period : 1e9;
}

}  // namespace

int available_threads() {
  int cpus = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
#if defined(__linux__)
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) cpus = CPU_COUNT(&mask);
#endif
  return std::max(1, std::min(cpus, static_cast<int>(std::ceil(std::min(quota_cpus(), 1e6)))));
}

}  // namespace arboost
