// Types whose blocks are 32 values with one scale, and maybe a minimum:
// q4_0, q4_1, q5_0, q5_1, q8_0.
#include "kernel.h"

#if defined(QUERN_KERNELS)

#include <cstring>
#include <immintrin.h>

#define GGML_COMMON_DECL_CPP
#include "ggml-common.h"

namespace quern::kernel {
namespace {

// How far ahead of a body memory is fetched: the hardware's own prefetcher
// starts anew at each page and each group.
constexpr int ahead = 4096;

inline int32_t load32(const void * p) {
    int32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

inline float load_float(const void * p) {
    float v;
    memcpy(&v, p, sizeof(v));
    return v;
}

inline void store32(void * p, int32_t v) { memcpy(p, &v, sizeof(v)); }

inline __m512i load_line(const uint8_t * p) { return _mm512_load_si512(p); }

inline __m512 load_halves(const uint8_t * p) {
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i *>(p)));
}

// Nibbles are packed as the file has them: the low one of byte j is value j of
// the block, the high one value 16 + j. So line i holds values 4i to 4i+3 and
// 16+4i to 16+4i+3 of each row.
struct nibbles {
    static constexpr int bytes = 256;

    static __m512i common(const uint8_t *) { return _mm512_setzero_si512(); }

    template <int i> static __m512i values(const uint8_t * body, __m512i) {
        __m512i q = load_line(body + 64 * (i % 4));
        if (i >= 4) {
            q = _mm512_srli_epi16(q, 4);
        }
        return _mm512_and_si512(q, _mm512_set1_epi8(15));
    }

    static void pack(const uint8_t * qs, int row, uint8_t * body) {
        for (int i = 0; i < 4; i++) {
            memcpy(body + 64 * i + 4 * row, qs + 4 * i, 4);
        }
    }
};

// The fifth bits are one more line: bit i of a byte belongs to values 4i to
// 4i+3.
struct nibbles_and_bit {
    static constexpr int bytes = 320;

    static __m512i common(const uint8_t * body) { return load_line(body + nibbles::bytes); }

    template <int i> static __m512i values(const uint8_t * body, __m512i high) {
        const __m512i bit = i < 4 ? _mm512_slli_epi16(high, (4 - i) & 7) : _mm512_srli_epi16(high, (i - 4) & 7);
        constexpr int a_or_b_and_c = 0xf8;
        return _mm512_ternarylogic_epi32(nibbles::values<i>(body, high), bit, _mm512_set1_epi8(16), a_or_b_and_c);
    }

    static void pack(const uint8_t * qs, const uint8_t * qh, int row, uint8_t * body) {
        nibbles::pack(qs, row, body);
        const uint32_t bits = load32(qh);
        for (int j = 0; j < 4; j++) {
            body[nibbles::bytes + 4 * row + j] = _pext_u32(bits, 0x11111111u << j);
        }
    }
};

// Signed bytes are packed with 128 added: dpbusd multiplies unsigned by signed.
struct bytes_up {
    static constexpr int bytes = 512;

    static __m512i common(const uint8_t *) { return _mm512_setzero_si512(); }

    template <int i> static __m512i values(const uint8_t * body, __m512i) { return load_line(body + 64 * i); }

