// All programs at once, for an emulator of devices (tests/support/emulator).
#include "cuda/programs/binning.cu"
#include "cuda/programs/boosting.cu"
#include "cuda/programs/evaluation.cu"
#include "cuda/programs/forests.cu"
#include "cuda/programs/prediction.cu"
#include "cuda/programs/searches.cu"
#include "cuda/programs/shap.cu"
