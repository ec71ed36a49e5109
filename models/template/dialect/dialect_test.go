package dialect

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var testTime = time.Date(2026, 3, 5, 14, 7, 9, 0, time.UTC)

// render runs a template with variables given as a JSON object.
func render(t testing.TB, src, vars string) (string, error) {
	t.Helper()
	p, err := Compile(src)
	if err != nil {
		return "", err
	}
	if vars == "" {
		vars = "{}"
	}
	env := Env{Now: testTime, Spelling: &Spelling{}}
	v, err := FromJSON(vars, env.Spelling, nil)
	require.NoError(t, err)
	return p.Render(v.AsDict().Data, env)
}

// What Jinja2 3.1 gives in Hugging Face's environment.
var reference = []struct{ src, vars, want string }{
	{"a\n  {% if true %}\nb\n  {% endif %}\nc\n", "", "a\nb\nc"},
	{"a {%- if true %} b {% endif -%} c", "", "a b c"},
	{"x\n    {{ 1 }}\n y\n\n", "", "x\n    1\n y\n"},
	{"  {%+ if true %}a{% endif +%}\n b", "", "  a\n b"},
	{"{# c -#}  \n a {#- d #}\nb", "", "ab"},
	{"{% raw %} {{ x }} {% y %}{% endraw %}\nz", "", " {{ x }} {% y %}z"},
	{"a\n {%- raw -%}  {{ x }} {%- endraw %}\nz", "", "a{{ x }}z"},
	{"{{ {'a': {'b': 1}}['a']['b'] }}", "", "1"},
	{"{{ m -}}  \n t{{ m }} u", "{\"m\": \"M\"}", "MtM u"},
	{"{% for i in x -%}{{ i }} says{% endfor %}", "{\"x\": [\"a\", \"b\"]}", "a saysb says"},
	{"{{ 1 + 2 * 3 - 4 // 3 }} {{ 2 ** 3 * 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }}", "", "6 16 -4 2 3.5"},
	{"{{ 'a' ~ 1 + 2 ~ 'b' }}", "", "a12b"},
	{"{{ not a is defined }} {{ a is not defined and true }} {{ x|length > 1 }}", "{\"x\": [1, 2]}", "True True True"},
	{"{{ -1 | abs }} {{ (-1) | abs }} {{ 3.0 | int }} {{ '7' | int + 1 }}", "", "1 1 3 8"},
	{"{{ 'yes' if x else 'no' }}{{ 'only' if none }}", "{\"x\": 0}", "no"},
	{"{{ x == 1 }} {{ 1 < 2 < 3 }} {{ 'a' in 'abc' }} {{ 2 not in [1] }}", "{\"x\": 1}", "True True True True"},
	{"{{ x.split('</t>')[-1].lstrip('\\n') }}|{{ x.split('</t>', 1)[0] }}|{{ x.rsplit('</t>', 1) }}", "{\"x\": \"a</t>b</t>\\n c \"}", " c |a|['a</t>b', '\\n c ']"},
	{"{{ ' a  b '.split() }}{{ ' a  b c '.split(none, 1) }}{{ 'a\\nb\\n'.splitlines() }}", "", "['a', 'b']['a', 'b c ']['a', 'b']"},
	{"{{ x.startswith(('a', 'b')) }}{{ x.endswith('z') }}{{ x.removeprefix('b') }}{{ x.partition('-') | join('|') }}", "{\"x\": \"ba-c\"}", "TrueFalsea-cba|-|c"},
	{"{{ 'xxaxx'.strip('x') }}{{ 'a,b'.replace(',', ';') }}{{ 'a-b'.title() }}", "", "aa;bA-B"},
	{"{{ ', '.join(x) }} {{ '{} is {}'.format('a', 1) }} {{ '%s-%d' % ('a', 5) }} {{ '{0}{x}'.format(1, x=2) }}", "{\"x\": [\"p\", \"q\"]}", "p, q a is 1 a-5 12"},
	{"{{ x | tojson }} {{ x | tojson(indent=2) }}", "{\"x\": {\"b\": [1, 2.5, null, true], \"a\": \"é<&>'\\\"\\n\u2028\", \"e\": {}, \"l\": []}}", "{\"b\": [1, 2.5, null, true], \"a\": \"é<&>'\\\"\\n\u2028\", \"e\": {}, \"l\": []} {\n  \"b\": [\n    1,\n    2.5,\n    null,\n    true\n  ],\n  \"a\": \"é<&>'\\\"\\n\u2028\",\n  \"e\": {},\n  \"l\": []\n}"},
	{"{{ x | tojson(separators=(',', ':'), sort_keys=true) }} {{ x|tojson(ensure_ascii=true) }}", "{\"x\": {\"b\": 1, \"a\": \"é😀\"}}", "{\"a\":\"é😀\",\"b\":1} {\"b\": 1, \"a\": \"\\u00e9\\ud83d\\ude00\"}"},
	{"{{ x }} {{ y }} {{ z }} {{ true }} {{ none }} {{ u }} {{ 1.0 }} {{ 1e20 }} {{ 0.00001 }}", "{\"x\": {\"a\": \"b'c\", \"n\": null}, \"y\": [1, \"x\\n\", 1.5], \"z\": \"s\"}", "{'a': \"b'c\", 'n': None} [1, 'x\\n', 1.5] s True None  1.0 1e+20 1e-05"},
	{"{% set ns = namespace(a=1, b='x') %}{% for i in [1,2,3] %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}", "", "7x"},
	{"{% for i in [1,2,3] %}{{ x is defined }}{% set x = i %}{{ x }} {% endfor %}{{ x is defined }}", "", "False1 False2 False3 False"},
	{"{% set x = 'o' %}{% for i in [1,2,3] %}{% if i == 2 %}{% set x = 'c' %}{% endif %}{{ x }}{% endfor %}{{ x }}", "", "ocoo"},
	{"{% set a, b = 1, 'z' %}{{ a }}{{ b }}{% for k, v in d.items() if v %}{{ k }}={{ v }} {% endfor %}", "{\"d\": {\"x\": 1, \"y\": 0, \"z\": 2}}", "1zx=1 z=2 "},
	{"{% for a, b, c in [[1,2,3]] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for i in [] %}x{% else %}empty{% endfor %}", "", "123empty"},
	{"{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ loop.index }}{{ loop.first }}{{ loop.last }};{% endfor %}", "", "1TrueFalse;3FalseFalse;"},
	{"{% for m in x %}{{ loop.previtem if not loop.first }}<{{ m }}>{{ loop.nextitem if not loop.last }}{{ loop.revindex }}{% endfor %}", "{\"x\": [\"a\", \"b\", \"c\"]}", "<a>b3a<b>c2b<c>1"},
	{"{% macro f(a, b='x,y', c=[1,2]) %}({{ a }}{{ b }}{{ c | length }}){% endmacro %}{{ f(1) }}{{ f(2, c=[], b='q') }}", "", "(1x,y2)(2q0)"},
	{"{% macro w() %}<{{ caller('i') }}>{% endmacro %}{% call(v) w() %}in {{ v }}{% endcall %}", "", "<in i>"},
	{"{% set t %}  a {{ 1 }} {% endset %}[{{ t }}]{% set u | trim | upper %} b {% endset %}[{{ u }}]", "", "[  a 1 ][B]"},
	{"{% filter upper %}abc{% endfilter %}{% generation %}g{% endgeneration %}", "", "ABCg"},
	{"{{ x | map(attribute='a') | join('+') }} {{ x | selectattr('a', 'equalto', 'p') | list | length }} {{ x | rejectattr('b') | map(attribute='a') | first }}", "{\"x\": [{\"a\": \"p\", \"b\": 1}, {\"a\": \"q\", \"b\": 0}]}", "p+q 1 q"},
	{"{{ ['b','A','c'] | sort | join }} {% for k, v in {'b':1,'A':2} | dictsort %}{{ k }}{{ v }}{% endfor %} {{ [3,1,2] | sort(reverse=true) }} {{ ['x','X'] | unique | list }}", "", "Abc A2b1 [3, 2, 1] ['x']"},
	{"{{ 'a\\n\\nb' | indent(2) }}|{{ 'a\\nb' | indent(2, first=true) }}|{{ 'hello world' | title }}|{{ 'hELLO' | capitalize }}", "", "a\n\n  b|  a\n  b|Hello World|Hello"},
	{"{{ u | default('d') }}{{ '' | default('e', true) }}{{ none | default('n') }}{{ [] | default([1], true) }}", "", "deNone[1]"},
	{"{{ [1,2,3,4,5][1:-1] }}{{ 'abcdef'[::-1] }}{{ [1,2,3][-1] }}{{ 'abc'[1] }}{{ [1,2,3] | last }}{{ 'abc' | reverse }}", "", "[2, 3, 4]fedcba3b3cba"},
	{"{{ x is mapping }}{{ y is sequence }}{{ z is sequence }}{{ 1 is number }}{{ true is number }}{{ true is integer }}{{ z is iterable }}{{ 1.5 is float }}", "{\"x\": {}, \"y\": [], \"z\": \"s\"}", "TrueTrueTrueTrueTrueFalseTrueTrue"},
	{"{{ 4 is divisibleby 2 }}{{ 3 is odd }}{{ 'a' is in ['a'] }}{{ x is sameas none }}{{ 'AB' is upper }}", "{\"x\": null}", "TrueTrueTrueTrueTrue"},
	{"{{ d['items'] }}{{ d.get('q', 'z') }}{{ d.get('q') is none }}{{ d.keys() | list }}{{ d.values() | list }}", "{\"d\": {\"items\": 1, \"k\": \"v\"}}", "1zTrue['items', 'k'][1, 'v']"},
	{"{{ 'a' 'b' }}{{ \"q\\\"'\\u00e9\\x41\\n\" }}{{ 'back\\\\slash \\d' }}", "", "abq\"'éA\nback\\slash \\d"},
	{"{{ [1] + [2] }}{{ 'ab' * 2 }}{{ [0] * 3 }}{{ (1, 2) | list }}{{ 7.5 | round | int }}{{ 2.5 | round }}{{ [1,2.5] | sum }}{{ [3,1] | max }}", "", "[1, 2]abab[0, 0, 0][1, 2]82.03.53"},
	{"{{ '<a href=\"x\">&' | e }}{{ 'a b c' | wordcount }}{{ [1,2,3] | batch(2) | list }}", "", "&lt;a href=&#34;x&#34;&gt;&amp;3[[1, 2], [3]]"},
	{"{{ dict(b=1, a=2) }}{{ dict(b=1, a=2) | tojson }}", "", "{'b': 1, 'a': 2}{\"b\": 1, \"a\": 2}"},
	{"{%- if x is defined and x -%}\n  yes\n{%- elif y -%}\n  no\n{%- else -%}\n  else\n{%- endif -%}\n tail", "{\"y\": false}", "elsetail"},
	{"{{ '%05.1f|%-4s|%x' % (3.14159, 'a', 255) }}{{ '{:>1}'.format('a') if false }}{{ 'abc'.find('c') }}{{ 'é1'.isalnum() }}{{ '12'.isdigit() }}", "", "003.1|a   |ff2TrueTrue"},
	{"\r\nA\r\n{% if true %}\r\nB{% endif %}", "", "\nA\nB"},
	{"{{ strftime_now('%d %B %Y %H:%M:%S %j %-d %A %y %%') }}", "", "05 March 2026 14:07:09 064 5 Thursday 26 %"},
}

