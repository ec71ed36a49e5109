// Parsing GBNF safely: bounds before llama.cpp's parser runs, and analysis of
// the rules before its automaton does.
#include "shim_impl.h"

#include "shim_gbnf.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace quern {

constexpr size_t max_text     = 4 << 20;
constexpr size_t max_elements = 1 << 20; // after expansion of repetitions
constexpr int    max_nesting  = 256;
constexpr double max_depth    = 4096;    // recursion of the automaton
constexpr double max_visits   = 65536;   // states tried for one character

[[noreturn]] static void bad(const std::string & what) { throw failure(QUERN_BAD_ARG, "grammar: " + what); }

// size_scan walks the text as the parser will and counts the elements that it
// would create, because "a"{2000}{2000}{2000} is a short text.
struct size_scan {
    const char * p;
    size_t       total = 0;
    struct level {
        size_t size, last;
    };
    std::vector<level> stack{{0, 0}};

    explicit size_scan(const char * text) : p(text) {}

    void add(size_t n) {
        total += n;
        if (total > max_elements) {
            bad("too large once its repetitions are expanded");
        }
    }
    void symbol(size_t n) {
        stack.back().last = n;
        add(n);
    }
    void repeat(uint64_t min, uint64_t max, bool open) {
        const size_t last = stack.back().last;
        const size_t opt  = open ? 1 : max > min ? max - min : 0;
        const size_t copies = (min > 1 ? min - 1 : 0) * last + 1;
        add(copies + opt * (last + 4));
        stack.back().last = last + copies;
    }
    uint64_t number() {
        uint64_t v = 0;
        while (*p >= '0' && *p <= '9') {
            v = std::min<uint64_t>(v * 10 + (*p++ - '0'), 1000000);
        }
        return v;
    }
    void quoted(char end) {
        size_t n = 0;
        for (p++; *p && *p != end; p++, n++) {
            if (*p == '\\' && p[1]) {
                p++;
            }
        }
        if (*p) {
            p++;
        }
        symbol(n);
    }
    // The parser tokenizes what stands between the brackets.
    void token() {
        const char * from = p;
        while (*p && *p != '>') {
            p++;
        }
        if (p - from > 256) {
            bad("a token's name of more than 256 bytes");
        }
        p += *p == '>';
        symbol(1);
    }
    void braces() {
        p++;
        while (*p == ' ' || *p == '\t') {
            p++;
        }
        const uint64_t min  = number();
        uint64_t       max  = min;
        bool           open = false;
        while (*p == ' ' || *p == '\t') {
            p++;
        }
        if (*p == ',') {
            p++;
            while (*p == ' ' || *p == '\t') {
                p++;
            }
            open = !(*p >= '0' && *p <= '9');
            max  = number();
        }
        while (*p == ' ' || *p == '\t') {
            p++;
        }
        if (*p == '}') {
            p++;
        }
        if (min > 2000 || max > 2000) {
            bad("more than 2000 repetitions");
        }
        if (!open && max < min) {
            bad(message("repetition {%d,%d} is backwards", (int) min, (int) max));
        }
        repeat(min, max, open);
    }
    void run() {
        while (*p) {
            switch (*p) {
                case '#':
                    while (*p && *p != '\n' && *p != '\r') {
                        p++;
                    }
                    break;
                case '"': quoted('"'); break;
                case '[': quoted(']'); break;
                case '(':
                    if (stack.size() > max_nesting) {
                        bad(message("parentheses nested deeper than %d", max_nesting));
                    }
                    stack.push_back({0, 0});
                    p++;
                    break;
                case ')':
                    if (stack.size() > 1) {
                        stack.pop_back();
                    }
                    symbol(1);
                    p++;
                    break;
                case '*':
                case '+': repeat(*p == '+', 0, true); p++; break;
                case '?': repeat(0, 1, false); p++; break;
                case '{': braces(); break;
                case ' ':
                case '\t':
                case '\r':
                case '\n':
                case '|': p++; break;
                case '<': token(); break;
                default:
                    symbol(1); // a name, a token or a dot
                    p++;
                    while (isalnum((unsigned char) *p) || *p == '-' || (*p && strchr("!_", *p))) {
                        p++;
                    }
            }
        }
    }
};

