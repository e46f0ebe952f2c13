package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
)

const (
	apacheUserForm   = "%-16s  %-22s  %-22s  %-22s\n"
	apachePolicyForm = "%-16s  %-12s  %-22s  %-20s  %-24s  %-10s\n"
)

func newMqadminAuthCmds(a *app) []*cobra.Command {
	var out []*cobra.Command
	for _, m := range append(mqadminUserActs(), mqadminPolicyActs()...) {
		out = append(out, m.command(a))
	}
	return append(out,
		newMqadminUsers(a, "getUser", "Get user from cluster"), newMqadminUsers(a, "listUser", "List user from cluster"),
		newMqadminPolicies(a, "getAcl", "Get acl from cluster"), newMqadminPolicies(a, "listAcl", "List acl from cluster"))
}

func mqadminUserActs() []mqadminAct {
	var create, update, remove apacheTarget
	var cName, cPassword, cType, uName, uPassword, uType, uStatus, dName, from, to, names string
	password := func(f *pflag.FlagSet, name, pass *string) {
		f.StringVarP(name, "username", "u", "", "the username of user")
		f.StringVarP(pass, "password", "p", "", "the password of user; everybody on this machine sees it here")
	}
	return []mqadminAct{
		{
			name: "createUser", short: "Create user to cluster", ours: "mqx admin acl user create USER --password env:NAME", required: []string{"username", "password", apacheWhere},
			flags: func(f *pflag.FlagSet) {
				create.flags(f, "clusterName")
				password(f, &cName, &cPassword)
				f.StringVarP(&cType, "userType", "t", "", "the userType of user to create: Super or Normal")
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanUser(ctx, create.on(), cName, admin.UserChange{Type: cType, Password: &cPassword, MustNotExist: true})
			},
			line: func(s admin.Step) string { return "create user to " + s.Addr + " success.\n" },
		},
		{
			name: "updateUser", short: "Update user to cluster", ours: "mqx admin acl user set USER", required: []string{"username", "password|userType|userStatus", apacheWhere},
			flags: func(f *pflag.FlagSet) {
				update.flags(f, "clusterName")
				password(f, &uName, &uPassword)
				f.StringVarP(&uType, "userType", "t", "", "the userType of user to update")
				f.StringVarP(&uStatus, "userStatus", "s", "", "the userStatus of user to update: enable or disable")
			},
			plan: func(ctx context.Context, c *cobra.Command, client *admin.Client) (admin.Plan, error) {
				ch := admin.UserChange{Type: uType, Status: uStatus, MustExist: true}
				if c.Flags().Changed("password") {
					ch.Password = &uPassword
				}
				return client.PlanUser(ctx, update.on(), uName, ch)
			},
			line: func(s admin.Step) string { return "update user to " + s.Addr + " success.\n" },
		},
		{
			name: "deleteUser", short: "Delete user from cluster", ours: "mqx admin acl user rm USER", required: []string{"username", apacheWhere},
			flags: func(f *pflag.FlagSet) {
				remove.flags(f, "clusterName")
				f.StringVarP(&dName, "username", "u", "", "the username of user to delete")
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanDeleteUser(ctx, remove.on(), dName)
			},
			line: func(s admin.Step) string { return "delete user to " + s.Addr + " success.\n" },
		},
		{
			name: "copyUser", short: "Copy user to cluster", ours: "mqx admin acl user copy --source BROKER --target BROKER", required: []string{"fromBroker", "toBroker"},
			flags: func(f *pflag.FlagSet) {
				f.StringVarP(&from, "fromBroker", "f", "", "the source broker that the users copy from")
				f.StringVarP(&to, "toBroker", "t", "", "the target broker that the users copy to")
				f.StringVarP(&names, "usernames", "u", "", "the username list of user to copy")
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanCopyUsers(ctx, from, to, commaList(names))
			},
			line: func(s admin.Step) string {
				return fmt.Sprintf("copy user of %s from %s to %s success.\n", s.Part, from, to)
			},
		},
	}
}

