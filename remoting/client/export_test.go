package client

// Known returns the number of addresses that c remembers.
func Known(c *Client) int {
	c.peers.Lock()
	defer c.peers.Unlock()
	return len(c.peers.m)
}
