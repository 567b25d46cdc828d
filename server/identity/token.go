package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"math/big"
	"strings"
)

// Bounds of the parts of a token. A token is hf_<kind>_<id>_<secret>; neither id
// nor secret holds '_' or '-', so it splits without doubt and is selected by a
// double click.
const (
	tokenPrefix     = "hf"
	tokenIDLen      = 16
	minTokenID      = 12
	maxTokenID      = 32
	secretBytes     = 32
	secretLen       = 43
	maxSecret       = 128
	maxPlainToken   = 192
	base62          = 62
	maxTokenName    = 100
	maxScopes       = 50
	maxScopeLength  = 200
	tokenPartsCount = 4
)

// NewToken makes a token of the kind with a fresh id and a secret of 256 random
// bits. The plain text is shown once and never stored; Token holds its hash.
// CreatedAt and ExpiresAt are left to the caller.
func NewToken(kind TokenKind, name string, scopes []string, ownerID string) (plain string, t Token) {
	id := strings.ToLower(rand.Text())[:tokenIDLen]
	plain = strings.Join([]string{tokenPrefix, string(kind), id, newSecret()}, "_")
	return plain, Token{ID: id, Kind: kind, Name: name, Scopes: scopes, OwnerID: ownerID, Hash: hashSecret(plain)}
}

// ParsedToken is what a plain token says about itself; nothing of it is proven.
type ParsedToken struct {
	Kind TokenKind
	ID   string
}

// ParseToken splits a plain token. The error never repeats any part of the input.
func ParseToken(plain string) (ParsedToken, error) {
	if len(plain) > maxPlainToken {
		return ParsedToken{}, fmt.Errorf("%w: a token has at most %d characters", ErrInvalid, maxPlainToken)
	}
	parts := strings.Split(plain, "_")
	if len(parts) != tokenPartsCount || parts[0] != tokenPrefix {
		return ParsedToken{}, fmt.Errorf("%w: a token reads hf_<kind>_<id>_<secret>", ErrInvalid)
	}
	kind, id, secret := TokenKind(parts[1]), parts[2], parts[3]
	switch {
	case !kind.Valid():
		return ParsedToken{}, fmt.Errorf("%w: the kind of a token is ci, hook, gateway or api", ErrInvalid)
	case len(id) < minTokenID || len(id) > maxTokenID || !only(id, isLowerAlnum):
		return ParsedToken{}, fmt.Errorf("%w: the id of a token has %d to %d lower-case letters and digits", ErrInvalid, minTokenID, maxTokenID)
	case len(secret) < secretLen || len(secret) > maxSecret || !only(secret, isAlnum):
		return ParsedToken{}, fmt.Errorf("%w: the secret of a token has %d to %d letters and digits", ErrInvalid, secretLen, maxSecret)
	}
	return ParsedToken{Kind: kind, ID: id}, nil
}

// Valid says whether it is one of the token kinds.
func (k TokenKind) Valid() bool {
	switch k {
	case TokenCI, TokenHook, TokenGateway, TokenAPI:
		return true
	default:
		return false
	}
}

// matches compares in constant time.
func (t Token) matches(plain string) bool {
	return subtle.ConstantTimeCompare([]byte(t.Hash), []byte(hashSecret(plain))) == 1
}

// NewCode makes the code of a one-time link or the value of a session cookie,
// and the hash under which it is stored.
func NewCode() (code, hash string) {
	code = newSecret()
	return code, hashSecret(code)
}

// HashCode gives the hash under which a code or cookie value is stored.
func HashCode(code string) string { return hashSecret(code) }

// newSecret gives 32 random bytes in base 62, always 43 characters.
func newSecret() string {
	var raw [secretBytes]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the process instead
	text := new(big.Int).SetBytes(raw[:]).Text(base62)
	return strings.Repeat("0", secretLen-len(text)) + text
}

// hashSecret needs no salt or stretching: what it hashes has 256 random bits.
func hashSecret(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func only(s string, allowed func(byte) bool) bool {
	for i := range len(s) {
		if !allowed(s[i]) {
			return false
		}
	}
	return true
}

func isLowerAlnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func isAlnum(c byte) bool { return isLowerAlnum(c) || c >= 'A' && c <= 'Z' }
