package remoting

import "strconv"

// Language is the implementation language that a peer names in each frame
// (docs/wire/headers.md).
type Language byte

// Languages by their code in the binary header.
const (
	LanguageJava Language = iota
	LanguageCPP
	LanguageDotNet
	LanguagePython
	LanguageDelphi
	LanguageErlang
	LanguageRuby
	LanguageOther
	LanguageHTTP
	LanguageGo
	LanguagePHP
	LanguageOMS
	LanguageRust
	LanguageNodeJS
)

var languageNames = [...]string{
	"JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS",
}

// String returns the name that travels in a JSON header, for example "GO".
func (l Language) String() string {
	if int(l) < len(languageNames) {
		return languageNames[l]
	}
	return "LanguageCode(" + strconv.Itoa(int(l)) + ")"
}

// wireName returns the name to write: an unknown code is written as OTHER.
func (l Language) wireName() string {
	if int(l) < len(languageNames) {
		return languageNames[l]
	}
	return languageNames[LanguageOther]
}

// ParseLanguage returns the language of a name; a name that is not known
// becomes LanguageOther.
func ParseLanguage(name string) Language {
	for i, n := range languageNames {
		if n == name {
			return Language(i)
		}
	}
	return LanguageOther
}
