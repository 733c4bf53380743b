package pgmq

import (
	"fmt"
	"strconv"
	"strings"
)

// JSONLimits bounds a JSON text beyond what jsonb itself refuses. Zero in a
// field: no bound of ours (Postgres' own remain: nesting by its stack, numbers
// by type numeric).
type JSONLimits struct {
	Size   int // bytes of the whole text
	Depth  int // nested arrays and objects; a scalar alone has depth 0
	Number int // characters of a number literal
	// Exponent bounds the exponent of a number, either way. It matters because
	// jsonb writes numbers out in full: 1e100000 is eight characters going in and
	// a hundred thousand coming out.
	Exponent int
}

// JSONError says where and why a JSON text is refused. It holds names of the
// text's fields but no values.
type JSONError struct {
	Offset int    // byte offset into the text
	Path   string // JSON Pointer (RFC 6901) to the value; empty: the text as a whole
	Reason string
}

// Error names the place and the reason.
func (e *JSONError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s (byte %d)", e.Reason, e.Offset)
	}
	return fmt.Sprintf("%s (at %s, byte %d)", e.Reason, e.Path, e.Offset)
}

// CheckJSON refuses a text that is not one JSON value, that jsonb cannot store
// (\u0000, half surrogate pairs, invalid UTF-8), or that exceeds the limits. The
// error is a [JSONError]. It reads the text once and never recurses, so that no
// nesting, however deep, costs more than memory in proportion to the text.
func CheckJSON(text []byte, limits JSONLimits) error {
	if limits.Size > 0 && len(text) > limits.Size {
		return &JSONError{
			Offset: limits.Size,
			Reason: fmt.Sprintf("text of %d bytes is over the limit of %d", len(text), limits.Size),
		}
	}
	s := scanner{text: text, limits: limits}
	if err := s.scan(); err != nil {
		return err
	}
	return nil
}

// frame is one open array or object.
type frame struct {
	object           bool
	index            int // of the element of an array
	keyStart, keyEnd int // the current key in the text, quotes excluded
}

// maxPathKey is how many bytes of a key an error's path shows.
const maxPathKey = 40

func (s *scanner) fail(at int, format string, args ...any) *JSONError {
	return &JSONError{Offset: at, Path: s.path(), Reason: fmt.Sprintf(format, args...)}
}

func (s *scanner) path() string {
	var b strings.Builder
	for _, f := range s.open {
		if !f.object {
			b.WriteByte('/')
			b.WriteString(strconv.Itoa(f.index))
			continue
		}
		if f.keyEnd == 0 { // no key read yet
			continue
		}
		key := string(s.text[f.keyStart:f.keyEnd])
		if len(key) > maxPathKey {
			key = strings.ToValidUTF8(key[:maxPathKey], "") + "…"
		}
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
	}
	return b.String()
}

func firstByte(text []byte) byte {
	for _, c := range text {
		if !isSpace(c) {
			return c
		}
	}
	return 0
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
