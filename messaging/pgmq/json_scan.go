package pgmq

import (
	"strconv"
	"unicode/utf8"
)

// scanner walks over one JSON text. The open arrays and objects are its stack.
type scanner struct {
	text   []byte
	at     int
	limits JSONLimits
	open   []frame
}

func (s *scanner) scan() *JSONError {
	for {
		// Here a value begins. opened: an array or object did, and its first value
		// or key is next.
		opened, err := s.value()
		if err != nil {
			return err
		}
		if opened {
			continue
		}
		done, err := s.after()
		if err != nil || done {
			return err
		}
	}
}

// value reads a scalar, an empty container, or the beginning of a container up
// to its first value.
func (s *scanner) value() (opened bool, err *JSONError) {
	s.space()
	if s.at >= len(s.text) {
		return false, s.fail(s.at, "JSON ends where a value should be")
	}
	switch c := s.text[s.at]; {
	case c == '{' || c == '[':
		return s.begin(c == '{')
	case c == '"':
		return false, s.str()
	case c == '-' || c >= '0' && c <= '9':
		return false, s.number()
	case c == 't':
		return false, s.word("true")
	case c == 'f':
		return false, s.word("false")
	case c == 'n':
		return false, s.word("null")
	}
	return false, s.fail(s.at, "not JSON: no value begins with %s", s.quoted())
}

func (s *scanner) begin(object bool) (opened bool, err *JSONError) {
	if s.limits.Depth > 0 && len(s.open) >= s.limits.Depth {
		return false, s.fail(s.at, "nested deeper than %d arrays and objects", s.limits.Depth)
	}
	s.at++
	s.space()
	closing := byte(']')
	if object {
		closing = '}'
	}
	if s.at < len(s.text) && s.text[s.at] == closing {
		s.at++
		return false, nil
	}
	s.open = append(s.open, frame{object: object})
	if object {
		return true, s.key()
	}
	return true, nil
}

// after reads what follows a value: commas up to the next value, ends of
// containers, or the end of the text.
func (s *scanner) after() (done bool, err *JSONError) {
	for {
		s.space()
		if len(s.open) == 0 {
			if s.at < len(s.text) {
				return false, s.fail(s.at, "not JSON: %s after the end of the value", s.quoted())
			}
			return true, nil
		}
		top := &s.open[len(s.open)-1]
		if s.at >= len(s.text) {
			return false, s.fail(s.at, "JSON ends inside an array or object")
		}
		switch c := s.text[s.at]; {
		case c == ',':
			s.at++
			if top.object {
				return false, s.key()
			}
			top.index++
			return false, nil
		case c == '}' && top.object, c == ']' && !top.object:
			s.at++
			s.open = s.open[:len(s.open)-1]
		default:
			return false, s.fail(s.at, "not JSON: %s where a comma or an end should be", s.quoted())
		}
	}
}

func (s *scanner) key() *JSONError {
	s.space()
	if s.at >= len(s.text) || s.text[s.at] != '"' {
		return s.fail(s.at, "not JSON: no name in double quotes where one should be")
	}
	start := s.at + 1
	if err := s.str(); err != nil {
		return err
	}
	top := &s.open[len(s.open)-1]
	top.keyStart, top.keyEnd = start, s.at-1
	s.space()
	if s.at >= len(s.text) || s.text[s.at] != ':' {
		return s.fail(s.at, "not JSON: no colon after a name")
	}
	s.at++
	return nil
}

// str reads a string, the position being on its opening quote.
func (s *scanner) str() *JSONError {
	s.at++
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		case c < 0x20:
			return s.fail(s.at, "not JSON: control character 0x%02x inside a string; write it as an escape", c)
		case c < utf8.RuneSelf:
			s.at++
		default:
			r, size := utf8.DecodeRune(s.text[s.at:])
			if r == utf8.RuneError && size <= 1 {
				return s.fail(s.at, "invalid UTF-8 inside a string")
			}
			s.at += size
		}
	}
	return s.fail(s.at, "JSON ends inside a string")
}

