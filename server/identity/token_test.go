package identity

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTokenFormat(t *testing.T) {
	t.Parallel()
	for _, kind := range []TokenKind{TokenCI, TokenHook, TokenGateway, TokenAPI} {
		plain, token := NewToken(kind, "name", []string{"service:api"}, "owner")
		require.Regexp(t, `^hf_`+string(kind)+`_[a-z2-7]{16}_[0-9A-Za-z]{43}$`, plain)
		parsed, err := ParseToken(plain)
		require.NoError(t, err)
		require.Equal(t, ParsedToken{Kind: kind, ID: token.ID}, parsed)
		require.True(t, token.matches(plain))
		require.False(t, token.matches(plain[:len(plain)-1]+"0"+"0"))
		require.NotContains(t, token.Hash, strings.Split(plain, "_")[3])
	}
}

func TestSecretsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		code, hash := NewCode()
		require.Len(t, code, secretLen)
		require.Equal(t, hash, HashCode(code))
		require.False(t, seen[code])
		seen[code] = true
	}
}

func TestParseTokenRefusesJunkWithoutRepeatingIt(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("S", secretLen)
	for _, junk := range []string{
		"", "hf", "hf___", "hf_ci_abcdefghijkl", "xx_ci_abcdefghijkl_" + secret, "hf_root_abcdefghijkl_" + secret,
		"hf_ci_short_" + secret, "hf_ci_ABCDEFGHIJKL_" + secret, "hf_ci_abcdefghijkl_" + secret[1:],
		"hf_ci_abcdefghijkl_" + secret[1:] + "-", "hf_ci_abcdefghijkl_" + secret + "_x", "hf_ci_abcdefghijkl_" + secret + "\n",
		strings.Repeat("hf_ci_", 10_000),
	} {
		_, err := ParseToken(junk)
		require.ErrorIs(t, err, ErrInvalid, junk[:min(len(junk), 60)])
		require.NotContains(t, err.Error(), "SSSS")
	}
}

func FuzzParseToken(f *testing.F) {
	plain, _ := NewToken(TokenCI, "", nil, "")
	f.Add(plain)
	f.Add("hf_ci__")
	f.Add("hf_\x00_\xff_")
	f.Fuzz(func(t *testing.T, s string) {
		parsed, err := ParseToken(s)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			return
		}
		require.True(t, parsed.Kind.Valid())
		require.True(t, strings.HasPrefix(s, "hf_"+string(parsed.Kind)+"_"+parsed.ID+"_"))
	})
}

func TestRoles(t *testing.T) {
	t.Parallel()
	ordered := []Role{RoleNone, RoleViewer, RoleResponder, RoleApprover, RoleAdmin}
	for i, r := range ordered {
		for j, least := range ordered {
			require.Equal(t, i >= j, r.AtLeast(least), "%q at least %q", r, least)
		}
		require.False(t, r.AtLeast("root"), "an unknown role is had by nobody")
		require.Equal(t, i == 0, Role("root").AtLeast(r), "an unknown role has nothing")
		parsed, err := ParseRole(string(r))
		require.Equal(t, i == 0, err != nil)
		require.Equal(t, r, parsed)
	}
	_, err := ParseRole("Admin")
	require.ErrorContains(t, err, `role "Admin" is not one of viewer`)
}

func TestRequire(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, err := Require(ctx, RoleNone)
	require.ErrorIs(t, err, ErrUnauthenticated)
	_, err = Require(WithPrincipal(ctx, Principal{Role: RoleAdmin}), RoleNone)
	require.ErrorIs(t, err, ErrUnauthenticated, "the zero kind is nobody")

	person := WithPrincipal(ctx, Of(Person{ID: "p", Name: "Alice", Role: RoleResponder}, ChannelConsole))
	_, err = Require(person, RoleResponder)
	require.NoError(t, err)
	_, err = Require(person, RoleApprover)
	require.ErrorIs(t, err, ErrForbidden)
	require.ErrorContains(t, err, `needs the role approver and "Alice" has responder`)
	_, err = RequireToken(person, TokenCI)
	require.ErrorIs(t, err, ErrForbidden)

	hook := WithPrincipal(ctx, Principal{Kind: PrincipalToken, TokenKind: TokenHook, Name: "am"})
	_, err = RequireToken(hook, TokenCI, TokenHook)
	require.NoError(t, err)
	_, err = RequireToken(hook, TokenCI, TokenGateway)
	require.ErrorContains(t, err, "needs a token of kind ci or gateway")
	_, err = Require(hook, RoleViewer)
	require.ErrorContains(t, err, `the hook token "am" has none`)

	_, err = Require(WithPrincipal(ctx, System()), RoleAdmin)
	require.NoError(t, err)
	_, err = RequirePerson(WithPrincipal(ctx, System()), RoleApprover)
	require.ErrorIs(t, err, ErrForbidden, "holdfast itself is no second pair of eyes")
	_, ok := From(context.Background())
	require.False(t, ok)
}

func TestHasScope(t *testing.T) {
	t.Parallel()
	open := Principal{}
	require.True(t, open.HasScope("service", "api"))
	narrow := Principal{Scopes: []string{"service:api", "service:web", "environment:prod", "odd"}}
	require.True(t, narrow.HasScope("service", "web"))
	require.False(t, narrow.HasScope("service", "db"))
	require.False(t, narrow.HasScope("environment", "staging"))
	require.True(t, narrow.HasScope("source", "alertmanager"), "another dimension is not narrowed")
}

func TestAuditEntryNamesTheCaller(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Principal{
		"p-1": {Kind: PrincipalPerson, PersonID: "p-1"}, "token:t-1": {Kind: PrincipalToken, TokenID: "t-1", PersonID: "p-1"},
		"system": System(), "anonymous": {},
	} {
		require.Equal(t, want, p.AuditEntry("v", "s", "denied", "").ActorID)
	}
	require.Equal(t, "anonymous", Principal{}.AuditEntry("v", "s", "denied", "").ActorName)
}

func TestFailureLimit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 3, 10, 0, 0, 0, time.UTC)
	f := newFailureLimit()
	require.True(t, f.due("a", now))
	require.False(t, f.due("a", now.Add(failureEvery-1)))
	require.True(t, f.due("b", now))
	require.True(t, f.due("a", now.Add(failureEvery)))
	for i := range 10 * failureSubjects {
		f.due(strings.Repeat("x", i), now.Add(failureEvery))
	}
	require.LessOrEqual(t, len(f.last), failureSubjects+1, "an attacker cannot grow it")
}
