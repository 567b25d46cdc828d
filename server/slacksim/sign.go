package slacksim

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// Header names of a signed request.
const (
	// HeaderSignature carries "v0=" and the hex HMAC-SHA256.
	HeaderSignature = "X-Slack-Signature"
	// HeaderTimestamp carries the Unix time in seconds.
	HeaderTimestamp = "X-Slack-Request-Timestamp"
	// HeaderRetryNum counts repeated deliveries of one event, from 1.
	HeaderRetryNum = "X-Slack-Retry-Num"
	// HeaderRetryReason says why an event is delivered again.
	HeaderRetryReason = "X-Slack-Retry-Reason"
)

// Sign returns Slack's v0 signature of a raw body sent at the given time.
func Sign(secret string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + strconv.FormatInt(at.Unix(), 10) + ":"))
	mac.Write(body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

// signedHeader returns the headers of a signed request.
func signedHeader(secret string, at time.Time, contentType string, body []byte) http.Header {
	h := http.Header{}
	h.Set("Content-Type", contentType)
	h.Set("Accept", "application/json,*/*")
	h.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	h.Set(HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(HeaderSignature, Sign(secret, at, body))
	return h
}
