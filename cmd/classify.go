package cmd

import (
	"errors"
	"io"

	"mqx/admin"
	"mqx/client"
	"mqx/message"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// classify finds the exit code of an error of the rooms below, and what a
// person can do about it.
func classify(err error) *Failure {
	f := &Failure{Code: ExitFailed, Err: err}
	if notFound, ok := errors.AsType[*admin.NotFoundError](err); ok {
		f.Code = ExitNotFound
		f.Try = tryInstead(notFound)
		return f
	}
	if resp, ok := errors.AsType[*remoting.ResponseError](err); ok {
		return classifyResponse(f, resp)
	}
	if c, ok := errors.AsType[*remoteclient.ConnectError](err); ok {
		return unreached(f, c)
	}
	if _, ok := errors.AsType[*client.NoRouteError](err); ok {
		f.Code = ExitNotFound
		f.Try = "mqx admin topic ls, mqx admin topic get TOPIC"
		return f
	}
	if no, ok := errors.AsType[*admin.RefusedError](err); ok {
		f.Code, f.Why, f.Try = ExitUsage, no.Why, no.Try
		if no.Unsafe {
			f.Code = ExitCheckFailed
		}
		return f
	}
	if _, ok := errors.AsType[*admin.ChangedError](err); ok {
		f.Code = ExitCheckFailed
		f.Why, f.Try = "nothing was done, it might not be what was meant any more", "look, and plan anew"
		return f
	}
	if _, ok := errors.AsType[*admin.SecretPlanError](err); ok {
		f.Code = ExitUsage
		f.Why, f.Try = "nothing was done, the rest alone is not what was planned", "the command that made the plan, without --plan-out"
		return f
	}
	if _, ok := errors.AsType[*admin.OffsetError](err); ok {
		f.Why, f.Try = "nothing was done", "mqx admin offset get -g GROUP"
		return f
	}
	if _, ok := errors.AsType[*admin.ExistsError](err); ok {
		f.Try = "set in place of create changes what is there"
		return f
	}
	if invalid(err) {
		f.Code = ExitUsage
		return f
	}
	if unanswered(err) {
		f.Code = ExitConnect
		silent(f, err)
	}
	if _, closed := errors.AsType[*remoteclient.ClosedError](err); closed && errors.Is(err, io.EOF) {
		f.Why, f.Try = "the other side ended the connection; one that requires TLS does so", "--tls, if TLS is required there"
	}
	if foreignPeer(err) {
		f.Why = "what answers there does not speak RocketMQ's protocol"
		f.Try = "-n with the port of a name server, usually 9876"
	}
	return f
}

// foreignPeer: the bytes that came are no frames.
func foreignPeer(err error) bool {
	for _, e := range []error{
		remoting.ErrFrameTooLarge, remoting.ErrFrameTooShort, remoting.ErrFrameNegative, remoting.ErrHeaderTooLarge, remoting.ErrTooManyFields, remoting.ErrUnknownSerialize,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// invalid: a name or a property that can never work, whoever is asked.
func invalid(err error) bool {
	_, name := errors.AsType[*message.NameError](err)
	_, text := errors.AsType[*message.PropertyTextError](err)
	_, limit := errors.AsType[*message.LimitError](err)
	_, asked := errors.AsType[*admin.InvalidError](err)
	return name || text || limit || asked
}

func tryInstead(e *admin.NotFoundError) string {
	if near := nearest(e.Name, e.Known); near != "" {
		return near
	}
	if e.Kind == "broker" && e.Name == "" {
		return "mqx broker start -n with these name servers"
	}
	switch e.Kind {
	case "topic":
		return "mqx admin topic ls"
	case "group":
		return "mqx admin group ls"
	default:
		return ""
	}
}

// classifyResponse: what a server answered, by its code.
func classifyResponse(f *Failure, resp *remoting.ResponseError) *Failure {
	switch resp.Code {
	case remoting.RespNoPermission:
		f.Code = ExitDenied
	case remoting.RespTopicNotExist:
		f.Code = ExitNotFound
		f.Try = "mqx admin topic ls"
	case remoting.RespSubscriptionGroupNotExist:
		f.Code = ExitNotFound
		f.Try = "mqx admin group ls"
	}
	return f
}
