// The C face of this package: flat structs and calls that return a code.
// No C++ exception leaves any of these calls; every argument is checked here
// before llama.cpp sees it, because a failed GGML_ASSERT ends the process.
#ifndef QUERN_SHIM_H
#define QUERN_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    QUERN_OK          = 0,
    QUERN_FAILED      = 1, // see the message
    QUERN_BAD_ARG     = 2,
    QUERN_NO_CELLS    = 3, // nothing was changed
    QUERN_ABORTED     = 4,
    QUERN_DECODE      = 5, // the batch failed; its sequences are back where they were
    QUERN_CANCELLED   = 6,
    QUERN_UNSUPPORTED = 7,
    QUERN_SKIPPED     = 8, // a guess that did not come true, see quern_step
};

#define QUERN_MSG_SIZE 1024
#define QUERN_TOP_MAX  20 // alternatives a row may ask for

typedef struct quern_error {
    char msg[QUERN_MSG_SIZE];
} quern_error;

typedef struct quern_model   quern_model;
typedef struct quern_context quern_context;
typedef struct quern_sampler quern_sampler;

// ---- process ----

void quern_init(void); // log and abort hooks; idempotent
void quern_log_level(int level); // ggml level below which lines are dropped in C

// CPU features that the program was compiled for: those missing here, all.
void quern_cpu_missing(char * buf, size_t size);
void quern_cpu_built_for(char * buf, size_t size);
int  quern_amx(void); // 1 in use, 0 compiled in but not working, -1 not compiled in

// ---- model ----

typedef struct quern_load_params {
    const char * path;
    bool         mmap;
    bool         vocab_only;
    bool         repack;  // extra buffer types (weight repacking, AMX)
    bool         kernels; // ours among them, see kernel.h
    uintptr_t    handle; // cgo.Handle for quernProgress, 0 = none
} quern_load_params;

typedef struct quern_model_info {
    uint64_t n_params, size, copied;
    int32_t  n_ctx_train, n_embd, n_layer, n_head, n_head_kv, n_swa, n_vocab;
    int32_t  rope_type, vocab_type;
    bool     recurrent, hybrid, diffusion, encoder, decoder;
    char     desc[128];
} quern_model_info;

int  quern_model_load(const quern_load_params * p, quern_model ** out, quern_error * err);
void quern_model_free(quern_model * m);
int  quern_model_get_info(const quern_model * m, quern_model_info * out, quern_error * err);
int  quern_model_meta_count(const quern_model * m);
// Length of the value (key) or -1; the text is cut at size.
int  quern_model_meta_key(const quern_model * m, int i, char * buf, size_t size);
int  quern_model_meta_val(const quern_model * m, int i, char * buf, size_t size);
const char * quern_model_chat_template(const quern_model * m);

// Bytes that the copy of a weight takes which products are computed from; 0 if
// they read it as the file has it. type is ggml's number; experts: how many of
// the third dimension a token uses, 0 for a plain product.
int64_t quern_weight_copy(int32_t type, const int64_t ne[4], int32_t experts);

// ---- vocabulary ----

enum {
    QUERN_TOKEN_CONTROL      = 1,
    QUERN_TOKEN_USER_DEFINED = 2,
    QUERN_TOKEN_UNKNOWN      = 4,
    QUERN_TOKEN_BYTE         = 8,
    QUERN_TOKEN_UNUSED       = 16,
    QUERN_TOKEN_EOG          = 32,
};

typedef struct quern_vocab_info {
    int32_t bos, eos, eot, sep, nl, pad;
    bool    add_bos, add_eos;
} quern_vocab_info;

void quern_vocab_get_info(const quern_model * m, quern_vocab_info * out);
// Bytes and flags of all tokens: token i is buf[offset[i]:offset[i+1]]. *need
// is set to the size of buf; nothing is written to buf if cap is below it.
int  quern_vocab_table(const quern_model * m, uint32_t * offset, uint8_t * flags, char * buf, size_t cap,
                       size_t * need, quern_error * err);
// *n: how many tokens there are (may exceed cap, then call again). deep: use a
// deep stack. Any thread.
int  quern_tokenize(const quern_model * m, const char * text, int32_t len, bool special, bool deep,
                    int32_t * out, int32_t cap, int32_t * n, quern_error * err);

// ---- context ----

typedef struct quern_context_params {
    int32_t n_ctx, n_batch, n_ubatch, n_seq_max;
    int32_t n_threads, n_threads_batch, poll;
    int32_t kv_type;    // 0 f16, 1 q8_0, 2 q4_0
    int32_t flash_attn; // -1 auto, 0 off, 1 on
    bool    unified;
    bool    small_swa; // cells of sliding-window layers only for the windows
} quern_context_params;

