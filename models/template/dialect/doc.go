// Package dialect runs chat templates as Hugging Face's environment runs
// them: Jinja2 with trim_blocks and lstrip_blocks, Python's string methods and
// json.dumps, strftime_now and raise_exception.
//
// The evaluator is github.com/ardanlabs/jinja. What it does otherwise than
// Jinja2 (whitespace control, operator precedence, loop scopes, filters and
// methods with all their arguments, numbers as they were spelled, the line of
// an error, a bound on work) is done here: a template is scanned and parsed
// once, and handed to the library as an equivalent one whose filters, tests
// and methods are calls of the functions of this package.
//
// Known to differ from Jinja2: an attribute of something undefined is
// undefined instead of an error, as are None in a loop and in a length;
// tuples print as lists; True == 1 is false; "..."|safe does not mark text as
// HTML, so that + never escapes; recursive loops, includes and unpacked
// arguments are refused when the template is read.
//
// A Program is immutable and may be rendered from any number of goroutines;
// Values belong to one rendering.
package dialect