func (s *scanner) escape() *JSONError {
	start := s.at
	if s.at+1 >= len(s.text) {
		return s.fail(start, "JSON ends inside a string")
	}
	switch s.text[s.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at += 2
		return nil
	case 'u':
	default:
		return s.fail(start, "not JSON: unknown escape in a string")
	}
	unit, ok := s.unit(start)
	if !ok {
		return s.fail(start, "not JSON: \\u without four hexadecimal digits")
	}
	s.at += 6
	switch {
	case unit == 0:
		return s.fail(start, "\\u0000 cannot be stored by Postgres: leave it out or encode the value")
	case unit >= 0xDC00 && unit <= 0xDFFF:
		return s.fail(start, "the second half of a surrogate pair without the first (\\u%04x) cannot be stored by Postgres", unit)
	case unit >= 0xD800 && unit <= 0xDBFF:
		low, ok := s.unit(s.at)
		if !ok || low < 0xDC00 || low > 0xDFFF {
			return s.fail(start, "the first half of a surrogate pair without the second (\\u%04x) cannot be stored by Postgres", unit)
		}
		s.at += 6
	}
	return nil
}

// unit is the code unit of the \uXXXX at a position.
func (s *scanner) unit(at int) (uint64, bool) {
	if at+6 > len(s.text) || s.text[at] != '\\' || s.text[at+1] != 'u' {
		return 0, false
	}
	for _, c := range s.text[at+2 : at+6] {
		if !isHex(c) { // ParseUint alone would take an underscore or a sign
			return 0, false
		}
	}
	unit, err := strconv.ParseUint(string(s.text[at+2:at+6]), 16, 16)
	return unit, err == nil
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (s *scanner) number() *JSONError {
	start := s.at
	if s.text[s.at] == '-' {
		s.at++
	}
	zero := s.at < len(s.text) && s.text[s.at] == '0'
	if n := s.digits(); n == 0 || zero && n > 1 {
		return s.fail(start, "not JSON: malformed number")
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if s.digits() == 0 {
			return s.fail(start, "not JSON: number without digits after the point")
		}
	}
	if s.at < len(s.text) && (s.text[s.at] == 'e' || s.text[s.at] == 'E') {
		if err := s.exponent(start); err != nil {
			return err
		}
	}
	if s.limits.Number > 0 && s.at-start > s.limits.Number {
		return s.fail(start, "number of %d characters is over the limit of %d: send it as a string", s.at-start, s.limits.Number)
	}
	return nil
}

func (s *scanner) exponent(start int) *JSONError {
	s.at++
	if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
		s.at++
	}
	from := s.at
	if s.digits() == 0 {
		return s.fail(start, "not JSON: number without digits in its exponent")
	}
	if s.limits.Exponent == 0 {
		return nil
	}
	if e, err := strconv.Atoi(string(s.text[from:s.at])); err != nil || e > s.limits.Exponent {
		return s.fail(start, "number with an exponent beyond %d: send it as a string", s.limits.Exponent)
	}
	return nil
}

func (s *scanner) digits() (count int) {
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
		count++
	}
	return count
}

func (s *scanner) word(word string) *JSONError {
	if len(s.text)-s.at < len(word) || string(s.text[s.at:s.at+len(word)]) != word {
		return s.fail(s.at, "not JSON: no value begins with %s", s.quoted())
	}
	s.at += len(word)
	return nil
}

func (s *scanner) space() {
	for s.at < len(s.text) && isSpace(s.text[s.at]) {
		s.at++
	}
}

// quoted is the character at the position, for an error.
func (s *scanner) quoted() string {
	r, size := utf8.DecodeRune(s.text[s.at:])
	if r == utf8.RuneError && size <= 1 {
		return "invalid UTF-8"
	}
	return strconv.QuoteRune(r)
}
