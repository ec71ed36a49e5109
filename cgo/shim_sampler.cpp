// Sampling of one row. The order is llama.cpp's default one: penalties and
// bias, top_k, top_p, min_p, temperature, draw. top_p and min_p look at the
// distribution before temperature. Temperature 0 is the argmax.
#include "shim_impl.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace quern {

static void count(std::vector<std::pair<int32_t, int32_t>> & v, int32_t token, int32_t delta) {
    auto it = std::lower_bound(v.begin(), v.end(), std::make_pair(token, INT32_MIN));
    if (it == v.end() || it->first != token) {
        if (delta > 0) {
            v.insert(it, {token, delta});
        }
    } else if ((it->second += delta) <= 0) {
        v.erase(it);
    }
}

static int32_t draw(rng & g, std::vector<candidate> & c, float max, float temperature) {
    double total = 0;
    for (auto & x : c) {
        x.logit = std::exp((x.logit - max) / temperature);
        total += x.logit;
    }
    double u = g.uniform() * total;
    for (const auto & x : c) {
        u -= x.logit;
        if (u < 0) {
            return x.id;
        }
    }
    for (size_t i = c.size(); i-- > 0;) {
        if (c[i].logit > 0) {
            return c[i].id; // rounding left u just above 0
        }
    }
    return c.front().id;
}

} // namespace quern

using namespace quern;

void quern_sampler::remember(int32_t token) {
    if (ring.empty()) {
        return;
    }
    int32_t & slot = ring[ring_head];
    if (slot >= 0) {
        count(window, slot, -1);
    }
    slot      = token;
    ring_head = (ring_head + 1) % ring.size();
    count(window, token, 1);
}

void quern_sampler::accept(int32_t token) {
    remember(token);
    if (p.presence != 0 || p.frequency != 0) {
        count(output, token, 1);
    }
    if (grammar) {
        grammar->accept(token);
    }
}

void quern_sampler::penalise(float * logits) {
    undo.clear();
    auto change = [&](int32_t token, float to) {
        undo.push_back({token, logits[token]});
        logits[token] = to;
    };
    if (p.repeat != 1.0f) {
        for (const auto & w : window) {
            const float l = logits[w.first];
            change(w.first, l <= 0 ? l * p.repeat : l / p.repeat);
        }
    }
    for (const auto & o : output) {
        change(o.first, logits[o.first] - (float) o.second * p.frequency - p.presence);
    }
    for (const auto & b : bias) {
        change(b.token, logits[b.token] + b.bias);
    }
}

void quern_sampler::restore(float * logits) {
    for (size_t i = undo.size(); i-- > 0;) {
        logits[undo[i].first] = undo[i].second;
    }
    undo.clear();
}

int32_t quern_sampler::sample(float * logits, int32_t n_vocab) {
    if (!broken.empty()) {
        throw failure(QUERN_FAILED, broken);
    }
    penalise(logits);
    struct restorer {
        quern_sampler * s;
        float *         logits;
        ~restorer() { s->restore(logits); }
    } r{this, logits};

    row in{logits, n_vocab, 0, 0};
    if (!find_max(in)) {
        throw failure(QUERN_FAILED, "the model gave no finite logits");
    }
    int32_t token = p.temperature <= 0 || p.top_k == 1 ? in.argmax : pick(in);
    if (grammar && grammar->active() && !grammar->allows(token)) {
        token = pick_allowed(in, logits, token);
    }
    return token;
}

int32_t quern_sampler::pick(const row & r) {
    if (p.top_k > 0 && p.top_k < r.n) {
        top_candidates(r, p.top_k, cand);
        return pick_from(cand, r.max);
    }
    if (p.top_p >= 1 && p.min_p <= 0) {
        const float  scale = 1 / p.temperature;
        const double sum   = exp_sum(r, scale, &blocks);
        return pick_at(r, scale, blocks, rng.uniform() * sum);
    }
    float floor = p.min_p > 0 ? r.max + std::log(p.min_p) : -INFINITY;
    if (p.top_p >= 1) {
        collect(r, floor, cand);
        return draw(rng, cand, r.max, p.temperature);
    }
    // Tokens that weigh less than this have 1 - top_p together at most, so the
    // others suffice.
    const double sum = exp_sum(r, 1);
    floor            = std::max(floor, r.max + (float) std::log((1 - p.top_p) * sum / r.n) - 1e-3f);
    collect(r, std::min(floor, r.max), cand);
    cut_nucleus(cand, r.max, p.top_p * sum);
    return draw(rng, cand, r.max, p.temperature);
}

