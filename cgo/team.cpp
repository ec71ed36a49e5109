// The threads that compute a graph, and how they wait for each other.
//
// ggml meets at a barrier some hundred times a step, and waits there by
// spinning. On a machine that is shared, a spinning thread burns the time slice
// that its late partner needs, and a step takes a hundred times as long. So
// ggml is compiled for OpenMP, and these few functions stand in for the OpenMP
// runtime: they are all that GCC calls for the pragmas in ggml-cpu.c,
// ggml-quants.c and amx/common.h (see "The libgomp ABI" in GCC's manual of
// libgomp). A thread spins for about as long as a wait takes on a quiet machine
// and sleeps after that; once a wait has shown that the cores are shared, it
// sleeps almost at once, for a while.
//
// Without -DGGML_USE_OPENMP (other compilers) ggml brings its own threads, and
// what run_together is given runs on the calling thread alone.
#include "team.h"

#if defined(GGML_USE_OPENMP) && defined(__linux__)

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

namespace {

using steady = std::chrono::steady_clock;

constexpr uint32_t spin_calm  = 400;  // pauses, some 20 µs
constexpr uint32_t spin_noisy = 8;
// A partner that is this late has lost its core: no part of a graph is so uneven.
constexpr auto     preempted  = std::chrono::microseconds(400);
// Waits for which the cores count as shared afterwards: about two steps.
constexpr int32_t  noisy_for  = 1500;

inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

// A number that threads wait on to change.
struct alignas(64) Gate {
    std::atomic<uint32_t> turn{0};
    std::atomic<uint32_t> sleepers{0};

    // Order matters: a sleeper counts itself before it looks at turn (in the
    // kernel), open changes turn before it looks for sleepers.
    void open() {
        turn.fetch_add(1);
        if (sleepers.load() > 0) {
            syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
        }
    }

    // True if it took so long that the wait was not for work.
    bool wait(uint32_t seen, uint32_t spin) {
        for (uint32_t i = 0; i < spin; i++) {
            if (turn.load(std::memory_order_acquire) != seen) {
                return false;
            }
            relax();
        }
        const auto start = steady::now();
        sleepers.fetch_add(1);
        while (turn.load() == seen) {
            syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
        }
        sleepers.fetch_sub(1);
        return steady::now() - start > preempted;
    }
};

// n threads that run regions together: whoever calls, and n-1 of its own, which
// sleep between regions and live as long as the process.
struct Team {
    int  n = 1;
    Gate start;   // a region begins
    Gate barrier; // all members have arrived
    std::atomic<int>     arrived{0};
    std::atomic<int32_t> noisy{0};      // barriers for which the cores count as shared
    std::atomic<bool>    single{false}; // a member has taken the single section
    bool                 even = true;   // the region's parts take about as long: lateness means shared cores

    void (*body)(void *) = nullptr;
    void * data          = nullptr;

    void meet() {
        const uint32_t seen   = barrier.turn.load(std::memory_order_acquire);
        const int32_t  shared = noisy.load(std::memory_order_relaxed);
        if (arrived.fetch_add(1) == n - 1) {
            arrived.store(0, std::memory_order_relaxed);
            single.store(false, std::memory_order_relaxed);
            if (shared > 0) {
                noisy.store(shared - 1, std::memory_order_relaxed);
            }
            barrier.open();
        } else if (barrier.wait(seen, shared > 0 ? spin_noisy : spin_calm) && even) {
            noisy.store(noisy_for, std::memory_order_relaxed);
        }
    }
};

thread_local Team * team   = nullptr; // of the region that this thread is in
thread_local int    member = 0;

struct Seat {
    Team * team;
    int    member;
};

void * work(void * arg) {
    const Seat seat = *static_cast<Seat *>(arg);
    delete static_cast<Seat *>(arg);
    team   = seat.team;
    member = seat.member;
    for (uint32_t seen = 0;; seen++) {
        team->start.wait(seen, spin_noisy);
        team->body(team->data);
        team->meet();
    }
    return nullptr;
}

// Teams that no region is using. Contexts on different threads compute at the
// same time, each with a team; there are never more than did so at once.
std::mutex          idle_mutex;
std::vector<Team *> idle;

Team * acquire(int n) {
    {
        std::lock_guard<std::mutex> lock(idle_mutex);
        for (auto it = idle.begin(); it != idle.end(); ++it) {
            if ((*it)->n == n) {
                Team * t = *it;
                idle.erase(it);
                return t;
            }
        }
    }
    auto * t = new Team;
    // Signals are for the threads of Go.
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (; t->n < n; t->n++) {
        auto *    seat = new Seat{t, t->n};
        pthread_t id;
        if (pthread_create(&id, nullptr, work, seat) != 0) {
            delete seat;
            break; // ggml asks how many there are
        }
        pthread_detach(id);
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    return t;
}

void release(Team * t) {
    std::lock_guard<std::mutex> lock(idle_mutex);
    idle.push_back(t);
}

std::mutex atomic_mutex;

void run(void (*body)(void *), void * data, unsigned n, bool even) {
    Team * const outer  = team;
    const int    before = member;
    if (n == 1 || outer != nullptr) {
        team   = nullptr;
        member = 0;
        body(data);
    } else {
        team    = acquire(static_cast<int>(n));
        member  = 0;
        team->body = body;
        team->data = data;
        team->even = even;
        team->start.open();
        body(data);
        team->meet();
        release(team);
    }
    team   = outer;
    member = before;
}

} // namespace

void quern::run_together(void (*body)(void *), void * data, int threads) {
    run(body, data, static_cast<unsigned>(std::max(1, threads)), false);
}

extern "C" {

void GOMP_parallel(void (*body)(void *), void * data, unsigned n, unsigned) {
    run(body, data, n ? n : static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))), true);
}

void GOMP_barrier(void) {
    if (team != nullptr) {
        team->meet();
    }
}

bool GOMP_single_start(void) { return team == nullptr || !team->single.exchange(true); }

// Loops and atomic sections stand only where ggml makes tables to quantise with,
// which serving a model never needs: one member does the whole loop.
bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long, long, long * from, long * to) {
    *from = start;
    *to   = end;
    return member == 0 && start != end;
}

bool GOMP_loop_nonmonotonic_dynamic_next(long *, long *) { return false; }

void GOMP_loop_end(void) { GOMP_barrier(); }

void GOMP_atomic_start(void) { atomic_mutex.lock(); }

void GOMP_atomic_end(void) { atomic_mutex.unlock(); }

int omp_get_num_threads(void) { return team == nullptr ? 1 : team->n; }

int omp_get_thread_num(void) { return member; }

} // extern "C"
#else

void quern::run_together(void (*body)(void *), void * data, int) { body(data); }

#endif
