package dialect

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// strftimeCodes are the codes of Python's strftime in the C locale. A minus
// after the percent sign leaves out leading zeros, as glibc does.
var strftimeCodes = map[byte]func(time.Time) string{
	'Y': layout("2006"), 'y': layout("06"), 'm': layout("01"), 'd': layout("02"),
	'H': layout("15"), 'I': layout("03"), 'M': layout("04"), 'S': layout("05"), 'p': layout("PM"),
	'B': layout("January"), 'b': layout("Jan"), 'h': layout("Jan"), 'A': layout("Monday"), 'a': layout("Mon"),
	'Z': layout("MST"), 'z': layout("-0700"), 'e': layout("_2"),
	'F': layout("2006-01-02"), 'T': layout("15:04:05"), 'R': layout("15:04"), 'D': layout("01/02/06"),
	'c': layout("Mon Jan _2 15:04:05 2006"), 'x': layout("01/02/06"), 'X': layout("15:04:05"),
	'f': func(t time.Time) string { return fmt.Sprintf("%06d", t.Nanosecond()/1000) },
	'j': func(t time.Time) string { return fmt.Sprintf("%03d", t.YearDay()) },
	'w': func(t time.Time) string { return strconv.Itoa(int(t.Weekday())) },
	'u': func(t time.Time) string { return strconv.Itoa((int(t.Weekday())+6)%7 + 1) },
	's': func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) },
	'n': func(time.Time) string { return "\n" },
	't': func(time.Time) string { return "\t" },
	'%': func(time.Time) string { return "%" },
}

func layout(l string) func(time.Time) string {
	return func(t time.Time) string { return t.Format(l) }
}

func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		n := 1
		short := format[i+1] == '-' && i+2 < len(format)
		if short {
			n = 2
		}
		code, ok := strftimeCodes[format[i+n]]
		if !ok {
			b.WriteByte('%')
			continue
		}
		s := code(t)
		if short {
			if s = strings.TrimLeft(s, "0 "); s == "" {
				s = "0"
			}
		}
		b.WriteString(s)
		i += n
	}
	return b.String()
}
