"""A thin file for each command: it parses, calls and prints."""