// cut_nucleus keeps the most likely candidates up to the first that reaches
// the mass.
void quern_sampler::cut_nucleus(std::vector<candidate> & c, float max, double need) {
    double mass = 0;
    for (size_t n = 0, sorted = 0; n < c.size(); n++) {
        if (n == sorted) {
            const size_t to = sorted == 0 ? 32 : sorted * 4;
            sort_part(c, sorted, to);
            sorted = std::min(to, c.size());
        }
        mass += std::exp(c[n].logit - max);
        if (mass >= need) {
            c.resize(n + 1);
        }
    }
}

// pick_from draws from a list after cutting it by its own top_p and min_p.
int32_t quern_sampler::pick_from(std::vector<candidate> & c, float max) {
    if (p.top_p < 1) {
        double total = 0;
        for (const auto & x : c) {
            total += std::exp(x.logit - max);
        }
        cut_nucleus(c, max, p.top_p * total);
    }
    if (p.min_p > 0) {
        const float floor = max + std::log(p.min_p);
        c.erase(std::remove_if(c.begin(), c.end(), [&](const candidate & x) { return x.logit < floor; }), c.end());
    }
    return draw(rng, c, max, p.temperature);
}

// pick_allowed samples from what the grammar allows, after it has refused a
// token. Most often another one does: to draw again without what was refused
// gives the allowed tokens their due shares. If that is of no use, all of the
// vocabulary is tested.
int32_t quern_sampler::pick_allowed(row r, float * logits, int32_t refused) {
    const bool greedy = p.temperature <= 0 || p.top_k == 1;
    if (greedy) {
        top_candidates(r, 64, cand);
        grammar->mask(cand.data(), cand.size());
        for (const auto & c : cand) {
            if (c.logit != -INFINITY) {
                return c.id;
            }
        }
    }
    for (int tries = 0; !greedy && tries < 4; tries++) {
        undo.push_back({refused, logits[refused]});
        logits[refused] = -INFINITY;
        if (!find_max(r)) {
            break;
        }
        refused = pick(r);
        if (grammar->allows(refused)) {
            return refused;
        }
    }
    grammar->all_allowed(allowed);
    cand.clear();
    for (int32_t id : allowed) {
        if (logits[id] != -INFINITY) {
            cand.push_back({id, logits[id]});
        }
    }
    if (cand.empty()) {
        throw failure(QUERN_FAILED, "no token fits the grammar here");
    }
    if (greedy || (p.top_k > 0 && (size_t) p.top_k < cand.size())) {
        const size_t k = greedy ? 1 : p.top_k;
        sort_part(cand, 0, k);
        cand.resize(k);
    }
    float max = -INFINITY;
    for (const auto & c : cand) {
        max = std::max(max, c.logit);
    }
    return greedy ? cand.front().id : pick_from(cand, max);
}

static void check_params(const quern_model & m, const quern_sampler_params & p) {
    auto bad = [](const char * name, double v, const char * range) {
        throw failure(QUERN_BAD_ARG, message("%s %g is out of range %s", name, v, range));
    };
    if (!(p.temperature >= 0 && p.temperature <= 100)) {
        bad("temperature", p.temperature, "[0, 100]");
    }
    if (!(p.top_p > 0 && p.top_p <= 1)) {
        bad("top_p", p.top_p, "(0, 1]");
    }
    if (!(p.min_p >= 0 && p.min_p <= 1)) {
        bad("min_p", p.min_p, "[0, 1]");
    }
    if (p.top_k < 0) {
        bad("top_k", p.top_k, "[0, vocabulary]");
    }
    if (!(p.presence >= -100 && p.presence <= 100)) {
        bad("presence penalty", p.presence, "[-100, 100]");
    }
    if (!(p.frequency >= -100 && p.frequency <= 100)) {
        bad("frequency penalty", p.frequency, "[-100, 100]");
    }
    if (!(p.repeat > 0 && p.repeat <= 100)) {
        bad("repeat penalty", p.repeat, "(0, 100]");
    }
    if (p.repeat_last_n < 0 || p.repeat_last_n > 1 << 20) {
        bad("repeat_last_n", p.repeat_last_n, "[0, 1048576]");
    }
    for (int i = 0; i < p.n_bias; i++) {
        if (p.bias[i].token < 0 || p.bias[i].token >= m.n_vocab) {
            bad("biased token", p.bias[i].token, "of the vocabulary");
        }
        if (std::isnan(p.bias[i].bias)) {
            bad("bias", p.bias[i].bias, "of numbers");
        }
    }
    for (int i = 0; i < p.n_lazy_tokens; i++) {
        if (p.lazy_tokens[i] < 0 || p.lazy_tokens[i] >= m.n_vocab) {
            bad("trigger token", p.lazy_tokens[i], "of the vocabulary");
        }
    }
}

