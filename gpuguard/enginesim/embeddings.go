package enginesim

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

type embeddingsRequest struct {
	Model          string          `json:"model"`
	Input          json.RawMessage `json:"input"`
	EncodingFormat string          `json:"encoding_format"`
	Dimensions     *int            `json:"dimensions"`
}

type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // []float32, or base64 of little-endian float32
}

type embeddingsResponse struct {
	ID      string      `json:"id"`
	Object  string      `json:"object"`
	Created int64       `json:"created"`
	Model   string      `json:"model"`
	Data    []embedding `json:"data"`
	Usage   *usage      `json:"usage"`
}

// embeddings serves /v1/embeddings: one prefill without output tokens.
func (e *Engine) embeddings(w http.ResponseWriter, r *http.Request) {
	var req embeddingsRequest
	if err := e.decode(w, r, &req); err != nil {
		err.write(w)
		return
	}
	if err := e.checkModel(req.Model); err != nil {
		err.write(w)
		return
	}
	inputs, dims, apiErr := req.validate(e.opts.EmbeddingDimensions)
	if apiErr != nil {
		apiErr.write(w)
		return
	}
	tokens := 0
	for _, in := range inputs {
		tokens += in.tokens
	}
	x := exchange{engine: e, w: w, ctx: r.Context(), work: work{prompt: tokens, finishReason: finishStop}}
	e.answer(&x, func(c *call) {
		if _, ok := x.finish(c); !ok {
			return
		}
		data := make([]embedding, len(inputs))
		for i, in := range inputs {
			data[i] = embedding{Object: "embedding", Index: i, Embedding: req.encode(vector(in.hash, dims))}
		}
		x.writeJSON(embeddingsResponse{
			ID: newID("embd-"), Object: "list", Created: time.Now().Unix(), Model: e.opts.Model,
			Data: data, Usage: newUsage(tokens, 0),
		})
	})
}

func (r *embeddingsRequest) validate(most int) ([]prompt, int, *apiError) {
	switch r.EncodingFormat {
	case "", "float", "base64":
	default:
		return nil, 0, badRequest("encoding_format", fmt.Sprintf("encoding_format: got %q, want float or base64.", clip(r.EncodingFormat)))
	}
	dims := most
	if r.Dimensions != nil {
		dims = *r.Dimensions
	}
	if dims < 1 || dims > most {
		return nil, 0, badRequest("dimensions", fmt.Sprintf("dimensions: got %d, want 1 to %d.", dims, most))
	}
	inputs, err := r.inputs()
	return inputs, dims, err
}

// inputs accepts the four shapes of the OpenAI API: text, texts, tokens, lists of tokens.
func (r *embeddingsRequest) inputs() ([]prompt, *apiError) {
	if len(r.Input) == 0 || string(r.Input) == "null" {
		return nil, badRequest("input", "input: field required.")
	}
	var (
		text       string
		texts      []string
		tokens     []uint32
		tokenLists [][]uint32
		inputs     []prompt
	)
	switch {
	case json.Unmarshal(r.Input, &text) == nil:
		inputs = textPrompts(text)
	case json.Unmarshal(r.Input, &texts) == nil:
		inputs = textPrompts(texts...)
	case json.Unmarshal(r.Input, &tokens) == nil:
		inputs = tokenPrompts(tokens)
	case json.Unmarshal(r.Input, &tokenLists) == nil:
		inputs = tokenPrompts(tokenLists...)
	default:
		return nil, badRequest("input", "input: want a string, an array of strings, an array of tokens or an array of token arrays.")
	}
	if len(inputs) == 0 {
		return nil, badRequest("input", "input: want at least one text.")
	}
	for i, in := range inputs {
		if in.tokens == 0 {
			return nil, badRequest("input", "input["+strconv.Itoa(i)+"]: must not be empty.")
		}
	}
	return inputs, nil
}

func textPrompts(texts ...string) []prompt {
	prompts := make([]prompt, len(texts))
	for i, t := range texts {
		prompts[i] = prompt{hash: hashText(t), tokens: countTokens(t)}
	}
	return prompts
}

func tokenPrompts(lists ...[]uint32) []prompt {
	prompts := make([]prompt, len(lists))
	for i, t := range lists {
		prompts[i] = prompt{hash: hashText(fmt.Sprint(t)), tokens: len(t)}
	}
	return prompts
}

func (r *embeddingsRequest) encode(v []float32) any {
	if r.EncodingFormat != "base64" {
		return v
	}
	raw := make([]byte, 0, 4*len(v))
	for _, f := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// vector is a unit vector that depends only on the text.
func vector(hash uint64, dims int) []float32 {
	v := make([]float32, dims)
	var square float64
	for i := range v {
		x := draw(hash, uint64(i), 0)*2 - 1
		square += x * x
		v[i] = float32(x)
	}
	length := math.Sqrt(max(square, 1e-12))
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
	return v
}
