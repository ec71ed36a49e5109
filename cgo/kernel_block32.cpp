// Types whose blocks are 32 values with one scale, and maybe a minimum:
// q4_0, q4_1, q5_0, q5_1, q8_0.
#include "kernel_packed.h"

#if defined(QUERN_KERNELS)

#define GGML_COMMON_DECL_C
#include "ggml-common.h"

namespace quern::kernel {
namespace {

// A type is its block in a file, how it is packed, which values it has, and its
// offset: what is taken off a packed value, 0 for a type with minima.
template <class Block, class Packed, int Offset> struct type {
    using block                 = Block;
    using packed                = Packed;
    static constexpr int offset = Offset;
    static constexpr int head   = Offset ? 32 : 64; // 16 scales, 16 minima
};

__m256i split(const uint8_t * nibbles) {
    const __m128i q = _mm_loadu_si128(reinterpret_cast<const __m128i *>(nibbles));
    return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(q, 4), q), _mm256_set1_epi8(15));
}

template <class Block, int Offset> struct type4 : type<Block, nibbles, Offset> {
    static __m256i values(const Block & b) { return split(b.qs); }
};

template <class Block, int Offset> struct type5 : type<Block, nibbles_and_bit, Offset> {
    static __m256i values(const Block & b) {
        return _mm256_or_si256(split(b.qs), _mm256_maskz_set1_epi8(load32(b.qh), 16));
    }
};

struct type8 : type<block_q8_0, whole_bytes, 128> {
    static __m256i values(const block_q8_0 & b) {
        return _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(b.qs)), _mm256_set1_epi8(-128));
    }
};

template <class T> void pack(const uint8_t * rows, size_t row_bytes, int64_t blocks, uint8_t * group) {
    uint8_t * head = group;
    uint8_t * body = group + format::line(T::head * blocks);
    for (int64_t b = 0; b < blocks; b++) {
        for (int r = 0; r < group_rows; r++) {
            const auto * src = reinterpret_cast<const typename T::block *>(rows + r * row_bytes) + b;
            memcpy(head + 2 * r, src, 2);
            if (!T::offset) {
                memcpy(head + 32 + 2 * r, reinterpret_cast<const uint8_t *>(src) + 2, 2);
            }
            alignas(32) uint8_t v[32];
            _mm256_store_si256(reinterpret_cast<__m256i *>(v), T::values(*src));
            T::packed::pack(v, r, body);
        }
        head += T::head;
        body += T::packed::bytes;
    }
}

// A column of a panel's block: 32 values, a scale, and a sum: what the offset of
// the packed values adds to the sum of products, negated (an integer), or the
// sum of the values (a float).
constexpr int scale_at = 32, sum_at = 36, column_size = 40;

float to_half(float f) { return _cvtsh_ss(_cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT)); }

// quantize is ggml's quantize_row_q8_0 or _q8_1, half precision included.
template <class T> void quantize(const float * x, uint8_t * block, int col, int width) {
    const __m512 lo = _mm512_loadu_ps(x), hi = _mm512_loadu_ps(x + 16);
    const float  max = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(lo), _mm512_abs_ps(hi)));
    const float  d   = max / 127.0f;
    const __m512 inv = _mm512_set1_ps(max != 0 ? 127.0f / max : 0.0f);

    const __m512i qlo = to_bytes(_mm512_cvtps_epi32(_mm512_mul_ps(lo, inv)));
    const __m512i qhi = to_bytes(_mm512_cvtps_epi32(_mm512_mul_ps(hi, inv)));
    auto *        q   = reinterpret_cast<__m128i *>(block + 32 * col);
    _mm_storeu_si128(q, _mm512_cvtepi32_epi8(qlo));
    _mm_storeu_si128(q + 1, _mm512_cvtepi32_epi8(qhi));

    const int   sum   = _mm512_reduce_add_epi32(_mm512_add_epi32(qlo, qhi));
    const float scale = to_half(d), of_values = to_half(d * float(sum));
    memcpy(block + scale_at * width + 4 * col, &scale, 4);
    if (T::offset) {
        store32(block + sum_at * width + 4 * col, -T::offset * sum);
    } else {
        memcpy(block + sum_at * width + 4 * col, &of_values, 4);
    }
}

