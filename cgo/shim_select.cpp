// Selection over a whole row of logits. A row has up to 256k entries, so
// everything here is one pass that the compiler can vectorise.
#include "shim_impl.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace quern {

static uint64_t splitmix(uint64_t & x) {
    uint64_t z = (x += 0x9e3779b97f4a7c15ull);
    z          = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z          = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

void rng::seed(uint64_t seed) {
    for (auto & v : s) {
        v = splitmix(seed);
    }
}

static inline uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

double rng::uniform() {
    const uint64_t r = rotl(s[0] + s[3], 23) + s[0];
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return (double) (r >> 11) * 0x1.0p-53;
}

constexpr int lanes = 32;
constexpr int block = 1024;

bool find_max(row & r) {
    float m[lanes];
    for (float & v : m) {
        v = -INFINITY;
    }
    int i = 0;
    for (; i + lanes <= r.n; i += lanes) {
        for (int j = 0; j < lanes; j++) {
            const float x = r.logits[i + j];
            m[j]          = x > m[j] ? x : m[j];
        }
    }
    float max = -INFINITY;
    for (float v : m) {
        max = v > max ? v : max;
    }
    for (; i < r.n; i++) {
        max = r.logits[i] > max ? r.logits[i] : max;
    }
    r.max    = max;
    r.argmax = -1;
    for (i = 0; i + lanes <= r.n; i += lanes) {
        int hit = 0;
        for (int j = 0; j < lanes; j++) {
            hit |= r.logits[i + j] == max;
        }
        if (hit) {
            break;
        }
    }
    for (; i < r.n; i++) {
        if (r.logits[i] == max) {
            r.argmax = i;
            break;
        }
    }
    return std::isfinite(max) && r.argmax >= 0;
}

// Vectors of the compiler, which splits them for narrower registers: it does
// not find the way into the loop below by itself.
constexpr int width = 16;
typedef float   vfloat __attribute__((vector_size(4 * width)));
typedef int32_t vint __attribute__((vector_size(4 * width)));

// exp for x <= 0, good to about 2e-7 relative; 0 below -87 and for NaN.
static inline __attribute__((always_inline)) void exp_neg(vfloat & x) {
    const vint   in = x > -87.0f;
    const vfloat y  = in ? x : vfloat{} - 87.0f;
    const vfloat t  = y * 1.44269504f + 12582912.0f; // rounds: 1.5 * 2^23
    const vfloat n  = t - 12582912.0f;
    const vfloat f  = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    vfloat       e  = vfloat{} + 1.9875691500e-4f;
    e               = e * f + 1.3981999507e-3f;
    e               = e * f + 8.3334519073e-3f;
    e               = e * f + 4.1665795894e-2f;
    e               = e * f + 1.6666665459e-1f;
    e               = e * f + 5.0000001201e-1f;
    e               = e * f * f + f + 1.0f;
    const vint two  = ((vint) t - 0x4b400000 + 127) << 23; // 2^n
    x               = in ? e * (vfloat) two : vfloat{};
}

static inline __attribute__((always_inline)) float exp_neg1(float x) {
    vfloat v = vfloat{} + x;
    exp_neg(v);
    return v[0];
}

// sum_block is the sum of exp((l-max)*scale) over n logits, n being small
// enough for float sums.
static float sum_block(const float * l, int n, float max, float scale) {
    vfloat acc = {};
    int    i   = 0;
    for (; i + width <= n; i += width) {
        vfloat x;
        memcpy(&x, l + i, sizeof(x));
        x = (x - max) * scale;
        exp_neg(x);
        acc += x;
    }
    float total = 0;
    for (int j = 0; j < width; j++) {
        total += acc[j];
    }
    for (; i < n; i++) {
        total += exp_neg1((l[i] - max) * scale);
    }
    return total;
}

double exp_sum(const row & r, float scale, std::vector<float> * blocks) {
    double total = 0;
    if (blocks) {
        blocks->clear();
    }
    for (int i = 0; i < r.n; i += block) {
        const float s = sum_block(r.logits + i, std::min(block, r.n - i), r.max, scale);
        total += s;
        if (blocks) {
            blocks->push_back(s);
        }
    }
    return total;
}

int32_t pick_at(const row & r, float scale, const std::vector<float> & blocks, double u) {
    int last = r.argmax; // where rounding leaves u above 0 at the end
    for (size_t k = 0; k < blocks.size(); k++) {
        if (u >= blocks[k]) {
            u -= blocks[k];
            continue;
        }
        const int end = std::min(r.n, (int) (k + 1) * block);
        for (int i = (int) k * block; i < end; i++) {
            const float w = exp_neg1((r.logits[i] - r.max) * scale);
            if (w > 0) {
                last = i;
                u -= w;
                if (u < 0) {
                    return i;
                }
            }
        }
        return last;
    }
    return last;
}

void collect(const row & r, float floor, std::vector<candidate> & out) {
    out.clear();
    int i = 0;
    for (; i + lanes <= r.n; i += lanes) {
        int hit = 0;
        for (int j = 0; j < lanes; j++) {
            hit |= r.logits[i + j] >= floor;
        }
        if (!hit) {
            continue;
        }
        for (int j = 0; j < lanes; j++) {
            if (r.logits[i + j] >= floor) {
                out.push_back({i + j, r.logits[i + j]});
            }
        }
    }
    for (; i < r.n; i++) {
        if (r.logits[i] >= floor) {
            out.push_back({i, r.logits[i]});
        }
    }
}

static bool better(const candidate & a, const candidate & b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

void sort_part(std::vector<candidate> & c, size_t from, size_t to) {
    if (to < c.size()) {
        std::nth_element(c.begin() + from, c.begin() + to, c.end(), better);
    }
    std::sort(c.begin() + from, c.begin() + std::min(to, c.size()), better);
}

void top_candidates(const row & r, size_t k, std::vector<candidate> & out) {
    out.clear();
    if (k == 0) {
        return;
    }
    k               = std::min(k, (size_t) r.n);
    const size_t cap = k + std::max<size_t>(k, 256); // room before the next cut
    float        floor = -INFINITY;
    auto         cut   = [&] {
        if (out.size() > k) {
            std::nth_element(out.begin(), out.begin() + (k - 1), out.end(), better);
            out.resize(k);
            floor = std::min_element(out.begin(), out.end(), [](auto & a, auto & b) { return a.logit < b.logit; })->logit;
        }
    };
    int i = 0;
    for (; i + lanes <= r.n; i += lanes) {
        int hit = 0;
        for (int j = 0; j < lanes; j++) {
            hit |= r.logits[i + j] > floor;
        }
        if (!hit) {
            continue;
        }
        for (int j = 0; j < lanes; j++) {
            if (r.logits[i + j] > floor) {
                out.push_back({i + j, r.logits[i + j]});
            }
        }
        if (out.size() >= cap) {
            cut();
        }
    }
    for (; i < r.n; i++) {
        if (r.logits[i] > floor) {
            out.push_back({i, r.logits[i]});
        }
    }
    cut();
    std::sort(out.begin(), out.end(), better);
}

} // namespace quern
