package httpapi

import (
	"net/http"
	"strconv"

	"holdfast/server/internal/httpapi/gen"
)

func (p taggedPolicy) tag(w http.ResponseWriter) {
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(p.Revision, 10)))
}

// VisitGetPolicyResponse writes the policy with its ETag.
func (p taggedPolicy) VisitGetPolicyResponse(w http.ResponseWriter) error {
	p.tag(w)
	return gen.GetPolicy200JSONResponse(p.Policy).VisitGetPolicyResponse(w)
}

// VisitPutPolicyResponse writes the policy with its ETag.
func (p taggedPolicy) VisitPutPolicyResponse(w http.ResponseWriter) error {
	p.tag(w)
	return gen.PutPolicy200JSONResponse(p.Policy).VisitPutPolicyResponse(w)
}
