package cmd

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/contexts"
	"mqx/internal/render"
)

func newACLCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{
		Use: "acl", Aliases: []string{"acls"}, Short: "Users and policies of ACL 2.0, on brokers that serve them",
		Example: `  mqx admin acl user create app --password env:APP_PASSWORD --yes
  mqx admin acl policy create User:app --resource Topic:ORDERS --action Pub --action Sub --decision Allow --yes
  mqx admin acl policy ls --match 'decision=Deny'`,
	}, []*cobra.Command{
		asGroup(&cobra.Command{Use: "user", Aliases: []string{"users"}, Short: "Users of ACL 2.0"},
			newUserLsCmd(a), newUserGetCmd(a), newUserCreateCmd(a, false), newUserCreateCmd(a, true), newUserRmCmd(a), newUserCopyCmd(a)),
		asGroup(&cobra.Command{Use: "policy", Aliases: []string{"policies"}, Short: "What users may do, in ACL 2.0"},
			newPolicyLsCmd(a), newPolicyGetCmd(a), newPolicyCreateCmd(a, false), newPolicyCreateCmd(a, true), newPolicyRmCmd(a), newPolicyCopyCmd(a)),
	}...)
}

var userSchema = render.Schema{Kind: "UserList", Name: "user", Fields: []render.Field{
	{Name: "user", Doc: "user"},
	{Name: "broker", Doc: "broker that has it"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Wide: true, Doc: "its address"},
	{Name: "type", Doc: "Super or Normal"},
	{Name: "status", Tone: render.ToneOf(map[string]render.Tone{"enable": render.Plain}, render.Warn), Doc: "enable or disable"},
}}

var policySchema = render.Schema{Kind: "PolicyList", Name: "subject", Fields: []render.Field{
	{Name: "subject", Doc: "whom the policy is for, as User:NAME"},
	{Name: "broker", Doc: "broker that has it"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Wide: true, Doc: "its address"},
	{Name: "type", Wide: true, Doc: "Custom or Default"},
	{Name: "resource", Doc: "what it is about, as Topic:NAME"},
	{Name: "actions", Kind: render.List, Doc: "All, Pub, Sub, Create, Update, Delete, Get, List"},
	{Name: "sourceIps", Title: "SOURCES", Kind: render.List, Doc: "addresses that it is about; empty for all"},
	{Name: "decision", Tone: render.ToneOf(map[string]render.Tone{"Allow": render.Good}, render.Bad), Doc: "Allow or Deny"},
}}

// readACLOptions are the flags of reads of users and policies.
type readACLOptions struct {
	readOptions
	resource string
}

func (o *readACLOptions) add(a *app, c *cobra.Command) {
	o.addTo(c)
	o.addBrokers(a, c)
}

func newUserLsCmd(a *app) *cobra.Command {
	o := &readACLOptions{}
	c := &cobra.Command{
		Use: "ls", Short: "List users",
		Example: "  mqx admin acl user ls\n  mqx admin acl user ls --match type=Super -o name",
		Args:    exactArgs(),
		RunE:    func(c *cobra.Command, _ []string) error { return o.users(a, c, "") },
	}
	o.add(a, c)
	return c
}

func newUserGetCmd(a *app) *cobra.Command {
	o := &readACLOptions{}
	c := &cobra.Command{
		Use: "get USER", Short: "Show a user on each broker",
		Example: "  mqx admin acl user get app -o json",
		Args:    exactArgs("USER"),
		RunE:    func(c *cobra.Command, args []string) error { return o.users(a, c, args[0]) },
	}
	o.add(a, c)
	return c
}

func (o *readACLOptions) users(a *app, c *cobra.Command, name string) error {
	return o.list(a, c, userSchema, "user", name, func(ctx context.Context, client *admin.Client) (ans answer, err error) {
		users, errs, err := client.Users(ctx, o.brokers(), name)
		ans.errs = errs
		for _, u := range users {
			if name == "" || u.Username == name {
				ans.rows = append(ans.rows, []any{u.Username, orUnknown(u.Name), u.Addr, orUnknown(u.UserType), orUnknown(u.UserStatus)})
			}
		}
		return ans, err
	})
}

