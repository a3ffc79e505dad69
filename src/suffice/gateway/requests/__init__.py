"""What a client asked for: its body, its options, and the route that it takes."""
