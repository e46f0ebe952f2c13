package client

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

var (
	errBrackets = errors.New("an IPv6 address stands in brackets, as in [fd00::1]:9876")
	errNoPort   = errors.New("the port is missing, as in host:9876")
	errPort     = errors.New("the port is not a number from 1 to 65535")
	errNoHost   = errors.New("the host is missing, as in host:9876")
	errHost     = errors.New("the host has a character that no host name has")
)

// ParseAddrs reads a list of addresses separated by ';' or ','. An IPv6
// address stands in brackets, a zone is taken off, and each address is
// returned in canonical form; duplicates are dropped. An empty list is an
// error.
func ParseAddrs(s string) ([]string, error) {
	var addrs []string
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == ';' || r == ',' }) {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		addr, err := parseAddr(part)
		if err != nil {
			return nil, fmt.Errorf("cannot use address %q: %w", part, err)
		}
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("cannot find an address in %q", s)
	}
	return addrs, nil
}

func parseAddr(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		if _, perr := netip.ParseAddr(strings.Trim(s, "[]")); perr == nil && strings.Contains(s, ":") && !strings.HasPrefix(s, "[") || strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "[") {
			return "", errBrackets
		}
		return "", errNoPort
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", errPort
	}
	if host == "" {
		return "", errNoHost
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.WithZone("").Unmap().String()
	} else if strings.Contains(host, ":") {
		return "", errHost
	} else if strings.ContainsAny(host, " \t/@?#%[]") {
		return "", errHost
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}
