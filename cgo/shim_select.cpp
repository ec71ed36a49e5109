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

// exp for x <= 0, good to about 2e-7 relative; 0 below -87.
static inline float exp_neg(float x) {
    const float lo = x > -87.0f ? x : -87.0f;
    const float n  = std::floor(lo * 1.44269504f + 0.5f);
    const float f  = (lo - n * 0.693359375f) + n * 2.12194440e-4f;
    float       y  = 1.9875691500e-4f;
    y              = y * f + 1.3981999507e-3f;
    y              = y * f + 8.3334519073e-3f;
    y              = y * f + 4.1665795894e-2f;
    y              = y * f + 1.6666665459e-1f;
    y              = y * f + 5.0000001201e-1f;
    y              = y * f * f + f + 1.0f;
    const int32_t bits = ((int32_t) n + 127) << 23;
    float         p;
    memcpy(&p, &bits, sizeof(p));
    return x > -87.0f ? y * p : 0.0f; // false for NaN, too
}

double exp_sum(const row & r, float scale) {
    double total = 0;
    int    i     = 0;
    while (i + lanes <= r.n) {
        // Partial sums in float stay short, so they lose nothing that matters.
        float     acc[lanes] = {0};
        const int end        = std::min(r.n - lanes, i + 64 * lanes);
        for (; i <= end; i += lanes) {
            for (int j = 0; j < lanes; j++) {
                acc[j] += exp_neg((r.logits[i + j] - r.max) * scale);
            }
        }
        for (float v : acc) {
            total += v;
        }
    }
    for (; i < r.n; i++) {
        total += exp_neg((r.logits[i] - r.max) * scale);
    }
    return total;
}

static bool better(const candidate & a, const candidate & b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
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
