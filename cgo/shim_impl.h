// What the C++ files of the shim share. Nothing here is seen by Go.
#pragma once

#include "shim.h"

#include "llama.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct llama_grammar;

namespace quern {

// failure carries the code an entry returns.
struct failure : std::runtime_error {
    int code;
    failure(int code, const std::string & msg) : std::runtime_error(msg), code(code) {}
};

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
std::string message(const char * fmt, ...);

// capture collects the warnings and errors that llama.cpp logs on this thread,
// so that they become part of the returned error instead of a stray log line.
struct capture {
    std::string text;
    capture *   outer;
    capture();
    ~capture();
    capture(const capture &)             = delete;
    capture & operator=(const capture &) = delete;
};

// assert_guard turns a failed GGML_ASSERT on this thread into an exception.
// Only for code that runs on the calling thread alone: an exception thrown
// while other threads of a graph wait at a barrier would leave them there.
struct assert_guard {
    bool outer;
    assert_guard();
    ~assert_guard();
};

// check_amx takes AMX from ggml's list where it does not work.
void check_amx();

// guard runs one entry: nothing but a code leaves it.
template <class F> int guard(char * msg, F && f) noexcept {
    try {
        if (msg) {
            msg[0] = 0;
        }
        return f();
    } catch (const failure & e) {
        if (msg) {
            snprintf(msg, QUERN_MSG_SIZE, "%s", e.what());
        }
        return e.code;
    } catch (const std::bad_alloc &) {
        if (msg) {
            snprintf(msg, QUERN_MSG_SIZE, "out of memory");
        }
    } catch (const std::exception & e) {
        if (msg) {
            snprintf(msg, QUERN_MSG_SIZE, "%s", e.what());
        }
    } catch (...) {
        if (msg) {
            snprintf(msg, QUERN_MSG_SIZE, "unknown C++ exception");
        }
    }
    return QUERN_FAILED;
}

inline char * text_of(quern_error * err) { return err ? err->msg : nullptr; }

// rng is xoshiro256++: one per sampler, so that a seed gives the same draws
// whatever other sequences do.
struct rng {
    uint64_t s[4];
    void   seed(uint64_t seed);
    double uniform(); // [0, 1)
};

// candidate is a token with its (penalised) logit, later its weight.
struct candidate {
    int32_t id;
    float   logit;
};

// row is one row of logits.
struct row {
    const float * logits;
    int32_t       n;
    float         max;
    int32_t       argmax;
};

// find_max fills max and argmax; false if no logit is a number.
bool   find_max(row & r);
// exp_sum is the sum of exp((l-max)*scale) over the row; blocks, if given, gets
// the sums of its parts, for pick_at: the token at weight u from the start.
double  exp_sum(const row & r, float scale, std::vector<float> * blocks = nullptr);
int32_t pick_at(const row & r, float scale, const std::vector<float> & blocks, double u);
// collect gives the logits from floor up, in order of ids.
void   collect(const row & r, float floor, std::vector<candidate> & out);
// sort_part puts what belongs into [from, to) of the sorted list there, sorted;
// what belongs before must be there already.
void   sort_part(std::vector<candidate> & c, size_t from, size_t to);
// top_candidates gives the k largest logits, sorted, ties by lower id.
void   top_candidates(const row & r, size_t k, std::vector<candidate> & out);

// utf8_place is where bytes stand in a character.
struct utf8_place {
    uint8_t need = 0;                // bytes to come
    uint8_t low = 0x80, high = 0xbf; // what the next of them may be

    // take goes on with bytes; false if no character has them there.
    bool take(const std::string & bytes);
};

// is_guess: row i holds what the row before it is thought to sample.
bool is_guess(const quern_batch & b, int32_t i);
// sample_rows samples the first n rows where they want it, on all threads.
void sample_rows(quern_context & c, int32_t n);

struct grammar_rules;
struct vocab_text;

// grammar is a compiled GBNF grammar and where generation stands in it. With
// triggers it waits: the text before the first trigger is free, the trigger
// itself is the first that the grammar gets.
struct grammar {
    grammar(const quern_model & m, const char * text, const int32_t * tokens, int n_tokens, const char ** words,
            int n_words);
    ~grammar();
    grammar(const grammar &)             = delete;
    grammar & operator=(const grammar &) = delete;