// list prints what brokers have of users or policies. One that is named must be somewhere.
func (o *readACLOptions) list(a *app, c *cobra.Command, s render.Schema, kind, name string, ask func(ctx context.Context, client *admin.Client) (answer, error)) error {
	return a.read(c, &o.readOptions, s, func(ctx context.Context, client *admin.Client) (answer, error) {
		ans, err := ask(ctx, client)
		if err != nil {
			return ans, err
		}
		if err := allFailed(len(ans.rows), ans.errs); err != nil {
			return ans, aclFailure(err)
		}
		if name != "" && len(ans.rows) == 0 {
			return ans, &admin.NotFoundError{Kind: kind, Name: name}
		}
		return ans, nil
	})
}

// aclFailure says what a broker needs to serve users and policies.
func aclFailure(err error) error {
	f := asFailure(err)
	if f.Why == "" {
		f.Why = "brokers serve users and policies of ACL 2.0 only with authenticationMetadataProvider and authorizationMetadataProvider in their configuration; mqx's broker serves none"
		f.Try = "mqx admin config get --match 'key~^auth'"
	}
	return f
}

func newPolicyLsCmd(a *app) *cobra.Command {
	o := &readACLOptions{}
	c := &cobra.Command{
		Use: "ls", Short: "List policies",
		Example: "  mqx admin acl policy ls\n  mqx admin acl policy ls --resource Topic:ORDERS --match decision=Deny",
		Args:    exactArgs(),
		RunE:    func(c *cobra.Command, _ []string) error { return o.policies(a, c, "") },
	}
	o.add(a, c)
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.resource, "resource", "", "only policies whose resource contains this")
	})
	return c
}

func newPolicyGetCmd(a *app) *cobra.Command {
	o := &readACLOptions{}
	c := &cobra.Command{
		Use: "get SUBJECT", Short: "Show the policies of a subject on each broker",
		Example: "  mqx admin acl policy get User:app",
		Args:    exactArgs("SUBJECT"),
		RunE:    func(c *cobra.Command, args []string) error { return o.policies(a, c, args[0]) },
	}
	o.add(a, c)
	return c
}

func (o *readACLOptions) policies(a *app, c *cobra.Command, subject string) error {
	return o.list(a, c, policySchema, "policy of", subject, func(ctx context.Context, client *admin.Client) (ans answer, err error) {
		list, errs, err := client.Policies(ctx, o.brokers(), subject, o.resource)
		ans.errs = errs
		for _, p := range list {
			if subject == "" || p.Subject == subject {
				ans.rows = append(ans.rows, []any{p.Subject, orUnknown(p.Name), p.Addr, p.Type, p.Resource, listOf(p.Actions), listOf(p.SourceIPs), p.Decision})
			}
		}
		return ans, err
	})
}

// userOptions are the flags of mqx admin acl user create and set.
type userOptions struct {
	changeFlags
	password     sourceFlag
	kind, status string
}

func newUserCreateCmd(a *app, set bool) *cobra.Command {
	o := &userOptions{}
	c := &cobra.Command{
		Use: "create USER", Short: "Create a user",
		Long: `On all brokers of a cluster, slaves too: each keeps its own users. The password is
never written down here, so that such a change can be neither saved as a plan nor
taken back.`,
		Example: `  mqx admin acl user create app --password env:APP_PASSWORD --yes
  mqx admin acl user create ops --password 'cmd:pass show mqx/ops' --type Super -c DefaultCluster --dry-run`,
		Args: exactArgs("USER"),
		RunE: func(c *cobra.Command, args []string) error { return o.put(a, c, args[0], set) },
	}
	if set {
		c.Use, c.Short = "set USER", "Change a user: only what is given"
		c.Example = `  mqx admin acl user set app --status disable --yes
  mqx admin acl user set app --password file:/run/secrets/app --yes`
	}
	o.add(a, c, false, true)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.Var(&o.password, "password", "password: env:NAME, file:PATH, cmd:COMMAND; text:PASSWORD is seen by everybody on this machine")
		f.StringVar(&o.kind, "type", "", "Super or Normal (default Normal for a new user)")
		f.StringVar(&o.status, "status", "", "enable or disable (default enable for a new user)")
	})
	return c
}

