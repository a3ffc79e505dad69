"""Accounts: keys, limits, prices, bills and usage."""