    bool active() const { return !waiting; }
    bool allows(int32_t token);
    void mask(candidate * c, size_t n); // refused ones get -inf
    void all_allowed(std::vector<int32_t> & out);
    void accept(int32_t token);         // must be allowed if active

  private:
    const quern_model &           m;
    llama_grammar *               g = nullptr;
    size_t                        nullable_depth = 1;
    bool                          waiting;
    bool                          dead = false;
    std::vector<int32_t>          lazy_tokens;
    std::vector<std::string>      lazy_words;
    std::string                   seen; // tail of the text while waiting
    utf8_place                    place;
    std::vector<llama_token_data> scratch;

    void feed(int32_t token, const std::string & piece);
    bool is_text(int32_t token) const;
    bool spelled_out(int32_t token) const;
};

} // namespace quern

struct quern_model {
    llama_model *       model;
    const llama_vocab * vocab;
    int32_t             n_vocab;

    // Made when the first grammar needs it, see shim_mask.cpp.
    mutable std::once_flag                            text_once;
    mutable std::shared_ptr<const quern::vocab_text> text;
};

struct quern_sampler {
    const quern_model *  m;
    quern_sampler_params p; // pointers in it are not kept
    quern::rng           rng;

    std::vector<quern_bias>         bias;
    std::unique_ptr<quern::grammar> grammar;
    std::string                     broken; // why the grammar can't go on

    // Penalty counts: a ring of the last tokens and what was generated.
    std::vector<int32_t>                     ring;
    size_t                                   ring_head = 0;
    std::vector<std::pair<int32_t, int32_t>> window; // token -> count in the ring, sorted
    std::vector<std::pair<int32_t, int32_t>> output; // token -> count generated, sorted

    uint64_t     stamp = 0; // the step, of that context, that used it last
    const void * user  = nullptr;
    char         msg[QUERN_MSG_SIZE] = {0}; // of the last step

    std::vector<std::pair<int32_t, float>> undo;
    std::vector<quern::candidate>          cand;
    std::vector<float>                     blocks;
    std::vector<int32_t>                   allowed;

    int32_t sample(float * logits, int32_t n_vocab); // changes logits only meanwhile
    void    accept(int32_t token);
    void    remember(int32_t token);

  private:
    void    penalise(float * logits);
    void    restore(float * logits);
    int32_t pick(const quern::row & r);
    int32_t pick_from(std::vector<quern::candidate> & c, float max);
    void    cut_nucleus(std::vector<quern::candidate> & c, float max, double need);
    int32_t pick_allowed(quern::row r, float * logits, int32_t refused);
};

struct quern_context {
    quern_model *   m;
    llama_context * ctx  = nullptr;
    llama_memory_t  mem  = nullptr;
    void *          pool = nullptr;
    int             most_threads = 1;

    quern_context_params p;
    std::atomic<bool>    abort_flag{false};

    quern_batch                 batch{};
    std::vector<int32_t>        n_seq_id;
    std::vector<llama_seq_id *> seq_id;
    std::vector<int8_t>         logits;
    uint64_t                    step = 0;

    // Per sequence: the step that touched it last, its end before that step
    // and the next position.
    std::vector<uint64_t> touched;
    std::vector<int32_t>  before, next;
    std::vector<int32_t>  touched_list;

    uint64_t kv_bytes = 0, compute_bytes = 0, output_bytes = 0;
    char     msg[QUERN_MSG_SIZE] = {0};

    std::vector<uint8_t> arena; // the batch arrays

    // Of the step that is sampled: the logits of each row that wants a token,
    // and the first row of each sampler.
    std::vector<float *> row_logits;
    std::vector<int32_t> turns;

    // shares[a][b]: a and b may have cells in common.
    std::vector<std::vector<bool>> shares;

    int  n_stream() const { return p.unified ? 1 : p.n_seq_max; }
    bool resumable(int32_t seq, int32_t n) const;
    void forget_sharing(int32_t seq);
    void check_seq(int32_t seq, const char * what) const;
};