func (o *userOptions) put(a *app, c *cobra.Command, name string, set bool) error {
	ch := admin.UserChange{MustExist: set, MustNotExist: !set}
	for _, f := range []struct {
		flag, value string
		to          *string
		choices     []string
	}{{"--type", o.kind, &ch.Type, []string{"Super", "Normal"}}, {"--status", o.status, &ch.Status, []string{"enable", "disable"}}} {
		if f.value == "" {
			continue
		}
		var err error
		if *f.to, err = oneOf(f.flag, f.value, f.choices...); err != nil {
			return err
		}
	}
	switch {
	case o.password.source != "" && o.safety.planOut != "":
		return usagef("cannot use --plan-out with --password: a plan does not hold passwords").try("--dry-run")
	case o.password.source != "":
		text, err := a.secret(c.Context(), chosen[contexts.Source]{o.password.source, "--password"})
		if err != nil {
			return err
		}
		ch.Password = &text
	case !set:
		return usagef("cannot create user %q: --password is missing", name).try("--password env:APP_PASSWORD")
	case !anyOf(c, "type", "status"):
		return usagef("cannot change user %q: nothing is said to be changed", name).try("--status disable")
	}
	return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
		return client.PlanUser(ctx, o.on(), name, ch)
	})
}

func newUserRmCmd(a *app) *cobra.Command {
	o := &changeFlags{}
	c := &cobra.Command{
		Use: "rm USER", Short: "Delete a user",
		Long:    "Its policies stay. It asks for the name; the password does not come back.",
		Example: "  mqx admin acl user rm app --confirm app",
		Args:    exactArgs("USER"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
				return client.PlanDeleteUser(ctx, o.on(), args[0])
			})
		},
	}
	o.add(a, c, true, true)
	return c
}

// copyACLOptions are the flags of mqx admin acl user copy and policy copy.
type copyACLOptions struct {
	changeFlags
	source, target string
}

func (o *copyACLOptions) addCopy(a *app, c *cobra.Command) {
	o.add(a, c, false, false)
	grouped(c, groupTarget, func(f *pflag.FlagSet) {
		f.StringVar(&o.source, "source", "", "broker to copy from, by name or address")
		f.StringVar(&o.target, "target", "", "broker to copy to, by name or address")
	})
	completeFlag(c, "source", completeBrokers(a, &o.changeFlags.target))
	completeFlag(c, "target", completeBrokers(a, &o.changeFlags.target))
}

func (o *copyACLOptions) copy(a *app, c *cobra.Command, plan planOne) error {
	if o.source == "" || o.target == "" {
		return usagef("cannot run %q: --source and --target are needed", c.CommandPath()).try("--source broker-a --target broker-b")
	}
	return o.run(a, c, plan)
}

func newUserCopyCmd(a *app) *cobra.Command {
	o := &copyACLOptions{}
	c := &cobra.Command{
		Use: "copy [USER...]", Short: "Make users of one broker on another what they are there",
		Long:    "With their passwords, where the broker tells them. Without USER all of them.",
		Example: "  mqx admin acl user copy --source broker-a --target broker-b --yes\n  mqx admin acl user copy app ops --source broker-a --target broker-b --dry-run",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if o.safety.planOut != "" {
				return usagef("cannot use --plan-out here: a plan does not hold passwords").try("--dry-run")
			}
			return o.copy(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
				return client.PlanCopyUsers(ctx, o.source, o.target, args)
			})
		},
	}
	o.addCopy(a, c)
	return c
}