// commaList splits at commas; nothing gives no entry.
func commaList(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// apachePolicy are the options of commands of policies.
type apachePolicy struct {
	apacheTarget
	subject, resources, actions, sources, decision string
}

func (p *apachePolicy) add(f *pflag.FlagSet, full bool) {
	p.flags(f, "clusterName")
	f.StringVarP(&p.subject, "subject", "s", "", "the subject of acl")
	f.StringVarP(&p.resources, "resources", "r", "", "the resources of acl")
	if full {
		f.StringVarP(&p.actions, "actions", "a", "", "the actions of acl")
		f.StringVarP(&p.sources, "sourceIp", "i", "", "the sourceIps of acl")
		f.StringVarP(&p.decision, "decision", "d", "", "the decision of acl: Allow or Deny")
	}
}

func (p *apachePolicy) spec() admin.PolicySpec {
	return admin.PolicySpec{
		Subject: p.subject, Resources: commaList(p.resources),
		PolicyState: admin.PolicyState{Actions: commaList(p.actions), SourceIPs: commaList(p.sources), Decision: p.decision},
	}
}

func mqadminPolicyActs() []mqadminAct {
	policy := func(name, short, ours, verb string) mqadminAct {
		p := &apachePolicy{}
		return mqadminAct{
			name: name, short: short, ours: ours, required: []string{"subject", "resources", "actions", "decision", apacheWhere},
			flags: func(f *pflag.FlagSet) { p.add(f, true) },
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanPolicy(ctx, p.on(), p.spec())
			},
			line: lineOnce(func(addr string) string { return verb + " acl to " + addr + " success.\n" }),
		}
	}
	remove := &apachePolicy{}
	var from, to, subjects string
	return []mqadminAct{
		policy("createAcl", "Create acl to cluster", "mqx admin acl policy create SUBJECT", "create"),
		policy("updateAcl", "Update acl to cluster", "mqx admin acl policy set SUBJECT", "update"),
		{
			name: "deleteAcl", short: "Delete acl from cluster", ours: "mqx admin acl policy rm SUBJECT", required: []string{"subject", apacheWhere},
			flags: func(f *pflag.FlagSet) { remove.add(f, false) },
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanDeletePolicy(ctx, remove.on(), remove.spec())
			},
			line: lineOnce(func(addr string) string { return "delete acl to " + addr + " success.\n" }),
		},
		{
			name: "copyAcl", short: "Copy acl to cluster", ours: "mqx admin acl policy copy --source BROKER --target BROKER", required: []string{"fromBroker", "toBroker"},
			flags: func(f *pflag.FlagSet) {
				f.StringVarP(&from, "fromBroker", "f", "", "the source broker that the acls copy from")
				f.StringVarP(&to, "toBroker", "t", "", "the target broker that the acls copy to")
				f.StringVarP(&subjects, "subjects", "s", "", "the subject list of acl to copy")
			},
			plan: func(ctx context.Context, _ *cobra.Command, client *admin.Client) (admin.Plan, error) {
				return client.PlanCopyPolicies(ctx, from, to, commaList(subjects))
			},
			line: func(s admin.Step) string {
				fields := strings.Fields(s.Part)
				if len(fields) < 2 {
					return ""
				}
				return fmt.Sprintf("copy acl of %s from %s to %s success.\n", fields[1], from, to)
			},
		},
	}
}

// lineOnce is a line for each address, however many steps it has.
func lineOnce(text func(addr string) string) func(s admin.Step) string {
	seen := map[string]bool{}
	return func(s admin.Step) string {
		if seen[s.Addr] {
			return ""
		}
		seen[s.Addr] = true
		return text(s.Addr)
	}
}

func newMqadminUsers(a *app, name, short string) *cobra.Command {
	var t apacheTarget
	var user string
	return mqadminCmd(a, name, short, "mqx admin acl user ls", false, []string{apacheWhere},
		func(f *pflag.FlagSet) {
			t.flags(f, "clusterName")
			if name == "getUser" {
				f.StringVarP(&user, "username", "u", "", "get user by username")
			} else {
				f.StringVarP(&user, "filter", "f", "", "the filter of username")
			}
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			users, errs, err := client.Users(ctx, t.on(), user)
			if err != nil {
				return err
			}
			if err := allFailed(len(users), errs); err != nil {
				return aclFailure(err)
			}
			head := false
			last := ""
			for _, u := range users {
				if name == "getUser" && user != "" && u.Username != user {
					continue
				}
				if !head {
					head = true
					if err := a.printf(apacheUserForm, "#UserName", "#Password", "#UserType", "#UserStatus"); err != nil {
						return err
					}
				}
				if err := a.printf(apacheUserForm, u.Username, u.Password, u.UserType, u.UserStatus); err != nil {
					return err
				}
				last = u.Addr
			}
			if t.cluster != "" && last != "" {
				if err := a.printf("get user from %s success.\n", last); err != nil {
					return err
				}
			}
			return a.partial(targetProblems(errs))
		})
}

func newMqadminPolicies(a *app, name, short string) *cobra.Command {
	var t apacheTarget
	var subject, resource string
	return mqadminCmd(a, name, short, "mqx admin acl policy ls", false, []string{apacheWhere},
		func(f *pflag.FlagSet) {
			t.flags(f, "clusterName")
			f.StringVarP(&subject, "subject", "s", "", "the subject of acl")
			if name == "listAcl" {
				f.StringVarP(&resource, "resource", "r", "", "the resource of acl to filter")
			}
		},
		func(ctx context.Context, _ *cobra.Command, _ *mqadminOptions, client *admin.Client) error {
			list, errs, err := client.Policies(ctx, t.on(), subject, resource)
			if err != nil {
				return err
			}
			if err := allFailed(len(list), errs); err != nil {
				return aclFailure(err)
			}
			for i, p := range list {
				if i == 0 {
					if err := a.printf(apachePolicyForm, "#Subject", "#PolicyType", "#Resource", "#Actions", "#SourceIp", "#Decision"); err != nil {
						return err
					}
				}
				if err := a.printf(apachePolicyForm, p.Subject, p.Type, p.Resource, javaList(p.Actions), javaSources(p.SourceIPs), p.Decision); err != nil {
					return err
				}
			}
			return a.partial(targetProblems(errs))
		})
}

// javaSources are the sources of a policy as Java writes a list.
func javaSources(list []string) string {
	if list == nil {
		return "null"
	}
	return javaList(list)
}
