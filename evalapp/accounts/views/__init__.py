"""Pages of people: signing in, the account, tokens, members, invitations, projects."""
