"""The upstreams: which of them a request goes to, and how it is sent there."""
