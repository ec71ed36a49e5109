// Sampling the rows of a step. Each row has its own sampler, so the threads that
// have just computed the step share the rows among them; guesses of one sampler
// follow one another on one thread.
#include "shim_impl.h"
#include "team.h"

#include <atomic>
#include <cmath>

namespace quern {

// Fewer samplers than this are done before other threads are awake.
static constexpr size_t worth_sharing = 4;

bool is_guess(const quern_batch & b, int32_t i) {
    return i > 0 && b.want[i] >= 0 && b.want[i - 1] >= 0 && b.seq[i] == b.seq[i - 1] && b.sampler[i] == b.sampler[i - 1];
}

static void logprobs(quern_context & c, int32_t i) {
    quern_batch & b = c.batch;
    row           r{c.row_logits[i], c.m->n_vocab, 0, 0};
    if (!find_max(r)) {
        return; // sampling says so
    }
    const double             log_sum = std::log(exp_sum(r, 1)) + r.max;
    std::vector<candidate> & top     = b.sampler[i]->cand;
    b.out_logprob[i]                 = (float) (r.logits[b.out_token[i]] - log_sum);
    top_candidates(r, b.want[i] - 1, top);
    b.out_ntop[i] = (int32_t) top.size();
    for (size_t k = 0; k < top.size(); k++) {
        b.top_token[(size_t) i * QUERN_TOP_MAX + k]   = top[k].id;
        b.top_logprob[(size_t) i * QUERN_TOP_MAX + k] = (float) (top[k].logit - log_sum);
    }
}

static void sample_row(quern_context & c, int32_t i) {
    quern_batch &   b   = c.batch;
    quern_sampler * smp = b.sampler[i];
    b.out_ntop[i]       = 0;
    b.out_logprob[i]    = 0;
    b.out_token[i]      = -1;
    b.out_code[i]       = guard(smp->msg, [&]() -> int {
        assert_guard asserts;
        if (!c.row_logits[i]) {
            throw failure(QUERN_DECODE, "llama.cpp has no logits for the row");
        }
        b.out_token[i] = smp->sample(c.row_logits[i], c.m->n_vocab);
        if (b.want[i] > 0) {
            logprobs(c, i);
        }
        smp->accept(b.out_token[i]);
        return QUERN_OK;
    });
}

// wrong_guess: the row before has no token, another one, or one that ends the
// text, after which a grammar takes nothing more.
static bool wrong_guess(const quern_context & c, int32_t i) {
    const quern_batch & b = c.batch;
    return b.out_code[i - 1] != QUERN_OK || b.out_token[i - 1] != b.token[i] || llama_vocab_is_eog(c.m->vocab, b.token[i]);
}

// sample_turn samples a row and the guesses that follow it.
static void sample_turn(quern_context & c, int32_t i, int32_t n) {
    quern_batch & b = c.batch;
    sample_row(c, i);
    for (i++; i < n && is_guess(b, i); i++) {
        if (wrong_guess(c, i)) {
            b.out_token[i] = -1;
            b.out_code[i]  = QUERN_SKIPPED;
        } else {
            sample_row(c, i);
        }
    }
}

// find_logits fills in where a row's logits are: asking llama.cpp may reorder
// them, so it comes before any row is sampled.
static void find_logits(quern_context & c, int32_t i) {
    c.row_logits[i] = nullptr;
    guard(nullptr, [&]() -> int {
        assert_guard asserts;
        c.row_logits[i] = llama_get_logits_ith(c.ctx, i);
        return QUERN_OK;
    });
}

void sample_rows(quern_context & c, int32_t n) {
    c.turns.clear();
    for (int32_t i = 0; i < n; i++) {
        if (c.batch.want[i] >= 0) {
            find_logits(c, i);
            if (!is_guess(c.batch, i)) {
                c.turns.push_back(i);
            }
        }
    }
    struct share {
        quern_context &     c;
        int32_t             n;
        std::atomic<size_t> next{0};
    } all{c, n};
    const auto work = [](void * data) {
        auto & s = *static_cast<share *>(data);
        for (size_t k; (k = s.next.fetch_add(1)) < s.c.turns.size();) {
            sample_turn(s.c, s.c.turns[k], s.n);
        }
    };
    run_together(work, &all, c.turns.size() < worth_sharing ? 1 : c.p.n_threads);
}

} // namespace quern

void quern_resample(quern_context * c, int32_t row) {
    quern::find_logits(*c, row);
    quern::sample_row(*c, row);
}
