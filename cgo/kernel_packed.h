// How 32 values of each of 16 rows lie in memory, and how they come into
// registers: line i of a register is values 4i to 4i+3 of each row, unsigned.
#pragma once

#include "kernel.h"

#if defined(QUERN_KERNELS)

#include <algorithm>
#include <cstring>
#include <immintrin.h>

namespace quern::kernel {

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

inline void store32(void * p, uint32_t v) { memcpy(p, &v, sizeof(v)); }

inline __m512i load_line(const uint8_t * p) { return _mm512_load_si512(p); }

inline __m512 load_halves(const uint8_t * p) {
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i *>(p)));
}

// to_bytes bounds what comes of values that are not finite, too, so that sums of
// it can't overflow.
inline __m512i to_bytes(__m512i v) {
    return _mm512_min_epi32(_mm512_max_epi32(v, _mm512_set1_epi32(-128)), _mm512_set1_epi32(127));
}

// ahead fetches what is read later into the second-level cache, and from one
// unit of groups on into the next: the hardware's own prefetcher starts anew at
// each page and each group, and then waits for memory.
template <int groups> class ahead {
    const uint8_t * w;
    size_t          group, step; // bytes of a group, of a block of it
    int64_t         blocks, far; // blocks of a group, how many of them ahead

  public:
    ahead(const uint8_t * w, size_t group, size_t step, int64_t blocks)
        : w(w), group(group), step(step), blocks(blocks), far(std::min<int64_t>(blocks, distance / (groups * step))) {}

    // fetch fetches the given one of so many parts of a block.
    template <int parts, int size> [[gnu::always_inline]] void fetch(int64_t block, int part) const {
        const int64_t   b = block + far;
        const uint8_t * p = w + b * step + (b < blocks ? 0 : (groups - 1) * group) + part * (size / parts);
        for (int g = 0; g < groups; g++) {
            for (int i = 0; i < size / parts; i += 64) {
                _mm_prefetch(reinterpret_cast<const char *>(p) + g * group + i, _MM_HINT_T1);
            }
        }
    }

  private:
    static constexpr size_t distance = 128 << 10;
};

// nibbles: 4 bits a value. Those of line i and of line 4+i share bytes.
struct nibbles {
    static constexpr int bytes = 256;

    struct common {
        explicit common(const uint8_t *) {}
        common() = default;
    };

    template <int i> static __m512i line(const uint8_t * body, const common &) {
        __m512i q = load_line(body + 64 * (i % 4));
        if (i >= 4) {
            q = _mm512_srli_epi16(q, 4);
        }
        return _mm512_and_si512(q, _mm512_set1_epi8(15));
    }

    static void pack(const uint8_t * v, int row, uint8_t * body) {
        for (int i = 0; i < 4; i++) {
            const uint32_t low = load32(v + 4 * i) & 0x0f0f0f0f, high = load32(v + 16 + 4 * i) & 0x0f0f0f0f;
            store32(body + 64 * i + 4 * row, low | high << 4);
        }
    }
};

// a | (b & mask)
inline __m512i or_masked(__m512i a, __m512i b, int mask) {
    return _mm512_ternarylogic_epi32(a, b, _mm512_set1_epi8(char(mask)), 0xf8);
}

// nibbles_and_bit: 5 bits a value. The fifth of line i is bit i of a byte in
// one more line.
struct nibbles_and_bit {
    static constexpr int bytes = nibbles::bytes + 64;

    struct common {
        __m512i high;
        explicit common(const uint8_t * body) : high(load_line(body + nibbles::bytes)) {}
        common() = default;
    };

    template <int i> static __m512i line(const uint8_t * body, const common & c) {
        const __m512i bit = i < 4 ? _mm512_slli_epi16(c.high, (4 - i) & 7) : _mm512_srli_epi16(c.high, (i - 4) & 7);
        return or_masked(nibbles::line<i>(body, {}), bit, 0x10);
    }

