"""Pages of accounts, tokens, members, invitations and projects."""
