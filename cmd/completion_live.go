package cmd

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nameKind is what a flag or an argument names.
type nameKind int

const (
	noName nameKind = iota
	topicName
	groupName
	brokerName
	clusterName
)

// namedFlags are the flags that take a name, in mqx's spelling and in Apache's.
var namedFlags = map[string]nameKind{
	"topic": topicName, "target-topic": topicName, "topicName": topicName, "parentTopic": topicName,
	"group": groupName, "from-group": groupName, "to-group": groupName, "target-group": groupName,
	"groupName": groupName, "consumerGroup": groupName, "srcGroup": groupName, "destGroup": groupName,
	"broker": brokerName, "source": brokerName, "target": brokerName, "from": brokerName,
	"brokerName": brokerName, "brokerAddr": brokerName,
	"cluster": clusterName, "clusterName": clusterName,
}

// namedArgs are the arguments that take a name, as usage lines write them.
var namedArgs = map[string]nameKind{"TOPIC": topicName, "GROUP": groupName, "BROKER": brokerName, "CLUSTER": clusterName}

// completeNames gives live completion to every flag and argument that takes a name and
// has none of its own.
func completeNames(a *app, c *cobra.Command) {
	for _, sub := range c.Commands() {
		completeNames(a, sub)
	}
	if isGroup(c) || c.Flags().Lookup("namesrv") == nil && c.Flags().Lookup("namesrvAddr") == nil {
		return
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		kind := nameOfFlag(f)
		if _, has := c.GetFlagCompletionFunc(f.Name); kind != noName && !has {
			completeFlag(c, f.Name, a.completeName(kind))
		}
	})
	if kinds := nameOfArgs(c); c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 && len(kinds) > 0 {
		c.ValidArgsFunction = a.completeArgs(kinds)
	}
}

func nameOfFlag(f *pflag.Flag) nameKind {
	switch f.Value.Type() {
	case "string", "stringArray", "stringSlice":
		return namedFlags[f.Name]
	}
	return noName
}

// nameOfArgs are the kinds of the arguments of the usage line, by place; the last one
// stands for all that follow where the line says "...". None where none is a name.
func nameOfArgs(c *cobra.Command) []nameKind {
	var kinds []nameKind
	some := false
	for _, word := range strings.Fields(c.Use)[1:] {
		kind := namedArgs[strings.Trim(word, "[]….")]
		kinds = append(kinds, kind)
		some = some || kind != noName
	}
	if !some {
		return nil
	}
	return kinds
}

func (a *app) completeArgs(kinds []nameKind) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		at := len(args)
		if at >= len(kinds) && (strings.HasSuffix(c.Use, "...") || strings.HasSuffix(c.Use, "…")) {
			at = len(kinds) - 1
		}
		if at >= len(kinds) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if kinds[at] == noName {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return a.completeName(kinds[at])(c, args, prefix)
	}
}

// completeName completes a name with the cluster that the command line gives so far.
func (a *app) completeName(kind nameKind) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		t := targetOf(c)
		query := map[nameKind]func(*app, *targetFlags) cobra.CompletionFunc{
			topicName: completeTopics, groupName: completeGroups, brokerName: completeBrokers, clusterName: completeClusters,
		}[kind]
		return query(a, t)(c, nil, prefix)
	}
}

// targetOf is the target that the flags of a command give.
func targetOf(c *cobra.Command) *targetFlags {
	t := &targetFlags{}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	t.add(set)
	c.Flags().Visit(func(f *pflag.Flag) {
		to := set.Lookup(f.Name)
		if f.Name == "namesrvAddr" {
			to = set.Lookup("namesrv")
		}
		if to == nil {
			return
		}
		if s, ok := f.Value.(*sourceFlag); ok {
			_ = to.Value.Set(string(s.source)) // it was read once
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, v := range list.GetSlice() {
				_ = to.Value.Set(v)
			}
			return
		}
		_ = to.Value.Set(f.Value.String())
	})
	return t
}
