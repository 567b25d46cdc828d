package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
	"strings"
)

// format names the encoding that is hashed; another encoding gets another name.
const format = "holdfast-audit-1"

// Genesis is the PrevHash of Seq 1: 64 zeros.
var Genesis = strings.Repeat("0", 2*sha256.Size)

// Head names the end of a chain. Published outside of the database it lets
// Verify see a chain that was cut off or written anew. An empty chain has Seq 0
// and Hash Genesis.
type Head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Next returns the link of e after the given one; the zero Link starts a chain.
func Next(after Link, e Entry) Link {
	prev := after.Hash
	if after.Seq == 0 {
		prev = Genesis
	}
	seq := after.Seq + 1
	return Link{Seq: seq, PrevHash: prev, Hash: Hash(e, seq, prev)}
}

// Hash returns the lower-case hex SHA-256 of an entry at its place in the
// chain. Every field is encoded with its length in front, so that no two
// different entries have one encoding; numbers are 8 bytes, big-endian; At
// counts microseconds since 1970, which is what databases keep; Details are
// sorted by key.
func Hash(e Entry, seq int64, prevHash string) string {
	w := writer{sha256.New()}
	w.text(format)
	w.text(prevHash)
	w.number(seq)
	w.number(e.ID)
	w.number(e.At.UnixMicro())
	for _, field := range []string{
		e.ActorID, e.ActorName, e.Channel, e.Verb, e.Subject, string(e.Decision), e.Reason,
	} {
		w.text(field)
	}
	w.number(int64(len(e.Details)))
	for _, key := range slices.Sorted(maps.Keys(e.Details)) {
		w.text(key)
		w.text(e.Details[key])
	}
	return hex.EncodeToString(w.Sum(nil))
}

// writer encodes into a hash, which never fails.
type writer struct{ hash.Hash }

func (w writer) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	w.Write(b[:])
}

func (w writer) text(s string) {
	w.number(int64(len(s)))
	w.Write([]byte(s))
}
