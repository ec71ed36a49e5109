// What the program was compiled for against the CPU that it runs on. This file
// itself is compiled for the oldest CPU of the architecture, and its check runs
// before all other constructors: those of llama.cpp may already use what is
// missing.
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)

// name, compiler macro, cpuid leaf, subleaf, register (0 eax .. 3 edx), bit,
// bits of XCR0 that the system must have enabled. AMX is not in the list: it is
// used only after it has been tried, see shim_amx.cpp.
#define YMM 0x06u
#define ZMM 0xe6u
#define FEATURES(X)                                                 \
    X("sse3", __SSE3__, 1, 0, 2, 0, 0)                              \
    X("ssse3", __SSSE3__, 1, 0, 2, 9, 0)                            \
    X("sse4.1", __SSE4_1__, 1, 0, 2, 19, 0)                         \
    X("sse4.2", __SSE4_2__, 1, 0, 2, 20, 0)                         \
    X("sse4a", __SSE4A__, 0x80000001u, 0, 2, 6, 0)                  \
    X("movbe", __MOVBE__, 1, 0, 2, 22, 0)                           \
    X("popcnt", __POPCNT__, 1, 0, 2, 23, 0)                         \
    X("lzcnt", __LZCNT__, 0x80000001u, 0, 2, 5, 0)                  \
    X("bmi1", __BMI__, 7, 0, 1, 3, 0)                               \
    X("bmi2", __BMI2__, 7, 0, 1, 8, 0)                              \
    X("adx", __ADX__, 7, 0, 1, 19, 0)                               \
    X("gfni", __GFNI__, 7, 0, 2, 8, 0)                              \
    X("fma", __FMA__, 1, 0, 2, 12, YMM)                             \
    X("f16c", __F16C__, 1, 0, 2, 29, YMM)                           \
    X("avx", __AVX__, 1, 0, 2, 28, YMM)                             \
    X("avx2", __AVX2__, 7, 0, 1, 5, YMM)                            \
    X("avx-vnni", __AVXVNNI__, 7, 1, 0, 4, YMM)                     \
    X("avx512f", __AVX512F__, 7, 0, 1, 16, ZMM)                     \
    X("avx512dq", __AVX512DQ__, 7, 0, 1, 17, ZMM)                   \
    X("avx512ifma", __AVX512IFMA__, 7, 0, 1, 21, ZMM)               \
    X("avx512cd", __AVX512CD__, 7, 0, 1, 28, ZMM)                   \
    X("avx512bw", __AVX512BW__, 7, 0, 1, 30, ZMM)                   \
    X("avx512vl", __AVX512VL__, 7, 0, 1, 31, ZMM)                   \
    X("avx512vbmi", __AVX512VBMI__, 7, 0, 2, 1, ZMM)                \
    X("avx512vbmi2", __AVX512VBMI2__, 7, 0, 2, 6, ZMM)              \
    X("avx512vnni", __AVX512VNNI__, 7, 0, 2, 11, ZMM)               \
    X("avx512bitalg", __AVX512BITALG__, 7, 0, 2, 12, ZMM)           \
    X("avx512vpopcntdq", __AVX512VPOPCNTDQ__, 7, 0, 2, 14, ZMM)     \
    X("avx512fp16", __AVX512FP16__, 7, 0, 3, 23, ZMM)               \
    X("avx512bf16", __AVX512BF16__, 7, 1, 0, 5, ZMM)

// WANTED(__X__) is 1 if the macro is defined (as 1), else 0.
#define WANTED(macro)            WANTED_(macro)
#define WANTED_(macro)           WANTED__(WANTED_IS_##macro)
#define WANTED__(is)             WANTED_SECOND(is 1, 0, 0)
#define WANTED_SECOND(a, b, ...) b
#define WANTED_IS_1              0,

// Evaluated here, because the pragma below takes the macros back.
enum {
#define X(name, macro, leaf, sub, reg, bit, state) wanted_##leaf##_##sub##_##reg##_##bit = WANTED(macro),
    FEATURES(X)
#undef X
};

#pragma GCC target("arch=x86-64")

#include <cpuid.h>

struct feature {
    const char * name;
    int          wanted;
    unsigned     leaf, subleaf, reg, bit, state;
};

static const struct feature features[] = {
#define X(name, macro, leaf, sub, reg, bit, state) {name, wanted_##leaf##_##sub##_##reg##_##bit, leaf, sub, reg, bit, state},
    FEATURES(X)
#undef X
};

static unsigned xcr0(void) {
    unsigned r[4];
    if (!__get_cpuid(1, &r[0], &r[1], &r[2], &r[3]) || !(r[2] & (1u << 27))) {
        return 0;
    }
    unsigned lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return lo;
}

static int has(const struct feature * f, unsigned state) {
    unsigned r[4] = {0};
    if ((state & f->state) != f->state) {
        return 0;
    }
    return __get_cpuid_count(f->leaf, f->subleaf, &r[0], &r[1], &r[2], &r[3]) && (r[f->reg] >> f->bit & 1);
}

// list appends the names of wanted features: all of them, or the missing ones.
static void list(char * buf, size_t size, int missing) {
    const unsigned state = xcr0();
    size_t         used  = 0;
    buf[0]               = 0;
    for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
        const struct feature * f = &features[i];
        const size_t           n = strlen(f->name);
        if (f->wanted && !(missing && has(f, state)) && used + n + 2 < size) {
            if (used) {
                buf[used++] = ' ';
            }
            memcpy(buf + used, f->name, n + 1);
            used += n;
        }
    }
}

void quern_cpu_missing(char * buf, size_t size) { list(buf, size, 1); }
void quern_cpu_built_for(char * buf, size_t size) { list(buf, size, 0); }

__attribute__((constructor(101))) static void check(void) {
    char missing[512];
    list(missing, sizeof(missing), 1);
    if (missing[0] == 0) {
        return;
    }
    static const char head[] = "fatal: this program was compiled for a CPU with: ";
    static const char tail[] = "\nThis one lacks it. Build it here (make build), or portably (make build PORTABLE=1).\n";
    if (write(2, head, sizeof(head) - 1) < 0 || write(2, missing, strlen(missing)) < 0 || write(2, tail, sizeof(tail) - 1) < 0) {
        _exit(3);
    }
    _exit(2);
}

#else

void quern_cpu_missing(char * buf, size_t size) {
    (void) size;
    buf[0] = 0;
}

void quern_cpu_built_for(char * buf, size_t size) {
    (void) size;
    buf[0] = 0;
}

#endif
