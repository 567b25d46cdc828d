package enginesim

import (
	"hash/fnv"
	"strings"
	"unicode/utf8"
)

// words are the vocabulary of all answers; one word is one token.
var words = strings.Fields(`the breaker opens when errors rise and closes after good probes
	a queue that only grows needs fewer requests not more servers so shed load early keep
	healthy answers fast warm caches before traffic returns and write down what changed`)

// countTokens estimates tokens as usual tokenizers count them: four ASCII
// characters, or one other character, per token.
func countTokens(s string) int {
	runes := utf8.RuneCountInString(s)
	ascii := 0
	for i := 0; i < len(s); i++ {
		if s[i] < utf8.RuneSelf {
			ascii++
		}
	}
	return (ascii+3)/4 + runes - ascii
}

// hashText is a repeatable number for a text.
func hashText(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// word is token i of the answer to a prompt with this hash.
func word(hash uint64, i int) string {
	w := words[(hash+uint64(i))%uint64(len(words))]
	if i == 0 {
		return w
	}
	return " " + w
}

// answer is the whole text of so many tokens.
func answer(hash uint64, tokens int) string {
	var b strings.Builder
	for i := range tokens {
		b.WriteString(word(hash, i))
	}
	return b.String()
}

// naturalLength is the output length a model would choose by itself: mean
// ± 50 %, always the same for one prompt.
func naturalLength(hash uint64, mean int) int {
	spread := mix(hash) % uint64(mean+1)
	return max(1, mean/2+int(spread))
}