// Rows of one step, in C memory, filled by Go.
typedef struct quern_batch {
    int32_t          cap;
    int32_t        * token;
    int32_t        * pos;
    int32_t        * seq;
    int32_t        * want; // -1 none, 0 a token, 1+n: with logprob and n alternatives
    quern_sampler ** sampler;

    int32_t * out_token;
    int32_t * out_code; // QUERN_OK or why this row has no token
    float   * out_logprob;
    int32_t * out_ntop;
    int32_t * top_token; // [cap][QUERN_TOP_MAX]
    float   * top_logprob;
    int64_t   sample_ns; // of the last step: what sampling took of it
} quern_batch;

int  quern_context_new(quern_model * m, const quern_context_params * p, quern_context ** out, quern_error * err);
void quern_context_free(quern_context * c);
// Threads of later steps, for one row and for more: at most those it was made with.
int  quern_context_set_threads(quern_context * c, int32_t n, int32_t n_batch);
void quern_context_get_params(const quern_context * c, quern_context_params * out);
void quern_context_get_memory(const quern_context * c, uint64_t * kv, uint64_t * compute, uint64_t * output);
quern_batch * quern_context_batch(quern_context * c);
const char *  quern_context_message(const quern_context * c); // of the last call that failed
const char *  quern_sampler_message(const quern_sampler * s);

// Decodes n rows and samples those that want a token. A row that follows one of
// the same sequence with the same sampler, both wanting a token, is a guess: it
// is sampled only if its token is what was sampled there, otherwise it and the
// guesses after it are QUERN_SKIPPED and the sampler knows nothing of them.
int  quern_step(quern_context * c, int32_t n);
void quern_abort(quern_context * c); // any thread
void quern_resample(quern_context * c, int32_t row); // for tests: sample a row of the last step again

// ---- memory ----

// Messages: quern_context_message. Positions are [p0, p1).

bool    quern_partial(const quern_context * c);   // tails can be removed
bool    quern_can_shift(const quern_context * c);
int     quern_seq_copy(quern_context * c, int32_t src, int32_t dst, int32_t p0, int32_t p1);
int     quern_seq_remove(quern_context * c, int32_t seq, int32_t p0, int32_t p1);
int     quern_seq_shift(quern_context * c, int32_t seq, int32_t p0, int32_t p1, int32_t delta);
int32_t quern_seq_pos_min(const quern_context * c, int32_t seq); // -1: empty
int32_t quern_seq_pos_max(const quern_context * c, int32_t seq);
void    quern_memory_clear(quern_context * c);
int     quern_seq_state_size(quern_context * c, int32_t seq, size_t * size);
// Words of 4 bytes before the streams of a state, and of each of its cells:
// position, number of sequences, what else an engine keeps, the sequence.
void    quern_seq_state_layout(const quern_context * c, int32_t * head, int32_t * cell);
int     quern_seq_state_get(quern_context * c, int32_t seq, uint8_t * dst, size_t size, size_t * n);
int     quern_seq_state_set(quern_context * c, int32_t seq, const uint8_t * src, size_t size);

// ---- sampling ----

typedef struct quern_bias {
    int32_t token;
    float   bias;
} quern_bias;

typedef struct quern_sampler_params {
    float    temperature, top_p, min_p;
    int32_t  top_k;
    uint64_t seed;
    float    presence, frequency, repeat;
    int32_t  repeat_last_n;

    const char    *  grammar; // NULL = none; the rule "root" starts it
    const int32_t *  lazy_tokens;
    int32_t          n_lazy_tokens;
    const char   **  lazy_words;
    int32_t          n_lazy_words;
    const quern_bias * bias;
    int32_t          n_bias;
} quern_sampler_params;

int  quern_sampler_new(quern_model * m, const quern_sampler_params * p, quern_sampler ** out, quern_error * err);
void quern_sampler_free(quern_sampler * s);
int  quern_sampler_prompt(quern_sampler * s, const int32_t * tokens, int32_t n);
// Takes tokens as if they had been sampled; an error if the grammar refuses one.
int  quern_sampler_accept(quern_sampler * s, const int32_t * tokens, int32_t n, quern_error * err);

// Test support: feeds tokens to a sampler's grammar; how many it took before
// the first that it refuses.
int quern_sampler_grammar_accepts(quern_sampler * s, const int32_t * tokens, int32_t n, int32_t * taken, quern_error * err);

// Test support: how many tokens the quick way of finding what a grammar allows
// judges differently from the slow one; *n: how many it allows.
int quern_sampler_grammar_compare(quern_sampler * s, int32_t * differ, int32_t * n, quern_error * err);

#ifdef __cplusplus
}
#endif
#endif
