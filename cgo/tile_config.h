// GCC 12 declares _tile_loadconfig to read 8 bytes, so the stores to the rest
// of the 64-byte shape are optimised away and the first tile instruction dies
// of SIGILL. Included before ggml's AMX backend.
#pragma once

#if defined(__AMX_INT8__)

#include <immintrin.h>

static inline void quern_tile_loadconfig(const void * p) {
    asm volatile("ldtilecfg %0" ::"m"(*static_cast<const char (*)[64]>(p)));
}
#undef _tile_loadconfig
#define _tile_loadconfig quern_tile_loadconfig

#endif