static bool ends(const llama_grammar_element & e) {
    return e.type == LLAMA_GRETYPE_END || e.type == LLAMA_GRETYPE_ALT;
}

// analysis finds what may be empty, refuses left recursion and bounds the work
// and the recursion of the automaton's "advance".
struct analysis {
    const llama_grammar_rules &      rules;
    const std::vector<std::string> & names;
    std::vector<char>                nullable;
    std::vector<double>              depth, visits, empties;
    double                           nullable_depth = 1;

    analysis(const llama_grammar_rules & r, const std::vector<std::string> & n) : rules(r), names(n) {
        find_nullable();
        order();
    }

    void find_nullable() {
        struct alt {
            uint32_t rule;
            int      missing; // references not yet known to be nullable
        };
        std::vector<alt>                   alts;
        std::vector<std::vector<uint32_t>> users(rules.size());
        std::vector<uint32_t>              work;
        nullable.assign(rules.size(), 0);
        auto mark = [&](uint32_t rule) {
            if (!nullable[rule]) {
                nullable[rule] = 1;
                work.push_back(rule);
            }
        };
        for (uint32_t i = 0; i < rules.size(); i++) {
            alt  a{i, 0};
            bool terminal = false;
            std::vector<uint32_t> refs;
            for (const auto & e : rules[i]) {
                if (ends(e)) {
                    if (!terminal && refs.empty()) {
                        mark(i);
                    } else if (!terminal) {
                        a.missing = (int) refs.size();
                        for (uint32_t r : refs) {
                            users[r].push_back((uint32_t) alts.size());
                        }
                        alts.push_back(a);
                    }
                    terminal = false;
                    refs.clear();
                } else if (e.type == LLAMA_GRETYPE_RULE_REF) {
                    refs.push_back(e.value);
                } else {
                    terminal = true;
                }
            }
        }
        while (!work.empty()) {
            const uint32_t r = work.back();
            work.pop_back();
            for (uint32_t a : users[r]) {
                if (--alts[a].missing == 0) {
                    mark(alts[a].rule);
                }
            }
        }
    }

    // first calls f for each reference that can be reached without consuming.
    template <class F> void first(uint32_t rule, F f) const {
        bool reach = true;
        for (const auto & e : rules[rule]) {
            if (ends(e)) {
                reach = true;
            } else if (reach && e.type == LLAMA_GRETYPE_RULE_REF) {
                f(e.value);
                reach = nullable[e.value];
            } else {
                reach = false;
            }
        }
    }

    void order() {
        std::vector<char> colour(rules.size(), 0); // 1 open, 2 done
        depth.assign(rules.size(), 1);
        visits.assign(rules.size(), 1);
        empties.assign(rules.size(), 0);
        struct frame {
            uint32_t              rule;
            std::vector<uint32_t> next;
        };
        std::vector<frame> stack;
        auto open = [&](uint32_t r) {
            colour[r] = 1;
            frame f{r, {}};
            first(r, [&](uint32_t x) { f.next.push_back(x); });
            stack.push_back(std::move(f));
        };
        for (uint32_t i = 0; i < rules.size(); i++) {
            if (colour[i]) {
                continue;
            }
            open(i);
            while (!stack.empty()) {
                frame & f = stack.back();
                if (f.next.empty()) {
                    measure(f.rule);
                    colour[f.rule] = 2;
                    stack.pop_back();
                    continue;
                }
                const uint32_t x = f.next.back();
                f.next.pop_back();
                if (colour[x] == 1) {
                    bad("rule '" + names[x] + "' is left-recursive");
                }
                if (colour[x] == 0) {
                    open(x);
                }
            }
        }
    }