    static void pack(const uint8_t * v, int row, uint8_t * body) {
        nibbles::pack(v, row, body);
        uint32_t high = 0;
        for (int i = 0; i < 8; i++) {
            high |= (load32(v + 4 * i) >> 4 & 0x01010101) << i;
        }
        store32(body + nibbles::bytes + 4 * row, high);
    }
};

// nibbles_and_pair: 6 bits a value. The upper two of line i are bits 2*(i%4)
// and up of a byte in one of two more lines.
struct nibbles_and_pair {
    static constexpr int bytes = nibbles::bytes + 128;

    struct common {
        __m512i high[2];
        explicit common(const uint8_t * body)
            : high{load_line(body + nibbles::bytes), load_line(body + nibbles::bytes + 64)} {}
        common() = default;
    };

    template <int i> static __m512i line(const uint8_t * body, const common & c) {
        const __m512i h    = c.high[i / 4];
        const __m512i pair = i % 4 == 3 ? _mm512_srli_epi16(h, 2) : _mm512_slli_epi16(h, (4 - 2 * (i % 4)) & 7);
        return or_masked(nibbles::line<i>(body, {}), pair, 0x30);
    }

    static void pack(const uint8_t * v, int row, uint8_t * body) {
        nibbles::pack(v, row, body);
        for (int h = 0; h < 2; h++) {
            uint32_t high = 0;
            for (int i = 0; i < 4; i++) {
                high |= (load32(v + 16 * h + 4 * i) >> 4 & 0x03030303) << 2 * i;
            }
            store32(body + nibbles::bytes + 64 * h + 4 * row, high);
        }
    }
};


// whole_bytes: 8 bits a value.
struct whole_bytes {
    static constexpr int bytes = 512;

    struct common {
        explicit common(const uint8_t *) {}
        common() = default;
    };

    template <int i> static __m512i line(const uint8_t * body, const common &) { return load_line(body + 64 * i); }

    static void pack(const uint8_t * v, int row, uint8_t * body) {
        for (int i = 0; i < 8; i++) {
            store32(body + 64 * i + 4 * row, load32(v + 4 * i));
        }
    }
};

// add_line adds the products of line i with values 4i to 4i+3 of each column,
// which lie column bytes apart.
template <class P, int i, int column, int groups, int width>
[[gnu::always_inline]] inline void add_line(const uint8_t * body, size_t group, const typename P::common (&common)[groups],
                                            const uint8_t * x, __m512i (&acc)[groups][width]) {
    __m512i w[groups];
    for (int g = 0; g < groups; g++) {
        w[g] = P::template line<i>(body + g * group, common[g]);
    }
#pragma GCC unroll 8
    for (int c = 0; c < width; c++) {
        const __m512i a = _mm512_set1_epi32(load32(x + column * c + 4 * i));
        for (int g = 0; g < groups; g++) {
            acc[g][c] = _mm512_dpbusd_epi32(acc[g][c], w[g], a);
        }
    }
}

template <class P, int first, int last, int column, int groups, int width>
[[gnu::always_inline]] inline void add_lines(const uint8_t * body, size_t group, const typename P::common (&common)[groups],
                                             const uint8_t * x, __m512i (&acc)[groups][width]) {
    add_line<P, first, column>(body, group, common, x, acc);
    if constexpr (first < last) {
        add_lines<P, first + 1, last, column>(body, group, common, x, acc);
    }
}

// A format's products, from a template with parameters <groups, width>.
#define QUERN_PRODUCTS(multiply, T)                                                                                    \
    {multiply<T, 1, 1>, multiply<T, 1, 2>, multiply<T, 1, 3>, multiply<T, 1, 4>,                                       \
     multiply<T, 1, 5>, multiply<T, 1, 6>, multiply<T, 1, 7>, multiply<T, 1, 8>},                                      \
        {multiply<T, 2, 1>, multiply<T, 2, 2>, multiply<T, 2, 3>, multiply<T, 2, 4>}

} // namespace quern::kernel

#endif