int quern_sampler_new(quern_model * m, const quern_sampler_params * p, quern_sampler ** out, quern_error * err) {
    return guard(text_of(err), [&]() -> int {
        *out = nullptr;
        if (m->n_vocab <= 0) {
            throw failure(QUERN_UNSUPPORTED, "the model has no vocabulary");
        }
        check_params(*m, *p);
        auto s = std::make_unique<quern_sampler>();
        s->m   = m;
        s->p   = *p;
        s->rng.seed(p->seed);
        if (p->repeat != 1.0f) {
            s->ring.assign(p->repeat_last_n, -1);
        }
        s->bias.assign(p->bias, p->bias + p->n_bias);
        if (p->grammar) {
            capture      log;
            assert_guard asserts;
            s->grammar = std::make_unique<grammar>(*m, p->grammar, p->lazy_tokens, p->n_lazy_tokens, p->lazy_words,
                                                   p->n_lazy_words);
        }
        s->p.grammar = nullptr;
        s->p.bias    = nullptr;
        s->p.lazy_tokens = nullptr;
        s->p.lazy_words  = nullptr;
        *out             = s.release();
        return QUERN_OK;
    });
}

void quern_sampler_free(quern_sampler * s) { delete s; }

int quern_sampler_prompt(quern_sampler * s, const int32_t * tokens, int32_t n) {
    return guard(nullptr, [&]() -> int {
        const int32_t keep = (int32_t) std::min((size_t) n, s->ring.size());
        for (int32_t i = n - keep; i < n; i++) {
            if (tokens[i] < 0 || tokens[i] >= s->m->n_vocab) {
                return QUERN_BAD_ARG;
            }
            s->remember(tokens[i]);
        }
        return QUERN_OK;
    });
}

int quern_sampler_accept(quern_sampler * s, const int32_t * tokens, int32_t n, quern_error * err) {
    return guard(text_of(err), [&]() -> int {
        assert_guard asserts;
        for (int32_t i = 0; i < n; i++) {
            const int32_t t = tokens[i];
            if (t < 0 || t >= s->m->n_vocab) {
                throw failure(QUERN_BAD_ARG, message("token %d is not in the vocabulary", t));
            }
            if (s->grammar && s->grammar->active() && !s->grammar->allows(t)) {
                throw failure(QUERN_FAILED, message("the grammar has no place for token %d", t));
            }
            s->accept(t);
        }
        return QUERN_OK;
    });
}

int quern_sampler_grammar_accepts(quern_sampler * s, const int32_t * tokens, int32_t n, int32_t * taken,
                                  quern_error * err) {
    return guard(text_of(err), [&]() -> int {
        if (!s->grammar) {
            throw failure(QUERN_BAD_ARG, "the sampler has no grammar");
        }
        assert_guard asserts;
        for (*taken = 0; *taken < n; ++*taken) {
            const int32_t t = tokens[*taken];
            if (t < 0 || t >= s->m->n_vocab) {
                throw failure(QUERN_BAD_ARG, message("token %d is not in the vocabulary", t));
            }
            if (s->grammar->active() && !s->grammar->allows(t)) {
                break;
            }
            s->grammar->accept(t);
        }
        return QUERN_OK;
    });
}

int quern_sampler_grammar_compare(quern_sampler * s, int32_t * differ, int32_t * n, quern_error * err) {
    return guard(text_of(err), [&]() -> int {
        if (!s->grammar) {
            throw failure(QUERN_BAD_ARG, "the sampler has no grammar");
        }
        assert_guard            asserts;
        std::vector<candidate> slow(s->m->n_vocab);
        for (int32_t i = 0; i < s->m->n_vocab; i++) {
            slow[i] = {i, 0};
        }
        s->grammar->mask(slow.data(), slow.size());
        std::vector<int32_t> quick;
        s->grammar->all_allowed(quick);
        std::vector<char> in(slow.size(), 0);
        for (int32_t id : quick) {
            in[id] = 1;
        }
        *differ = 0;
        *n      = (int32_t) quick.size();
        for (size_t i = 0; i < slow.size(); i++) {
            *differ += (slow[i].logit == 0) != (in[i] == 1);
        }
        return QUERN_OK;
    });
}
