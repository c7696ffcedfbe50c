"""Record events, set up webhooks, and deliver events to them."""
