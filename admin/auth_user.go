package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mqx/internal/fastjson"
	"mqx/remoting"
)

// UserState is a user, as a step shows it. The password is never written down: not in
// a plan, not in the journal.
type UserState struct {
	Type   string `json:"type" yaml:"type"`     // Super or Normal
	Status string `json:"status" yaml:"status"` // enable or disable
	// Password, when SetPassword is set, is what it becomes.
	Password    string `json:"-" yaml:"-"`
	SetPassword bool   `json:"setPassword,omitempty" yaml:"setPassword,omitempty"`
}

// String is the user in words.
func (u UserState) String() string {
	text := u.Type + ", " + u.Status
	if u.SetPassword {
		text += ", with the password given"
	}
	return text
}

// Why changes of users cannot be taken back.
var (
	errNoUserUndo     = errors.New("the password of a deleted user is not noted anywhere")
	errNoPasswordUndo = errors.New("the password that was before is not noted anywhere")
)

var userCells = &cellKind[UserState]{
	kind: kindUser, what: "user",
	same: func(a, b UserState) bool {
		if a.Type != b.Type || a.Status != b.Status {
			return false
		}
		return !a.SetPassword && !b.SetPassword || a.Password == b.Password
	},
	read: func(ctx context.Context, c *Client, at Broker, parts []string) (map[string]UserState, error) {
		out := map[string]UserState{}
		for _, name := range parts {
			resp, err := c.ask(ctx, at.Addr, remoting.NewRequest(remoting.ReqAuthGetUser, &remoting.AuthGetUserHeader{Username: name}))
			if hasCode(err, remoting.RespUserNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			u := &remoting.UserInfo{}
			if len(resp.Body) == 0 || string(resp.Body) == "null" {
				continue
			}
			if err := fastjson.Unmarshal(resp.Body, u); err != nil {
				return nil, fmt.Errorf("cannot read user %q: %w", name, err)
			}
			out[name] = UserState{Type: u.UserType, Status: u.UserStatus, Password: u.Password}
		}
		return out, nil
	},
	write: func(ctx context.Context, c *Client, w cellWrite[UserState]) error {
		if w.Is == nil {
			_, err := c.ask(ctx, w.At.Addr, remoting.NewRequest(remoting.ReqAuthDeleteUser, &remoting.AuthDeleteUserHeader{Username: w.Part}))
			return err
		}
		u := remoting.UserInfo{Username: w.Part, UserType: w.Is.Type, UserStatus: w.Is.Status}
		if w.Is.SetPassword {
			u.Password = w.Is.Password
		}
		req := remoting.NewRequest(remoting.ReqAuthUpdateUser, &remoting.AuthUpdateUserHeader{Username: w.Part})
		if w.Was == nil {
			req = remoting.NewRequest(remoting.ReqAuthCreateUser, &remoting.AuthCreateUserHeader{Username: w.Part})
		}
		var err error
		if req.Body, err = fastjson.Marshal(&u); err != nil {
			return fmt.Errorf("cannot write user: %w", err)
		}
		_, err = c.ask(ctx, w.At.Addr, req)
		return err
	},
	final: func(was, is *UserState) error {
		switch {
		case is == nil:
			return errNoUserUndo
		case was != nil && was.Password != is.Password:
			return errNoPasswordUndo
		}
		return nil
	},
}

// UserChange is what of a user is to be another; "" and nil stay.
type UserChange struct {
	Type, Status string
	Password     *string
	// MustExist refuses a user that no broker has, MustNotExist one that some broker has.
	MustExist, MustNotExist bool
}

// ExistsError says that what is to be created is there.
type ExistsError struct{ Kind, Name string }

// Error names it.
func (e *ExistsError) Error() string { return e.Kind + " " + e.Name + " is there already" }

// PlanUser plans to create or change a user on all brokers of a target, slaves too.
// A new user needs a password.
func (c *Client) PlanUser(ctx context.Context, t Target, name string, ch UserChange) (Plan, error) {
	if name == "" || strings.ContainsAny(name, " \t\n:") {
		return nil, invalidf("cannot use user name %q: it is empty, or has a blank or a colon in it", name)
	}
	verb := "create"
	if ch.MustExist {
		verb = "change"
	}
	p, err := userCells.plan(ctx, c, place{Brokers: &t}, name, verb+" user "+name, wanted[UserState]{
		parts: []string{name},
		make: func(at Broker, _ string, was *UserState) (*UserState, error) {
			u := UserState{Type: "Normal", Status: "enable"}
			if was != nil {
				if ch.MustNotExist {
					return nil, &ExistsError{"user", name}
				}
				u = *was
			} else if ch.Password == nil {
				if ch.MustExist {
					return nil, invalidf("cannot change user %q: broker %s does not have it, and there is no password to create it with", name, nameOf(at))
				}
				return nil, invalidf("cannot create user %q: a password is missing", name)
			}
			u.Type, u.Status = cmp.Or(ch.Type, u.Type), cmp.Or(ch.Status, u.Status)
			if ch.Password != nil {
				u.Password, u.SetPassword = *ch.Password, true
			}
			return &u, nil
		},
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// PlanDeleteUser plans to take a user away from all brokers of a target, slaves too.
func (c *Client) PlanDeleteUser(ctx context.Context, t Target, name string) (Plan, error) {
	p, err := userCells.plan(ctx, c, place{Brokers: &t}, name, "delete user "+name, wanted[UserState]{
		parts: []string{name},
		make:  func(Broker, string, *UserState) (*UserState, error) { return nil, nil },
	})
	if err != nil {
		return nil, err
	}
	return deleting(p, "user", name)
}

// deleting drops the cells that are not there; a plan without any is a *NotFoundError.
func deleting[T any](p *cellPlan[T], what, name string) (Plan, error) {
	p.cells = slices.DeleteFunc(p.cells, func(x cell[T]) bool { return x.was == nil })
	if len(p.cells)+len(p.missing) == 0 {
		return nil, &NotFoundError{Kind: what, Name: name}
	}
	return p, nil
}