    static void pack(const int8_t * qs, int row, uint8_t * body) {
        for (int i = 0; i < 8; i++) {
            store32(body + 64 * i + 4 * row, load32(qs + 4 * i) ^ int32_t(0x80808080));
        }
    }
};

// A type is its file format, how its values are packed, and offset: what is
// taken off a packed value, or 0 for a type with minima.
struct type_q4_0 {
    using block                  = block_q4_0;
    using packed                 = nibbles;
    static constexpr int  offset = 8;
    static void pack(const block & b, int row, uint8_t * body) { packed::pack(b.qs, row, body); }
};

struct type_q4_1 {
    using block                  = block_q4_1;
    using packed                 = nibbles;
    static constexpr int  offset = 0;
    static void pack(const block & b, int row, uint8_t * body) { packed::pack(b.qs, row, body); }
};

struct type_q5_0 {
    using block                  = block_q5_0;
    using packed                 = nibbles_and_bit;
    static constexpr int  offset = 16;
    static void pack(const block & b, int row, uint8_t * body) { packed::pack(b.qs, b.qh, row, body); }
};

struct type_q5_1 {
    using block                  = block_q5_1;
    using packed                 = nibbles_and_bit;
    static constexpr int  offset = 0;
    static void pack(const block & b, int row, uint8_t * body) { packed::pack(b.qs, b.qh, row, body); }
};

struct type_q8_0 {
    using block                  = block_q8_0;
    using packed                 = bytes_up;
    static constexpr int  offset = 128;
    static void pack(const block & b, int row, uint8_t * body) { packed::pack(b.qs, row, body); }
};

// A head is 16 scales, then 16 minima if the type has them.
template <class T> constexpr size_t head_size = T::offset ? 32 : 64;

template <class T> void pack(const uint8_t * rows, size_t row_bytes, int64_t blocks, uint8_t * group) {
    using block          = typename T::block;
    uint8_t *    head    = group;
    uint8_t *    body    = group + format::line(head_size<T> * blocks);
    for (int64_t b = 0; b < blocks; b++) {
        for (int r = 0; r < group_rows; r++) {
            const auto * src = reinterpret_cast<const block *>(rows + r * row_bytes) + b;
            memcpy(head + 2 * r, src, 2);
            if (!T::offset) {
                memcpy(head + 32 + 2 * r, reinterpret_cast<const uint8_t *>(src) + 2, 2);
            }
            T::pack(*src, r, body);
        }
        head += head_size<T>;
        body += T::packed::bytes;
    }
}

// A column of a panel's block: 32 values, a scale, and what the packed values'
// offset adds to the sum of products (negated, an integer) or the values' sum
// (a float).
constexpr int scale_at = 32, sum_at = 36, column_size = 40;

// quantize is ggml's quantize_row_q8_0 or _q8_1, half precision included, for
// one block.
template <class T> void quantize(const float * x, uint8_t * block, int col, int width) {
    const __m512 lo = _mm512_loadu_ps(x), hi = _mm512_loadu_ps(x + 16);
    const float  max = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(lo), _mm512_abs_ps(hi)));
    const float  d   = max / 127.0f;
    const __m512 inv = _mm512_set1_ps(max != 0 ? 127.0f / max : 0.0f);

    const __m512i qlo = _mm512_cvtps_epi32(_mm512_mul_ps(lo, inv)), qhi = _mm512_cvtps_epi32(_mm512_mul_ps(hi, inv));
    auto *        q   = reinterpret_cast<__m128i *>(block + 32 * col);
    _mm_storeu_si128(q, _mm512_cvtsepi32_epi8(qlo));
    _mm_storeu_si128(q + 1, _mm512_cvtsepi32_epi8(qhi));

    const int   sum   = _mm512_reduce_add_epi32(_mm512_add_epi32(qlo, qhi));
    const float scale = _cvtsh_ss(_cvtss_sh(d, _MM_FROUND_TO_NEAREST_INT));
    memcpy(block + scale_at * width + 4 * col, &scale, 4);
    if (T::offset) {
        store32(block + sum_at * width + 4 * col, -T::offset * sum);
    } else {
        const float s = _cvtsh_ss(_cvtss_sh(d * float(sum), _MM_FROUND_TO_NEAREST_INT));
        memcpy(block + sum_at * width + 4 * col, &s, 4);
    }
}

// add_products adds values 4i to 4i+3 of each row times those of each column.
template <class P, int i, int groups, int width>
[[gnu::always_inline]] inline void add_products(const uint8_t * body, size_t group, const __m512i (&common)[groups],
                                                const uint8_t * panel, __m512i (&acc)[groups][width]) {
    __m512i w[groups];
    for (int g = 0; g < groups; g++) {
        w[g] = P::template values<i>(body + g * group, common[g]);
    }
#pragma GCC unroll 8
    for (int c = 0; c < width; c++) {
        const __m512i a = _mm512_set1_epi32(load32(panel + 32 * c + 4 * i));
        for (int g = 0; g < groups; g++) {
            acc[g][c] = _mm512_dpbusd_epi32(acc[g][c], w[g], a);
        }
    }
}

