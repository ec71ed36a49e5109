// Test support: one attention through a ggml graph.
#ifndef QUERN_KERNEL_ATTENTION_CHECK_H
#define QUERN_KERNEL_ATTENTION_CHECK_H

#include "shim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_attention_shape {
    int64_t dim, heads, heads_kv, rows, cells;
    int     threads;
} quern_attention_shape;

// q is [heads][rows][dim], k and v are [heads_kv][cells][dim], visible is
// [rows][cells], out is [rows][heads][dim].
int quern_attention(const quern_attention_shape * s, const float * q, const float * k, const float * v,
                    const uint8_t * visible, float * out, quern_error * err);

#ifdef __cplusplus
}
#endif
#endif
