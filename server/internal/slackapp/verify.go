package slackapp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	headerSignature = "X-Slack-Signature"
	headerTimestamp = "X-Slack-Request-Timestamp"
	// signatureWindow is how far a request's timestamp may be off, either way.
	signatureWindow = 5 * time.Minute
	// replayMemory is how long a seen request is remembered: the window on both sides.
	replayMemory = 2 * signatureWindow
)

// errSignature is all that is ever said of a bad signature: what would have been
// right must not reach a log.
var errSignature = errors.New("the request is not signed by Slack, or its timestamp is off by more than five minutes")

// verifier checks Slack's request signature, version v0, over the raw body.
type verifier struct {
	secret []byte
	now    func() time.Time
}

// requestKey is the signature of a verified request as bytes: the header's
// spelling (upper or lower case) must not make two of one.
type requestKey [sha256.Size]byte

// verify returns errSignature for anything but a fresh, rightly signed request,
// else what the request is remembered by.
func (v verifier) verify(h http.Header, body []byte) (key requestKey, err error) {
	stamp := h.Get(headerTimestamp)
	sec, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || sec <= 0 || sec > 1<<40 || len(v.secret) == 0 {
		return key, errSignature
	}
	if v.now().Sub(time.Unix(sec, 0)).Abs() > signatureWindow {
		return key, errSignature
	}
	hexSum, ok := strings.CutPrefix(h.Get(headerSignature), "v0=")
	if !ok {
		return key, errSignature
	}
	got, err := hex.DecodeString(hexSum)
	if err != nil {
		return key, errSignature
	}
	mac := hmac.New(sha256.New, v.secret)
	mac.Write([]byte("v0:" + stamp + ":"))
	mac.Write(body)
	want := mac.Sum(nil)
	if !hmac.Equal(got, want) {
		return key, errSignature
	}
	return requestKey(want), nil
}

// replays remembers verified requests, so that the same bytes sent twice are one request.
type replays struct {
	now  func() time.Time
	mu   sync.Mutex
	seen map[requestKey]time.Time
	// sweep is when expired entries are next dropped.
	sweep time.Time
}

// first says whether this request is new; the signature covers its timestamp.
func (r *replays) first(key requestKey) bool {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[requestKey]time.Time{}
	}
	if now.After(r.sweep) {
		for k, until := range r.seen {
			if now.After(until) {
				delete(r.seen, k)
			}
		}
		r.sweep = now.Add(time.Minute)
	}
	if until, ok := r.seen[key]; ok && now.Before(until) {
		return false
	}
	r.seen[key] = now.Add(replayMemory)
	return true
}

// forget lets a request that was turned away for want of room come again.
func (r *replays) forget(key requestKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.seen, key)
}
