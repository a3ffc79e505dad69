"""What several test files need; no test file imports another."""
