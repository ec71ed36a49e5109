package server

import (
	"context"
	"log/slog"
	"strings"

	"quern/server/jsonvalue"
)

// ignoredHeader lists what a request asked for in vain. Agents send such things
// unasked, so that they are no reason to refuse it; the author of a program who
// wonders why nothing comes of them finds them here.
const ignoredHeader = "X-Quern-Ignored"

// maxIgnored bounds the list: a long history may hold hundreds of such items.
// maxReason is in characters; maxHeader in bytes, since proxies take few thousand
// for all headers together.
const (
	maxIgnored = 32
	maxReason  = 160
	maxHeader  = 2000
)

// passFor notes something that is passed over, and why.
func (f *fields) passFor(path, what, why string) {
	if len(f.ignored) < maxIgnored {
		f.ignored = append(f.ignored, path+"="+clip(what)+" "+clipAt(why, maxReason))
	}
}

// pass notes something that is passed over: a path, and what stands there.
func (f *fields) pass(path, what string) {
	if len(f.ignored) < maxIgnored {
		f.ignored = append(f.ignored, path+"="+clip(what))
	}
}

// ignore notes the fields that are there and that this node does nothing with.
func (f *fields) ignore(m jsonvalue.Members, names ...string) {
	for _, name := range names {
		if !m.Get(name).Empty() && len(f.ignored) < maxIgnored {
			f.ignored = append(f.ignored, name)
		}
	}
}

// tellIgnored says in the answer's header and in the log what was passed over.
func (s *Server) tellIgnored(ex *exchange, list []string) {
	if len(list) == 0 {
		return
	}
	ex.header.Set(ignoredHeader, headerText(strings.Join(list, ", ")))
	s.log.LogAttrs(context.Background(), slog.LevelDebug, "parts of a request are ignored",
		slog.String("request_id", ex.requestID), slog.Any("ignored", list))
}

// headerText replaces what can't stand in a header, and bounds it.
func headerText(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, strings.ReplaceAll(text, "…", "..."))
	if len(text) > maxHeader {
		text = text[:maxHeader-3] + "..."
	}
	return text
}
