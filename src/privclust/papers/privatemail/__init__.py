"""PrivateMail (2021)."""
