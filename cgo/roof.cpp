#include "roof.h"

#include "kernel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#if defined(QUERN_KERNELS)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int width = 64;
#elif defined(__AVX__)
constexpr int width = 32;
#else
constexpr int width = 16;
#endif

using floats = float __attribute__((vector_size(width)));
using words  = uint64_t __attribute__((vector_size(width)));

// Enough independent sums to hide the latency of two units.
constexpr int sums = 10;

// keep makes the compiler believe that a value is used and changed, so that it
// can neither leave out nor merge what is computed from it.
template <typename T> inline void keep(T & v) {
#if defined(__x86_64__)
    asm volatile("" : "+x"(v));
#else
    asm volatile("" : "+w"(v));
#endif
}

// Far more than a cache holds, shared out among the threads.
constexpr size_t read_size = size_t(512) << 20;

double read_share(const words * from, size_t n) {
    words  s[sums] = {};
    size_t i       = 0;
    for (; i + sums <= n; i += sums) {
        for (int j = 0; j < sums; j++) {
            s[j] += from[i + j];
        }
    }
    for (words & x : s) {
        keep(x);
    }
    return double(i * sizeof(words));
}

double multiply_floats() {
    constexpr int rounds = 4 << 20;
    floats        s[sums] = {}, a{}, b{};
    a += 0.999f;
    b += 0.001f;
    keep(a);
    for (floats & x : s) {
        keep(x);
    }
    for (int r = 0; r < rounds; r++) {
#pragma GCC unroll 10
        for (int i = 0; i < sums; i++) {
            s[i] = s[i] * a + b; // contracted where the machine has the instruction
        }
    }
    for (floats & x : s) {
        keep(x);
    }
    return double(rounds) * sums * (width / sizeof(float));
}

double multiply_bytes() {
#if defined(QUERN_KERNELS)
    constexpr int rounds = 4 << 20;
    __m512i       s[sums], a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(1);
    for (__m512i & x : s) {
        x = _mm512_setzero_si512();
        keep(x);
    }
    for (int r = 0; r < rounds; r++) {
#pragma GCC unroll 10
        for (int i = 0; i < sums; i++) {
            s[i] = _mm512_dpbusd_epi32(s[i], a, b);
        }
    }
    for (__m512i & x : s) {
        keep(x);
    }
    return double(rounds) * sums * 64;
#else
    return 0;
#endif
}

// rate runs a probe on all threads at once and returns their work a second, by
// the slowest of them.
double rate(int threads, const std::function<double(int)> & probe) {
    std::atomic<int>         waiting{threads};
    std::vector<double>      seconds(threads), done(threads);
    std::vector<std::thread> all;
    auto                     body = [&](int i) {
        for (waiting--; waiting > 0;) {
        }
        const auto start = std::chrono::steady_clock::now();
        done[i]          = probe(i);
        seconds[i]       = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    try {
        for (int i = 1; i < threads; i++) {
            all.emplace_back(body, i);
        }
    } catch (...) {
        waiting = 0; // lets those go that have started
        for (std::thread & t : all) {
            t.join();
        }
        throw;
    }
    body(0);
    for (std::thread & t : all) {
        t.join();
    }
    double work = 0;
    for (double d : done) {
        work += d;
    }
    return work / *std::max_element(seconds.begin(), seconds.end());
}

} // namespace

int quern_measure_roof(int threads, quern_roof * out) {
    try {
        *out                = {};
        const size_t       n = read_size / sizeof(words) / threads;
        std::vector<words> memory(n * threads, words{} + 1);
        for (int i = 0; i < 5; i++) {
            auto best = [&](double & to, const std::function<double(int)> & probe) { to = std::max(to, rate(threads, probe)); };
            best(out->read_bytes, [&](int t) { return read_share(memory.data() + t * n, n); });
            best(out->float_products, [](int) { return multiply_floats(); });
            best(out->int8_products, [](int) { return multiply_bytes(); });
        }
        return 0;
    } catch (...) {
        return -1;
    }
}
