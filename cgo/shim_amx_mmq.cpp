// The kernels of ggml's AMX backend, see shim_amx.cpp.
#if defined(__AMX_INT8__) && defined(__AVX512VNNI__) && !defined(QUERN_ENGINE_CURRENT)
#include "tile_config.h"

#include "ggml/src/ggml-cpu/amx/mmq.cpp"
#endif
