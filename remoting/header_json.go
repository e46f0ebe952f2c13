package remoting

import (
	"strconv"

	"mqx/internal/fastjson"
)

// decodeJSON reads a JSON header (docs/wire/headers.md).
func (c *Command) decodeJSON(h []byte) error {
	s := headerScanner{h: h, scratch: c.scratch[:0]}
	err := c.scanJSON(&s)
	c.scratch = s.scratch
	return err
}

func (c *Command) scanJSON(s *headerScanner) error {
	if !s.at('{') {
		return s.fail("object expected")
	}
	s.pos++
	for first := true; ; first = false {
		more, err := s.more(first)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		key, err := s.key()
		if err != nil {
			return err
		}
		if err := c.scanMember(s, key); err != nil {
			return err
		}
	}
	s.space()
	if s.pos != len(s.h) {
		return s.fail("unexpected text after the header")
	}
	return nil
}

func (c *Command) scanMember(s *headerScanner, key []byte) error {
	switch string(key) {
	case "code":
		return s.number(&c.Code)
	case "flag":
		return s.number(&c.Flag)
	case "opaque":
		return s.number(&c.Opaque)
	case "version":
		return s.number(&c.Version)
	case "language":
		v, quoted, err := s.value()
		if err == nil && v != nil {
			c.Language = languageOf(v, quoted)
		}
		return err
	case "remark":
		v, _, err := s.value()
		c.Remark = string(v)
		return err
	case "extFields":
		return c.scanFields(s)
	}
	_, _, err := s.value()
	return err
}

func languageOf(v []byte, quoted bool) Language {
	switch string(v) {
	case "JAVA":
		return LanguageJava
	case "GO":
		return LanguageGo
	}
	if !quoted {
		if n, err := parseInt(v, 32); err == nil && n >= 0 && n < int64(len(languageNames)) {
			return Language(n)
		}
	}
	return ParseLanguage(string(v))
}

// scanFields reads extFields. A second extFields member replaces the first.
func (c *Command) scanFields(s *headerScanner) error {
	c.Fields, c.EmptyFields = c.Fields[:0], false
	if !s.at('{') {
		v, _, err := s.value()
		if err == nil && v != nil {
			return s.fail("extFields is not an object")
		}
		return err
	}
	s.pos++
	for first := true; ; first = false {
		more, err := s.more(first)
		if err != nil {
			return err
		}
		if !more {
			c.EmptyFields = len(c.Fields) == 0
			return nil
		}
		key, err := s.key()
		if err != nil {
			return err
		}
		value, _, err := s.value()
		if err != nil {
			return err
		}
		if len(c.Fields) == MaxHeaderFields {
			return ErrTooManyFields
		}
		c.Fields = append(c.Fields, Field{Key: key, Value: value})
	}
}

// appendJSON appends the JSON header of c as Java writes it: members by name,
// no null members.
func (c *Command) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(c.Code), 10)
	if len(c.Fields) > 0 || c.EmptyFields {
		dst = append(dst, `,"extFields":{`...)
		first := true
		for _, f := range c.Fields {
			if f.Value == nil {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = fastjson.AppendString(dst, f.Key)
			dst = append(dst, ':')
			dst = fastjson.AppendString(dst, f.Value)
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `,"flag":`...)
	dst = strconv.AppendInt(dst, int64(c.Flag), 10)
	dst = append(dst, `,"language":"`...)
	dst = append(dst, c.Language.wireName()...)
	dst = append(dst, `","opaque":`...)
	dst = strconv.AppendInt(dst, int64(c.Opaque), 10)
	if c.Remark != "" {
		dst = append(dst, `,"remark":`...)
		dst = fastjson.AppendString(dst, c.Remark)
	}
	dst = append(dst, `,"serializeTypeCurrentRPC":"JSON","version":`...)
	dst = strconv.AppendInt(dst, int64(c.Version), 10)
	return append(dst, '}')
}
