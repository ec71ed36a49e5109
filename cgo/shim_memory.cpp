// The memory of a context: copy, remove, shift, save and restore sequences.
#include "shim_impl.h"

#include "engine.h"
#include "llama-context.h"
#include "llama-model.h"

#include <algorithm>

using namespace quern;

void quern_context::check_seq(int32_t seq, const char * what) const {
    if (seq < 0 || seq >= p.n_seq_max) {
        throw failure(QUERN_BAD_ARG, message("%s %d is out of range [0, %d)", what, seq, p.n_seq_max));
    }
}

static void check_range(int32_t p0, int32_t p1) {
    if (p0 < 0 || p1 < p0) {
        throw failure(QUERN_BAD_ARG, message("positions [%d, %d) are not a range", p0, p1));
    }
}

// Copies and shifts are queued by llama.cpp until the next decode, where an
// abort would tear them: do them at once.
static void settle(quern_context * c) {
    c->abort_flag.store(false, std::memory_order_relaxed);
    c->ctx->memory_update(false);
}

int32_t quern_seq_pos_min(const quern_context * c, int32_t seq) {
    return seq < 0 || seq >= c->p.n_seq_max ? -1 : llama_memory_seq_pos_min(c->mem, seq);
}

int32_t quern_seq_pos_max(const quern_context * c, int32_t seq) {
    return seq < 0 || seq >= c->p.n_seq_max ? -1 : llama_memory_seq_pos_max(c->mem, seq);
}

// Models that keep one state per sequence (recurrent, hybrid) can't go back.
static bool one_state(const quern_context * c) {
    return llama_model_is_recurrent(c->m->model) || llama_model_is_hybrid(c->m->model);
}

bool quern_partial(const quern_context * c) { return !one_state(c); }

// resumable tells whether a sequence cut to n positions can be continued. With
// a sliding window, what the next token looks back at may be gone already.
bool quern_context::resumable(int32_t seq, int32_t n) const {
    const auto & hp = m->model->hparams;
    if (n == 0 || hp.swa_type == LLAMA_SWA_TYPE_NONE || hp.n_swa == 0) {
        return true;
    }
    const int32_t first = n - (int32_t) hp.n_swa + 1;
    return llama_memory_seq_pos_min(mem, seq) <= std::max(0, first);
}

void quern_context::forget_sharing(int32_t seq) {
    for (auto & set : shares) {
        set[seq] = false;
    }
    shares[seq].assign(shares.size(), false);
}

int quern_seq_remove(quern_context * c, int32_t seq, int32_t p0, int32_t p1) {
    return guard(c->msg, [&]() -> int {
        c->check_seq(seq, "sequence");
        check_range(p0, p1);
        const int32_t max = llama_memory_seq_pos_max(c->mem, seq);
        if (max < 0 || p0 == p1 || p0 > max) {
            return QUERN_OK;
        }
        if (p0 == 0 && p1 > max) {
            llama_memory_seq_rm(c->mem, seq, -1, -1);
            c->forget_sharing(seq);
            return QUERN_OK;
        }
        if (p1 > max && !c->resumable(seq, p0)) {
            throw failure(QUERN_UNSUPPORTED, message("sequence %d can't go back to %d: its sliding window begins at %d", seq,
                                                     p0, llama_memory_seq_pos_min(c->mem, seq)));
        }
        if (one_state(c) || !llama_memory_seq_rm(c->mem, seq, p0, p1)) {
            throw failure(QUERN_UNSUPPORTED, "this model's state can only be removed whole");
        }
        return QUERN_OK;
    });
}

