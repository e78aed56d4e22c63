// Searches of batches of nodes: categories, shared columns, many bins, vector leaves.
#include "grow/device/kernels/search/search_outputs.cu"
#include "grow/device/kernels/search/search_sets.cu"