// block_products are a block's integer sums of products.
template <class T, int groups, int width>
[[gnu::always_inline]] inline void block_products(const uint8_t * body, size_t group, const uint8_t * panel,
                                                  __m512i (&acc)[groups][width]) {
    typename T::packed::common common[groups];
    for (int g = 0; g < groups; g++) {
        common[g] = typename T::packed::common(body + g * group);
    }
#pragma GCC unroll 8
    for (int c = 0; c < width; c++) {
        const __m512i start = T::offset ? _mm512_set1_epi32(load32(panel + sum_at * width + 4 * c)) : _mm512_setzero_si512();
        for (int g = 0; g < groups; g++) {
            acc[g][c] = start;
        }
    }
    add_lines<typename T::packed, 0, 7, 32>(body, group, common, panel, acc);
}

// add_block scales a block's integer sums and adds them to the products.
template <class T, int groups, int width>
[[gnu::always_inline]] inline void add_block(const uint8_t * head, size_t group, const uint8_t * panel,
                                             const __m512i (&acc)[groups][width], __m512 (&sum)[groups][width]) {
    for (int g = 0; g < groups; g++) {
        const __m512 scale = load_halves(head + g * group);
        const __m512 least = T::offset ? scale : load_halves(head + g * group + 32);
#pragma GCC unroll 8
        for (int c = 0; c < width; c++) {
            const __m512 both = _mm512_mul_ps(scale, _mm512_set1_ps(load_float(panel + scale_at * width + 4 * c)));
            sum[g][c]         = _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[g][c]), both, sum[g][c]);
            if (!T::offset) {
                const __m512 of_values = _mm512_set1_ps(load_float(panel + sum_at * width + 4 * c));
                sum[g][c]              = _mm512_fmadd_ps(least, of_values, sum[g][c]);
            }
        }
    }
}

template <class T, int groups, int width>
void multiply(const uint8_t * w, int64_t blocks, const uint8_t * panel, float * out, int64_t stride) {
    constexpr int   size  = T::packed::bytes;
    const size_t    heads = format::line(T::head * blocks), group = heads + format::line(size * blocks);
    const uint8_t * head  = w;
    const uint8_t * body  = w + heads;

    const ahead<groups> next(w, group, T::head + size, blocks);
    __m512              sum[groups][width];
    for (int g = 0; g < groups; g++) {
        for (int c = 0; c < width; c++) {
            sum[g][c] = _mm512_setzero_ps();
        }
    }
    for (int64_t b = 0; b < blocks; b++) {
        __m512i acc[groups][width];
        next.template fetch<1, T::head + size>(b, 0);
        block_products<T>(body, group, panel, acc);
        add_block<T>(head, group, panel, acc, sum);
        head += T::head;
        body += size;
        panel += column_size * width;
    }
    for (int g = 0; g < groups; g++) {
        for (int c = 0; c < width; c++) {
            _mm512_storeu_ps(out + c * stride + g * group_rows, sum[g][c]);
        }
    }
}

template <class T> constexpr format make(ggml_type t) {
    return {t, 32, T::head, T::packed::bytes, column_size, pack<T>, quantize<T>, QUERN_PRODUCTS(multiply, T)};
}

} // namespace

extern const format q4_0 = make<type4<block_q4_0, 8>>(GGML_TYPE_Q4_0);
extern const format q4_1 = make<type4<block_q4_1, 0>>(GGML_TYPE_Q4_1);
extern const format q5_0 = make<type5<block_q5_0, 16>>(GGML_TYPE_Q5_0);
extern const format q5_1 = make<type5<block_q5_1, 0>>(GGML_TYPE_Q5_1);
extern const format q8_0 = make<type8>(GGML_TYPE_Q8_0);

} // namespace quern::kernel

#endif
