"""Votes for clients: scouts, what is drawn, what is told of it, what is learned and audited."""