// block_products is what one block adds: integer sums of each row and column.
template <class T, int groups, int width>
[[gnu::always_inline]] inline void block_products(const uint8_t * body, size_t group, const uint8_t * panel,
                                                  __m512i (&acc)[groups][width]) {
    using P = typename T::packed;
    __m512i common[groups];
    for (int g = 0; g < groups; g++) {
        common[g] = P::common(body + g * group);
    }
#pragma GCC unroll 8
    for (int c = 0; c < width; c++) {
        const __m512i start = T::offset ? _mm512_set1_epi32(load32(panel + sum_at * width + 4 * c)) : _mm512_setzero_si512();
        for (int g = 0; g < groups; g++) {
            acc[g][c] = start;
        }
    }
    add_products<P, 0>(body, group, common, panel, acc);
    add_products<P, 1>(body, group, common, panel, acc);
    add_products<P, 2>(body, group, common, panel, acc);
    add_products<P, 3>(body, group, common, panel, acc);
    add_products<P, 4>(body, group, common, panel, acc);
    add_products<P, 5>(body, group, common, panel, acc);
    add_products<P, 6>(body, group, common, panel, acc);
    add_products<P, 7>(body, group, common, panel, acc);
}

template <class T, int groups, int width>
void multiply(const uint8_t * head, int64_t blocks, const uint8_t * panel, float * out, int64_t stride) {
    constexpr int   body_size = T::packed::bytes;
    const size_t    heads     = format::line(head_size<T> * blocks);
    const size_t    group     = heads + format::line(body_size * blocks);
    const uint8_t * body      = head + heads;
    __m512          sum[groups][width];
    for (int g = 0; g < groups; g++) {
        for (int c = 0; c < width; c++) {
            sum[g][c] = _mm512_setzero_ps();
        }
    }
    for (int64_t b = 0; b < blocks; b++) {
        for (int i = 0; i < body_size; i += 64) {
            _mm_prefetch(reinterpret_cast<const char *>(body) + (groups - 1) * group + i + ahead, _MM_HINT_T0);
        }
        __m512i acc[groups][width];
        block_products<T>(body, group, panel, acc);
        for (int g = 0; g < groups; g++) {
            const __m512 scale = load_halves(head + g * group);
            const __m512 least = T::offset ? scale : load_halves(head + g * group + 32);
#pragma GCC unroll 8
            for (int c = 0; c < width; c++) {
                const __m512 both = _mm512_mul_ps(scale, _mm512_set1_ps(load_float(panel + scale_at * width + 4 * c)));
                sum[g][c]         = _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[g][c]), both, sum[g][c]);
                if (!T::offset) {
                    const __m512 s = _mm512_set1_ps(load_float(panel + sum_at * width + 4 * c));
                    sum[g][c]      = _mm512_fmadd_ps(least, s, sum[g][c]);
                }
            }
        }
        head += head_size<T>;
        body += body_size;
        panel += column_size * width;
    }
    for (int g = 0; g < groups; g++) {
        for (int c = 0; c < width; c++) {
            _mm512_storeu_ps(out + c * stride + g * group_rows, sum[g][c]);
        }
    }
}

template <class T> constexpr format make(ggml_type type) {
    return {
        type,
        32,
        head_size<T>,
        T::packed::bytes,
        column_size,
        pack<T>,
        quantize<T>,
        {multiply<T, 1, 1>, multiply<T, 1, 2>, multiply<T, 1, 3>, multiply<T, 1, 4>, multiply<T, 1, 5>, multiply<T, 1, 6>,
         multiply<T, 1, 7>, multiply<T, 1, 8>},
        {multiply<T, 2, 1>, multiply<T, 2, 2>, multiply<T, 2, 3>, multiply<T, 2, 4>},
    };
}

} // namespace

extern const format q4_0 = make<type_q4_0>(GGML_TYPE_Q4_0);
extern const format q4_1 = make<type_q4_1>(GGML_TYPE_Q4_1);
extern const format q5_0 = make<type_q5_0>(GGML_TYPE_Q5_0);
extern const format q5_1 = make<type_q5_1>(GGML_TYPE_Q5_1);
extern const format q8_0 = make<type_q8_0>(GGML_TYPE_Q8_0);

} // namespace quern::kernel

#endif