    void measure(uint32_t rule) {
        double d = 0, v = 1, e = 0; // of the rule
        double ad = 0, ae = 1;      // of the alternative so far
        for (const auto & x : rules[rule]) {
            if (ends(x)) {
                d = std::max(d, ad);
                e += ae;
                v += ae;
                ad = 0;
                ae = 1;
            } else if (ae > 0 && x.type == LLAMA_GRETYPE_RULE_REF) {
                v += ae * visits[x.value];
                ad += depth[x.value] + 1;
                ae *= empties[x.value];
            } else {
                v += ae;
                ae = 0;
            }
        }
        depth[rule]   = d + 1;
        visits[rule]  = v;
        empties[rule] = e;
        if (depth[rule] > max_depth || v > max_visits || !(e <= max_visits)) {
            bad("rule '" + names[rule] + "' is too ambiguous or too deep");
        }
        if (nullable[rule]) {
            nullable_depth = std::max(nullable_depth, depth[rule]);
        }
    }
};

static const char * skip_space(const char * p) {
    while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n' || *p == '#') {
        if (*p == '#') {
            while (*p && *p != '\r' && *p != '\n') {
                p++;
            }
        } else {
            p++;
        }
    }
    return p;
}

// The parser's messages end in all the text that is left: give the line and a
// few words of it instead.
[[noreturn]] static void bad_syntax(const char * text, const std::string & what) {
    std::string  msg  = what;
    const size_t at   = msg.find(" at ");
    int          line = 0;
    if (at != std::string::npos && at + 4 + strlen(text) >= msg.size()) {
        const std::string rest   = msg.substr(at + 4);
        const size_t      offset = strlen(text) - std::min(strlen(text), rest.size());
        if (rest == text + offset) {
            line = 1 + (int) std::count(text, text + offset, '\n');
        }
        std::string near = rest.substr(0, std::min<size_t>(rest.find('\n'), 40));
        msg              = msg.substr(0, at) + (near.empty() ? " at the end" : " at '" + near + "'");
    }
    bad(line ? message("line %d: %s", line, msg.c_str()) : msg);
}

grammar_rules parse_grammar(const llama_vocab * vocab, const char * text) {
    if (strlen(text) > max_text) {
        bad(message("longer than %zu bytes", max_text));
    }
    size_scan(text).run();

    llama_grammar_parser parser(vocab);
    try {
        for (const char * p = skip_space(text); *p;) {
            p = parser.parse_rule(p);
        }
    } catch (const std::exception & e) {
        bad_syntax(text, e.what());
    }
    if (parser.rules.empty()) {
        bad("has no rules");
    }
    std::vector<std::string> names(parser.symbol_ids.size());
    for (const auto & kv : parser.symbol_ids) {
        names[kv.second] = kv.first;
    }
    parser.rules.resize(names.size());
    const uint32_t n_vocab = llama_vocab_n_tokens(vocab);
    for (size_t i = 0; i < parser.rules.size(); i++) {
        if (parser.rules[i].empty()) {
            bad("rule '" + names[i] + "' is not defined");
        }
        for (const auto & e : parser.rules[i]) {
            if ((e.type == LLAMA_GRETYPE_TOKEN || e.type == LLAMA_GRETYPE_TOKEN_NOT) && e.value >= n_vocab) {
                bad(message("token %u is not in the vocabulary", e.value));
            }
        }
    }
    const auto root = parser.symbol_ids.find("root");
    if (root == parser.symbol_ids.end()) {
        bad("has no rule 'root'");
    }
    const analysis a(parser.rules, names);

    grammar_rules out;
    out.root           = root->second;
    out.nullable_depth = (size_t) a.nullable_depth;
    out.rules          = std::move(parser.rules);
    return out;
}

} // namespace quern
