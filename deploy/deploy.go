// Package deploy holds the files that run and watch mqx: units of systemd, dashboards of
// Grafana, rules and configuration of Prometheus, compose and Kubernetes manifests. The
// packages install them, and mqx generate prints them.
package deploy

import "embed"

// Files are the files by their paths below this directory.
//
//go:embed systemd/*.service prometheus/prometheus.yml prometheus/alerts.yml grafana/*.json compose/*.yaml k8s/*.yaml
var Files embed.FS
