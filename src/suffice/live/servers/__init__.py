"""Servers: how one is reached, what is known of it, and which of several is asked."""
