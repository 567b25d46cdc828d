package identity

import "fmt"

// rank orders the roles; unknown strings rank as none.
func (r Role) rank() int {
	switch r {
	case RoleViewer:
		return 1
	case RoleResponder:
		return 2
	case RoleApprover:
		return 3
	case RoleAdmin:
		return 4
	default:
		return 0
	}
}

// AtLeast says whether r includes least. An unknown or empty role includes
// nothing but RoleNone, and an unknown least is included by nobody.
func (r Role) AtLeast(least Role) bool {
	if least != RoleNone && least.rank() == 0 {
		return false
	}
	return r.rank() >= least.rank()
}

// ParseRole reads a role as written in files, forms and the API. ErrInvalid
// names what was given and what is possible.
func ParseRole(s string) (Role, error) {
	if r := Role(s); r.rank() > 0 {
		return r, nil
	}
	return RoleNone, fmt.Errorf("%w: role %q is not one of viewer, responder, approver, admin", ErrInvalid, s)
}