func TestAsJinja2(t *testing.T) {
	for _, c := range reference {
		t.Run(c.src, func(t *testing.T) {
			got, err := render(t, c.src, c.vars)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestSpellingOfNumbersIsKept(t *testing.T) {
	const in = `{"a": 1.0, "b": 1.00, "c": 1e3, "d": 1E+3, "e": -0, "f": 12345678901234567890123, "g": 7, "h": 0.1, "i": 1e999, "j": -1e999}`
	out, err := render(t, "{{ x | tojson }}", `{"x": `+in+`}`)
	require.NoError(t, err)
	require.Equal(t, in, out)
	out, err = render(t, "{{ x.a }} {{ x.c }} {{ x.a == 1 }} {{ x.h + 1 }}", `{"x": `+in+`}`)
	require.NoError(t, err)
	require.Equal(t, "1.0 1e3 True 1.1", out)
}

func TestFaultsNameTheLine(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"expression", "a\nb {{ 1 + }}", "template line 2: unexpected the end of the tag"},
		{"open tag", "a\n\n{{ x ", "line 3: tag is not closed"},
		{"open comment", "\n{# x", "line 2: comment is not closed"},
		{"open string", "\n\n{{ 'x }}", "line 3: string is not closed"},
		{"open block", "a\n{% if x %}\nb", "line 2: if block is not closed"},
		{"wrong end", "{% if x %}\n{% endfor %}", "line 2: endfor where the if of line 1 is open"},
		{"end alone", "\n{% endif %}", "line 2: endif without if"},
		{"else alone", "{% else %}", "line 1: else without if"},
		{"statement", "\n{% include 'x' %}", `line 2: statement "include" is not supported`},
		{"filter", "\n\n{{ x | nope }}", `line 3: unknown filter "nope"`},
		{"test", "{% if x is nope %}{% endif %}", `line 1: unknown test "nope"`},
		{"character", "{{ a ? b }}", "unexpected character '?'"},
		{"recursive", "{% for a in b recursive %}{% endfor %}", "recursive loops are not supported"},
		{"bracket", "{{ [1 2] }}", `expected "]", found "2"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile(c.src)
			require.ErrorContains(t, err, c.want)
			var e *Error
			require.ErrorAs(t, err, &e)
		})
	}
}

func TestFaultsAtRun(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"method", "a\n{% if true %}\n{{ x.y.strip() }}{% endif %}", `template line 3: undefined has no method "strip"`},
		{"call", "\n{{ nope() }}", "line 2: nope is not callable"},
		{"items", "\n\n{% for a in 'x' | items %}{% endfor %}", "line 3: items: can only get item pairs from a mapping"},
		{"loop", "{% for a in 5 %}{% endfor %}", "line 1: int is not iterable"},
		{"json", "{{ range | tojson }}", "no JSON form"},
		{"format", "{{ '{}'.format() }}", "no value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := render(t, c.src, "")
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), prefix)
		})
	}
}

func TestRaiseException(t *testing.T) {
	_, err := render(t, "{% macro f() %}{{ raise_exception('no ' ~ x) }}{% endmacro %}{{ f() }}", `{"x": "way"}`)
	var raised *RaiseError
	require.ErrorAs(t, err, &raised)
	require.Equal(t, "no way", raised.Message)
}

// A template that works without end, or makes more than fits, is stopped.
func TestHostileTemplates(t *testing.T) {
	for name, src := range map[string]string{
		"endless":     "{% for a in range(1000000) %}{% for b in range(1000000) %}{% endfor %}{{ a }}{% endfor %}",
		"empty loops": "{% set l = [1] %}{% for a in l %}{% set _ = l.append(1) %}{% endfor %}{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
		"doubling":    "{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for a in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
		"repeat":      "{{ 'x' * 100000000000 }}",
		"list":        "{% set l = [1] * 9999999999 %}",
		"range":       "{{ range(99999999999) | length }}",
		"replace":     "{% set a = 'x' * 1000000 %}{{ a.replace('x', a) }}",
		"recursion":   "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		"nesting":     "{{ " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000) + " }}",
		"negation":    "{{ " + strings.Repeat("not ", 100000) + "1 }}",
		"minus":       "{{ " + strings.Repeat("-", 100000) + "1 }}",
		"blocks":      strings.Repeat("{% if 1 %}", 100000),
		"size":        strings.Repeat("x", maxSourceBytes+1),
		"panic":       "{{ 'x'.ljust(-1).center(5)[0:1:0] }}{{ [1,2].insert() }}",
		"width":       "{{ '%999999999d' % 5 }}",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := render(t, src, "")
			require.Error(t, err)
			require.Less(t, time.Since(start), 10*time.Second)
		})
	}
}

func TestInJSON(t *testing.T) {
	p, err := Compile("{{ x | tojson }} {{ x.k }}")
	require.NoError(t, err)
	v, err := FromJSON(`{"x": {"k": "v"}}`, &Spelling{}, strings.ToUpper)
	require.NoError(t, err)
	require.Contains(t, v.AsDict().Data, "X", "keys pass through as well")
	out, err := p.Render(map[string]Value{"x": v.AsDict().Data["X"]}, Env{InJSON: func(s string) string { return "<" + s + ">" }})
	require.NoError(t, err)
	require.Equal(t, `{<"K">: <"V">} `, out)
}

func TestReads(t *testing.T) {
	p, err := Compile("{% if enable and x.field == 'quoted' %}{{ y | upper }}{% endif %}")
	require.NoError(t, err)
	for _, name := range []string{"enable", "x", "y"} {
		require.True(t, p.Reads(name), name)
	}
	for _, name := range []string{"field", "quoted", "upper", "if"} {
		require.False(t, p.Reads(name), name)
	}
}

func TestRenderFromManyGoroutines(t *testing.T) {
	p, err := Compile("{% macro f(a) %}<{{ a }}>{% endmacro %}{% set ns = namespace(n=0) %}{% for i in x %}{% set ns.n = ns.n + i %}{{ f(ns.n) }}{% endfor %}")
	require.NoError(t, err)
	var wg sync.WaitGroup
	errs := make(chan error, 100)
	for range 8 {
		wg.Go(func() {
			for range 50 {
				v, _ := FromJSON(`[1, 2, 3]`, &Spelling{}, nil)
				if out, err := p.Render(map[string]Value{"x": v}, Env{}); out != "<1><3><6>" {
					errs <- errors.Join(errors.New(out), err)
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}
