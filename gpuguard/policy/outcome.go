package policy

// Outcome says what happened to one proxied request. The list is closed: each
// value is used verbatim as metric label, log field, header and replay key.
type Outcome string

// Outcomes.
const (
	// OutcomeOK: the upstream's answer was delivered whole.
	OutcomeOK Outcome = "ok"
	// OutcomeClientFault: the upstream answered a 4xx that is the caller's fault.
	OutcomeClientFault Outcome = "client_fault"
	// OutcomeClientCancelled: the caller left, or its own deadline passed.
	OutcomeClientCancelled Outcome = "client_cancelled"
	// OutcomeUpstreamError: the upstream answered 5xx, or an error inside a 200.
	OutcomeUpstreamError Outcome = "upstream_error"
	// OutcomeUpstreamThrottled: the upstream answered 429.
	OutcomeUpstreamThrottled Outcome = "upstream_throttled"
	// OutcomeUpstreamMisconfigured: the upstream refused our credential or account (401, 403).
	OutcomeUpstreamMisconfigured Outcome = "upstream_misconfigured"
	// OutcomeUpstreamEmpty: a 200 without a body where one is due.
	OutcomeUpstreamEmpty Outcome = "upstream_empty"
	// OutcomeUpstreamCut: the answer ended before its end.
	OutcomeUpstreamCut Outcome = "upstream_cut"
	// OutcomeUpstreamUnreachable: no connection could be made.
	OutcomeUpstreamUnreachable Outcome = "upstream_unreachable"
	// OutcomeTimeoutFirstByte, OutcomeTimeoutIdle, OutcomeTimeoutTotal: a limit of Timeouts passed.
	OutcomeTimeoutFirstByte Outcome = "timeout_first_byte"
	OutcomeTimeoutIdle      Outcome = "timeout_idle"
	OutcomeTimeoutTotal     Outcome = "timeout_total"
	// OutcomeBreakerOpen: refused or answered by the fallback because a breaker is open.
	OutcomeBreakerOpen Outcome = "breaker_open"
	// OutcomeLimited: a rate limit refused it.
	OutcomeLimited Outcome = "limited"
	// OutcomeNoEndpoint: the pool has nobody to send it to.
	OutcomeNoEndpoint Outcome = "no_endpoint"
	// OutcomeUnauthenticated: no or a wrong API key.
	OutcomeUnauthenticated Outcome = "unauthenticated"
	// OutcomeNoRoute: no route matches path or method.
	OutcomeNoRoute Outcome = "no_route"
	// OutcomeBadRequest: malformed or refused before any route's work.
	OutcomeBadRequest Outcome = "bad_request"
	// OutcomeBodyTooLarge: over the route's cap.
	OutcomeBodyTooLarge Outcome = "body_too_large"
	// OutcomeInternal: a fault of the gateway itself.
	OutcomeInternal Outcome = "internal"
)

// Outcomes lists every value, in a fixed order.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeOK, OutcomeClientFault, OutcomeClientCancelled, OutcomeUpstreamError,
		OutcomeUpstreamThrottled, OutcomeUpstreamMisconfigured, OutcomeUpstreamEmpty,
		OutcomeUpstreamCut, OutcomeUpstreamUnreachable, OutcomeTimeoutFirstByte,
		OutcomeTimeoutIdle, OutcomeTimeoutTotal, OutcomeBreakerOpen, OutcomeLimited,
		OutcomeNoEndpoint, OutcomeUnauthenticated, OutcomeNoRoute, OutcomeBadRequest,
		OutcomeBodyTooLarge, OutcomeInternal,
	}
}

// Failed says whether the caller got no whole answer through a fault of the
// gateway's side or an upstream's: what error rates count. Refusals that are the
// caller's doing (limits, keys, bad requests, leaving) are not failures.
func (o Outcome) Failed() bool {
	switch o {
	case OutcomeUpstreamError, OutcomeUpstreamThrottled, OutcomeUpstreamMisconfigured, OutcomeUpstreamEmpty,
		OutcomeUpstreamCut, OutcomeUpstreamUnreachable, OutcomeTimeoutFirstByte, OutcomeTimeoutIdle,
		OutcomeTimeoutTotal, OutcomeBreakerOpen, OutcomeNoEndpoint, OutcomeInternal:
		return true
	case OutcomeOK, OutcomeClientFault, OutcomeClientCancelled, OutcomeLimited, OutcomeUnauthenticated,
		OutcomeNoRoute, OutcomeBadRequest, OutcomeBodyTooLarge:
		return false
	default:
		return false
	}
}