func newPolicyCopyCmd(a *app) *cobra.Command {
	o := &copyACLOptions{}
	c := &cobra.Command{
		Use: "copy [SUBJECT...]", Short: "Make policies of one broker on another what they are there",
		Long:    "Without SUBJECT those of all.",
		Example: "  mqx admin acl policy copy User:app --source broker-a --target broker-b --yes",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return o.copy(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
				return client.PlanCopyPolicies(ctx, o.source, o.target, args)
			})
		},
	}
	o.addCopy(a, c)
	return c
}

// policyOptions are the flags of mqx admin acl policy create, set and rm.
type policyOptions struct {
	changeFlags
	spec     admin.PolicySpec
	decision string
}

func newPolicyCreateCmd(a *app, set bool) *cobra.Command {
	o := &policyOptions{}
	c := &cobra.Command{
		Use: "create SUBJECT", Short: "Let a user do something with resources, or deny it",
		Example: `  mqx admin acl policy create User:app --resource Topic:ORDERS --action Pub --action Sub --decision Allow --yes
  mqx admin acl policy create User:app --resource 'Group:*' --action Sub --source-ip 10.0.0.0/8 --decision Deny --dry-run`,
		Args: exactArgs("SUBJECT"),
		RunE: func(c *cobra.Command, args []string) error { return o.put(a, c, args[0], set) },
	}
	if set {
		c.Use, c.Short = "set SUBJECT", "Change what a user may do with resources"
		c.Example = `  mqx admin acl policy set User:app --resource Topic:ORDERS --action Pub --decision Deny --yes`
	}
	o.add(a, c, false, true)
	o.addResources(c)
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.spec.Actions, "action", nil, "All, Pub, Sub, Create, Update, Delete, Get or List; may be repeated")
		f.StringArrayVar(&o.spec.SourceIPs, "source-ip", nil, "only from this address or network; may be repeated")
		f.StringVar(&o.decision, "decision", "", "Allow or Deny")
	})
	completeFlag(c, "action", cobra.FixedCompletions(policyActions, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(c, "decision", cobra.FixedCompletions(decisions, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *policyOptions) addResources(c *cobra.Command) {
	grouped(c, groupMessage, func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.spec.Resources, "resource", nil, "Topic:NAME, Group:NAME or Cluster:NAME, * for all or behind a prefix; may be repeated")
		f.BoolVar(&o.spec.Default, "default", false, "the policies that hold where no other does")
	})
}

var (
	policyActions = []string{"All", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List"}
	decisions     = []string{"Allow", "Deny"}
)

func (o *policyOptions) put(a *app, c *cobra.Command, subject string, set bool) error {
	o.spec.Subject, o.spec.MustExist, o.spec.MustNotExist = subject, set, !set
	var actions []string
	for _, text := range o.spec.Actions {
		name, err := oneOf("--action", text, policyActions...)
		if err != nil {
			return err
		}
		actions = append(actions, name)
	}
	o.spec.Actions = actions
	if len(o.spec.Resources) == 0 || len(actions) == 0 || o.decision == "" {
		return usagef("cannot run %q: --resource, --action and --decision are needed", c.CommandPath()).try("--resource Topic:ORDERS --action Pub --decision Allow")
	}
	var err error
	if o.spec.Decision, err = oneOf("--decision", o.decision, decisions...); err != nil {
		return err
	}
	return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
		return client.PlanPolicy(ctx, o.on(), o.spec)
	})
}

func newPolicyRmCmd(a *app) *cobra.Command {
	o := &policyOptions{}
	c := &cobra.Command{
		Use: "rm SUBJECT", Short: "Take policies of a user away",
		Long:    "Those of the resources that are given, else all. It asks for the name.",
		Example: "  mqx admin acl policy rm User:app --resource Topic:ORDERS --confirm User:app",
		Args:    exactArgs("SUBJECT"),
		RunE: func(c *cobra.Command, args []string) error {
			o.spec.Subject = args[0]
			return o.run(a, c, func(ctx context.Context, client *admin.Client) (admin.Plan, error) {
				return client.PlanDeletePolicy(ctx, o.on(), o.spec)
			})
		},
	}
	o.add(a, c, true, true)
	o.addResources(c)
	return c
}