int quern_seq_copy(quern_context * c, int32_t src, int32_t dst, int32_t p0, int32_t p1) {
    return guard(c->msg, [&]() -> int {
        c->check_seq(src, "source sequence");
        c->check_seq(dst, "target sequence");
        check_range(p0, p1);
        if (src == dst) {
            throw failure(QUERN_BAD_ARG, message("sequence %d can't be copied onto itself", src));
        }
        // In a unified cache a copy may also continue what dst holds.
        const int32_t end = llama_memory_seq_pos_max(c->mem, dst) + 1;
        if (end > 0 && (c->n_stream() > 1 || end != p0)) {
            throw failure(QUERN_BAD_ARG, message("target sequence %d is not empty: it ends at %d", dst, end));
        }
        const int32_t max = llama_memory_seq_pos_max(c->mem, src);
        if (max < 0 || p0 == p1 || p0 > max) {
            return QUERN_OK; // nothing there
        }
        const bool whole = p0 == 0 && p1 > max;
        if (!whole && one_state(c)) {
            throw failure(QUERN_UNSUPPORTED, "this model's state can only be copied whole");
        }
        if (!whole && end == 0 && !c->resumable(src, std::min(p1, max + 1))) {
            throw failure(QUERN_UNSUPPORTED, message("sequence %d can't be copied up to %d: its sliding window begins at %d",
                                                     src, p1, llama_memory_seq_pos_min(c->mem, src)));
        }
        if (c->n_stream() == 1) {
            llama_memory_seq_cp(c->mem, src, dst, p0, p1);
            for (size_t s = 0; s < c->shares.size(); s++) {
                if (s == (size_t) src || c->shares[src][s]) {
                    c->shares[dst][s] = c->shares[s][dst] = s != (size_t) dst;
                }
            }
        } else {
            // Only whole streams can be copied: cut the rest off afterwards.
            llama_memory_seq_cp(c->mem, src, dst, -1, -1);
            settle(c);
            if (p0 > 0) {
                llama_memory_seq_rm(c->mem, dst, 0, p0);
            }
            if (p1 <= max) {
                llama_memory_seq_rm(c->mem, dst, p1, -1);
            }
        }
        return QUERN_OK;
    });
}

int quern_seq_shift(quern_context * c, int32_t seq, int32_t p0, int32_t p1, int32_t delta) {
    return guard(c->msg, [&]() -> int {
        c->check_seq(seq, "sequence");
        check_range(p0, p1);
        if (!quern_can_shift(c)) {
            throw failure(QUERN_UNSUPPORTED, "this model's positions can't be shifted");
        }
        if (p0 + (int64_t) delta < 0 || p1 + (int64_t) delta > INT32_MAX) {
            throw failure(QUERN_BAD_ARG, message("shift by %d leaves the range of positions", delta));
        }
        for (size_t s = 0; s < c->shares.size(); s++) {
            if (c->shares[seq][s]) { // its positions would move, too
                throw failure(QUERN_UNSUPPORTED, message("sequence %d shares cells with %d", seq, (int) s));
            }
        }
        llama_memory_seq_add(c->mem, seq, p0, p1, delta);
        settle(c);
        return QUERN_OK;
    });
}

bool quern_can_shift(const quern_context * c) {
    return llama_memory_can_shift(c->mem) && !one_state(c) && c->m->model->hparams.n_pos_per_embd() == 1;
}

void quern_memory_clear(quern_context * c) {
    llama_memory_clear(c->mem, false);
    for (auto & set : c->shares) {
        set.assign(set.size(), false);
    }
}

int quern_seq_state_size(quern_context * c, int32_t seq, size_t * size) {
    return guard(c->msg, [&]() -> int {
        c->check_seq(seq, "sequence");
        *size = llama_state_seq_get_size(c->ctx, seq);
        return QUERN_OK;
    });
}

void quern_seq_state_layout(const quern_context * c, int32_t * head, int32_t * cell) {
    *head = engine::state_head_words;
    *cell = engine::state_cell_words(c->m->model->hparams);
}

int quern_seq_state_get(quern_context * c, int32_t seq, uint8_t * dst, size_t size, size_t * n) {
    return guard(c->msg, [&]() -> int {
        c->check_seq(seq, "sequence");
        capture log;
        *n = llama_state_seq_get_data(c->ctx, dst, size, seq);
        if (*n == 0) {
            throw failure(QUERN_FAILED, "state not saved: " + log.text);
        }
        return QUERN_OK;
    });
}

int quern_seq_state_set(quern_context * c, int32_t seq, const uint8_t * src, size_t size) {
    return guard(c->msg, [&]() -> int {
        c->check_seq(seq, "sequence");
        llama_memory_seq_rm(c->mem, seq, -1, -1);
        c->forget_sharing(seq);
        capture      log;
        assert_guard asserts;
        size_t       n = 0;
        try {
            n = llama_state_seq_set_data(c->ctx, src, size, seq);
        } catch (...) {
            llama_memory_seq_rm(c->mem, seq, -1, -1);
            throw;
        }
        if (n == 0 || n != size) {
            llama_memory_seq_rm(c->mem, seq, -1, -1);
            if (log.text.find(" available cells") != std::string::npos ||
                log.text.find("not enough cells") != std::string::npos) {
                throw failure(QUERN_NO_CELLS, "no free cells for this state");
            }
            throw failure(QUERN_FAILED, n == 0 ? "state not restored: " + log.text : "state not restored: it has bytes left over");
        }
        return QUERN_OK;
    });
}
