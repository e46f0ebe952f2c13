package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mqx/admin"
	"mqx/internal/render"
	"mqx/internal/sorted"
)

func newNameserverAdminCmd(a *app) *cobra.Command {
	return asGroup(&cobra.Command{Use: "nameserver", Aliases: []string{"nameservers", "namesrv"}, Short: "Name servers, what each of them knows"},
		newNameserverLsCmd(a), newNameserverGetCmd(a), newNameserverSetCmd(a), newNameserverRmCmd(a))
}

var nameserverSchema = render.Schema{Kind: "NameServerList", Name: "addr", Fields: []render.Field{
	{Name: "addr", Title: "ADDRESS", Doc: "its address"},
	{Name: "reachable", Kind: render.Bool, Tone: enabled, Doc: "it answered"},
	{Name: "brokers", Kind: render.Int, Doc: "brokers that it knows, slaves too; unknown when it did not answer"},
	{Name: "topics", Kind: render.Int, Doc: "topics that it routes"},
	{Name: "missing", Kind: render.Int, Tone: render.WarnAbove(0), Doc: "brokers and topics that another one knows and this one does not"},
	{Name: "tookMs", Title: "TOOK ms", Kind: render.Float, Doc: "how long its answers took, in ms"},
	{Name: "missingNames", Kind: render.List, Wide: true, Doc: "what is missing"},
}}

func newNameserverLsCmd(a *app) *cobra.Command {
	o := &readOptions{}
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the name servers and compare what they know",
		Example: `  mqx admin nameserver ls -n '10.0.0.1:9876;10.0.0.2:9876'
  mqx admin nameserver ls -o wide
  mqx admin nameserver ls --match 'missing>0' -o name`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.read(c, o, nameserverSchema, func(ctx context.Context, client *admin.Client) (answer, error) {
				views, errs := client.NameServerViews(ctx)
				var rows [][]any
				for i := range views {
					v := &views[i]
					if v.Err != nil {
						rows = append(rows, []any{v.Addr, false, nil, nil, nil, nil, nil})
						continue
					}
					rows = append(rows, []any{v.Addr, true, len(v.Brokers), len(v.Topics), len(v.Missing), milliseconds(v.Took), listOf(v.Missing)})
				}
				if len(errs) == len(views) {
					rows = nil
				}
				return answer{rows, errs}, nil
			})
		},
	}
	o.addTo(c)
	return c
}

var nameserverKVSchema = render.Schema{Kind: "NameServerKVList", Name: "key", Fields: []render.Field{
	{Name: "namespace", Wide: true, Doc: "namespace"},
	{Name: "key", Doc: "key"},
	{Name: "value", Doc: "value; several when the name servers differ"},
	{Name: "agree", Kind: render.Bool, Tone: enabled, Doc: "every name server that answered has it, with the same value"},
	{Name: "values", Kind: render.Object, Wide: true, Doc: "value by name server"},
}}

var nameserverBrokerSchema = render.Schema{Kind: "NameServerBrokerList", Name: "broker", Fields: []render.Field{
	{Name: "cluster", Doc: "cluster"},
	{Name: "broker", Doc: "broker name"},
	{Name: "id", Kind: render.Int, Doc: "broker id, 0 is the master"},
	{Name: "addr", Title: "ADDRESS", Whole: true, Doc: "its address"},
	{Name: "at", Kind: render.List, Doc: "name servers that know it"},
	{Name: "agree", Kind: render.Bool, Tone: enabled, Doc: "every name server that answered knows it"},
}}

var nameserverTopicSchema = render.Schema{Kind: "NameServerTopicList", Name: "topic", Fields: []render.Field{
	{Name: "topic", Doc: "topic"},
	{Name: "at", Kind: render.List, Doc: "name servers that route it"},
	{Name: "agree", Kind: render.Bool, Tone: enabled, Doc: "every name server that answered routes it"},
}}

var nameserverShow = map[string]render.Schema{
	"brokers": nameserverBrokerSchema, "topics": nameserverTopicSchema, "kv": nameserverKVSchema,
}

// nameserverGetOptions are the flags of mqx admin nameserver get.
type nameserverGetOptions struct {
	readOptions
	namespace string
}

func newNameserverGetCmd(a *app) *cobra.Command {
	o := &nameserverGetOptions{}
	c := &cobra.Command{
		Use:   "get",
		Short: "Show what the name servers know, side by side: brokers, topics, or keys of a namespace",
		Long: `Every name server is asked, and each line says which of them have it. The keys are
those of a namespace (--namespace, by default that of the order of topics). The
configuration is shown by mqx admin config get --nameservers.`,
		Example: `  mqx admin nameserver get
  mqx admin nameserver get --show topics --match agree=false
  mqx admin nameserver get --show kv -o json`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := shown(o.show, nameserverShow, "brokers", "topics", "kv")
			if err != nil {
				return err
			}
			return a.read(c, &o.readOptions, s, o.ask)
		},
	}
	o.addTo(c)
	o.addShow(c, "brokers", "topics", "kv")
	grouped(c, groupFilter, func(f *pflag.FlagSet) {
		f.StringVar(&o.namespace, "namespace", admin.OrderNamespace, "with --show kv: the namespace")
	})
	return c
}

func (o *nameserverGetOptions) ask(ctx context.Context, client *admin.Client) (answer, error) {
	if o.show == "kv" {
		values, errs := client.KVValues(ctx, o.namespace)
		ans := answer{errs: errs}
		for _, v := range values {
			var distinct []string
			for _, at := range sortedNames(v.Values) {
				distinct = append(distinct, v.Values[at])
			}
			ans.rows = append(ans.rows, []any{v.Namespace, v.Key, strings.Join(unique(distinct), " | "), v.Agree, v.Values})
		}
		return ans, nil
	}
	views, errs := client.NameServerViews(ctx)
	ans := answer{errs: errs}
	answered := 0
	brokers := map[admin.Broker][]string{}
	topics := map[string][]string{}
	for i := range views {
		if views[i].Err == nil {
			answered++
		}
		for _, b := range views[i].Brokers {
			brokers[b] = append(brokers[b], views[i].Addr)
		}
		for _, t := range views[i].Topics {
			topics[t] = append(topics[t], views[i].Addr)
		}
	}
	if o.show == "topics" {
		for _, t := range sortedNames(topics) {
			ans.rows = append(ans.rows, []any{t, topics[t], len(topics[t]) == answered})
		}
		return ans, nil
	}
	for b, at := range brokers {
		ans.rows = append(ans.rows, []any{b.Cluster, b.Name, b.ID, b.Addr, at, len(at) == answered})
	}
	sorted.By(ans.rows, func(x, y []any) int {
		return strings.Compare(x[0].(string)+"\x00"+x[1].(string)+"\x00"+x[3].(string), y[0].(string)+"\x00"+y[1].(string)+"\x00"+y[3].(string))
	})
	return ans, nil
}
