#!/bin/sh
# Makes the user that the units run as.
set -e
if ! getent group mqx >/dev/null; then
	groupadd --system mqx
fi
if ! getent passwd mqx >/dev/null; then
	useradd --system --gid mqx --home-dir /var/lib/mqx --shell /usr/sbin/nologin mqx
fi
